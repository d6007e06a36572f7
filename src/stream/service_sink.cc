#include "stream/service_sink.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory_guard.h"

namespace tactus {
namespace {

FrameEnd EndOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
      return FrameEnd::kRefused;
    case ErrorCode::kDeadlineExceeded:
      return FrameEnd::kTooLate;
    case ErrorCode::kCancelled:
      return FrameEnd::kStopped;
    default:
      return FrameEnd::kFailed;
  }
}

FrameAnswer Unanswered(Error why) {
  FrameAnswer answer;
  answer.end = EndOf(why);
  answer.error = std::move(why.message);
  return answer;
}

Expected<FrameAnswer> AnswerOf(const InferReply& reply) {
  if (!reply.status) return std::unexpected(reply.status.error());
  FrameAnswer answer;
  answer.end = FrameEnd::kServed;
  answer.emulated = reply.served.emulated;
  for (const OutputTensor& output : reply.outputs) {
    AnswerTensor tensor{std::string(output.name), output.type, output.shape, {}};
    for (const auto part : output.parts) {
      tensor.bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    answer.outputs.push_back(std::move(tensor));
  }
  return answer;
}

class ServiceSink final : public FrameSink {
 public:
  ServiceSink(InferenceService& service, std::string model)
      : service_(service), model_(std::move(model)) {}

  Expected<Duration> Promise() override {
    auto model = service_.Find(model_, -1);
    if (!model && model.error().code == ErrorCode::kNotFound) {
      return NotFound(model.error().message + "; load it, or name another model");
    }
    if (!model) return std::unexpected(model.error());
    auto input = JpegInputOf(model_, (*model)->inputs, (*model)->max_batch > 0);
    if (!input) return std::unexpected(input.error());
    return (*model)->slo;
  }

  void Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) override {
    auto model = service_.Find(model_, -1);
    const auto fail = [&](Error error) { done(Unanswered(std::move(error))); };
    if (!model) return fail(model.error());
    // A model may have been loaded anew meanwhile.
    auto input = JpegInputOf(model_, (*model)->inputs, (*model)->max_batch > 0);
    if (!input) return fail(input.error());
    if (const std::string prefix = input->Prefix(jpeg->size()); !prefix.empty()) {
      auto whole = WithMemory("the frame", [&]() -> Expected<JpegBytes> {
        return std::make_shared<const std::string>(prefix + *jpeg);
      });
      if (!whole) return fail(std::move(whole.error()));
      jpeg = *std::move(whole);
    }
    InferCall call;
    call.model = *std::move(model);
    const std::size_t bytes = input->type == DataType::kBytes ? 0 : jpeg->size();
    call.inputs.push_back({call.model->inputs.front().name, input->type, input->ShapeOf(bytes),
                           std::as_bytes(std::span(*jpeg))});
    call.keepalive = std::move(jpeg);
    call.received = std::chrono::steady_clock::now();
    call.limit.Tighten(left);
    std::unique_lock lock(mutex_);
    const std::uint64_t number = next_++;
    calls_.emplace(number, std::nullopt);
    lock.unlock();
    call.reply = [this, number, done = std::move(done)](InferReply&& reply) {
      {
        const std::lock_guard replied(mutex_);
        calls_.erase(number);
      }
      auto answer = WithMemory("the answer", [&] { return AnswerOf(reply); });
      done(answer ? *std::move(answer) : Unanswered(std::move(answer.error())));
    };
    const CallId id = service_.Infer(std::move(call));
    lock.lock();
    // Unless it was answered meanwhile.
    if (const auto place = calls_.find(number); place != calls_.end()) place->second = id;
  }

  void GiveUp() override {
    std::vector<CallId> ids;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, id] : calls_) {
        if (id) ids.push_back(*id);
      }
    }
    // Without the lock: a reply may come from within.
    for (const CallId id : ids) service_.Cancel(id);
  }

 private:
  InferenceService& service_;
  const std::string model_;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::optional<CallId>> calls_;  // without an answer yet
};

}  // namespace

std::shared_ptr<FrameSink> MakeServiceSink(InferenceService& service, std::string model) {
  return std::make_shared<ServiceSink>(service, std::move(model));
}

}  // namespace tactus
