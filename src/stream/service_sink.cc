#include "stream/service_sink.h"

#include <chrono>
#include <utility>

namespace tactus {
namespace {

FrameEnd EndOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
      return FrameEnd::kRefused;
    case ErrorCode::kDeadlineExceeded:
      return FrameEnd::kTooLate;
    default:
      return FrameEnd::kFailed;
  }
}

FrameAnswer AnswerOf(const InferReply& reply) {
  FrameAnswer answer;
  if (!reply.status) {
    answer.end = EndOf(reply.status.error());
    answer.error = reply.status.error().message;
    return answer;
  }
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
    if (!model) return std::unexpected(model.error());
    auto input = JpegInputOf(model_, (*model)->inputs, (*model)->max_batch > 0);
    if (!input) return std::unexpected(input.error());
    return (*model)->slo;
  }

  void Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) override {
    auto model = service_.Find(model_, -1);
    const auto fail = [&](Error error) {
      FrameAnswer answer;
      answer.end = EndOf(error);
      answer.error = std::move(error.message);
      done(std::move(answer));
    };
    if (!model) return fail(model.error());
    // A model may have been loaded anew meanwhile.
    auto input = JpegInputOf(model_, (*model)->inputs, (*model)->max_batch > 0);
    if (!input) return fail(input.error());
    if (const std::string prefix = input->Prefix(jpeg->size()); !prefix.empty()) {
      jpeg = std::make_shared<const std::string>(prefix + *jpeg);
    }
    InferCall call;
    call.model = *std::move(model);
    const std::size_t bytes = input->type == DataType::kBytes ? 0 : jpeg->size();
    call.inputs.push_back({call.model->inputs.front().name, input->type, input->ShapeOf(bytes),
                           std::as_bytes(std::span(*jpeg))});
    call.keepalive = std::move(jpeg);
    call.received = std::chrono::steady_clock::now();
    call.limit.Tighten(left);
    call.reply = [done = std::move(done)](InferReply&& reply) { done(AnswerOf(reply)); };
    service_.Infer(std::move(call));
  }

 private:
  InferenceService& service_;
  const std::string model_;
};

}  // namespace

std::shared_ptr<FrameSink> MakeServiceSink(InferenceService& service, std::string model) {
  return std::make_shared<ServiceSink>(service, std::move(model));
}

}  // namespace tactus
