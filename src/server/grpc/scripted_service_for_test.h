// An InferenceService for tests of the front end: it echoes, holds or refuses calls as told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class ScriptedService final : public InferenceService {
 public:
  ScriptedService() {
    auto spec = std::make_shared<ModelSpec>();
    spec->name = "echo";
    spec->version = 3;
    spec->platform = "identity";
    spec->max_batch = 8;
    spec->slo = Millis(50);
    spec->inputs = {{"x", DataType::kFp32, {-1, 4}}};
    spec->outputs = {{"y", DataType::kFp32, {-1, 4}}};
    spec->exits = {{"early", "", 0.5}, {"final", "", 0.9}};
    Add(std::move(spec));
  }

  void Add(std::shared_ptr<ModelSpec> spec) { models_[spec->name] = std::move(spec); }
  // From now on calls wait until Release or Cancel, or no longer do.
  void Hold(bool hold = true) {
    std::scoped_lock lock(mutex_);
    hold_ = hold;
  }
  // From now on every answer has so many bytes, whatever its tensors' shapes say.
  void AnswerWithBytes(std::size_t bytes) {
    answer_ = std::make_shared<const std::vector<std::byte>>(bytes);
  }
  // From now on calls end with this.
  void Refuse(Error error) { refuse_ = std::move(error); }

  // Blocks until `n` calls are held.
  void AwaitHeld(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() >= n; });
  }
  // Answers the oldest held call by echoing it.
  void Release() {
    std::unique_lock lock(mutex_);
    auto node = held_.extract(held_.begin());
    lock.unlock();
    Echo(std::move(node.mapped()));
  }
  // Blocks until so many calls were cancelled; how many so far.
  std::size_t AwaitCancelled(std::size_t n = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ >= n; });
    return cancelled_;
  }
  // The time limit and priority of the last call.
  struct Seen {
    std::optional<Duration> limit;
    std::uint32_t priority = 0;
    std::vector<int> outputs;
    std::chrono::steady_clock::time_point received;
    Duration way{};
  };
  Seen last() const {
    std::scoped_lock lock(mutex_);
    return last_;
  }
  std::vector<std::string> loads() const {
    std::scoped_lock lock(mutex_);
    return loads_;
  }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    const auto found = models_.find(std::string(model));
    if (found == models_.end() || (version >= 0 && version != found->second->version)) {
      return NotFound("Request for unknown model: '" + std::string(model) + "' is not found");
    }
    return std::shared_ptr<const ModelSpec>(found->second);
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    const auto found = Find(model, version);
    if (!found) return std::unexpected(found.error());
    if (unserved) return Fail(ErrorCode::kUnavailable, "no worker serves it");
    return {};
  }
  CallId Infer(InferCall&& call) override {
    std::unique_lock lock(mutex_);
    const CallId id = next_++;
    last_ = {call.limit.shortest(), call.priority, call.outputs, call.received, call.way};
    if (refuse_) {
      InferReply reply{.status = std::unexpected(*refuse_), .served = {.outcome = Outcome::kShed}};
      lock.unlock();
      call.reply(std::move(reply));
      return id;
    }
    if (hold_) {
      held_.emplace(id, std::move(call));
      changed_.notify_all();
      return id;
    }
    lock.unlock();
    Echo(std::move(call));
    return id;
  }
  void Cancel(CallId call) override {
    std::unique_lock lock(mutex_);
    const auto found = held_.find(call);
    if (found == held_.end()) return;
    InferCall held = std::move(found->second);
    held_.erase(found);
    ++cancelled_;
    changed_.notify_all();
    lock.unlock();
    held.reply({.status = Fail(ErrorCode::kCancelled, "the client cancelled")});
  }
  bool Live() const override { return true; }
  bool Ready() const override { return ready; }
  std::vector<ModelState> Index() const override {
    return {{"echo", 3, "READY", ""}, {"broken", 1, "UNAVAILABLE", "no such file"}};
  }
  Status Load(const std::string& model, const std::string& config) override {
    std::scoped_lock lock(mutex_);
    loads_.push_back(model + "|" + config);
    if (model == "broken") return NotFound("no such file");
    return {};
  }
  Status Unload(const std::string& model) override {
    std::scoped_lock lock(mutex_);
    loads_.push_back("-" + model);
    return {};
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t) const override {
    if (!model.empty() && !models_.contains(std::string(model))) return NotFound("unknown model");
    ModelStatistics s;
    s.name = "echo";
    s.version = 3;
    s.emulated = true;
    s.last_inference_ms = 1234;
    s.inference_count = 10;
    s.execution_count = 4;
    s.success = {7, 7000};
    s.queue = {7, 300};
    s.batches = {{2, {4, 40}, {4, 400}, {4, 4}}};
    return std::vector{s};
  }

  std::atomic<bool> ready = true;
  std::atomic<bool> unserved = false;  // models may be called, and are not ready

 private:
  // Every input back as the output of its position, in two parts to show that parts are joined.
  void Echo(InferCall&& call) {
    InferReply reply;
    reply.model = call.model;
    reply.storage = call.keepalive;
    reply.served = {Outcome::kMet, call.model->exits.back().name, 2, 11, 22, true};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const InputTensor& in = call.inputs[i];
      const std::size_t half = in.data.size() / 2;
      reply.outputs.push_back({.name = call.model->outputs[i].name,
                               .type = in.type,
                               .shape = in.shape,
                               .parts = {in.data.first(half), in.data.subspan(half)}});
    }
    if (answer_ != nullptr) {
      reply.outputs[0].parts = {*answer_};
      reply.storage = answer_;
    }
    call.reply(std::move(reply));
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<ModelSpec>> models_;
  std::map<CallId, InferCall> held_;
  std::optional<Error> refuse_;
  std::shared_ptr<const std::vector<std::byte>> answer_;
  bool hold_ = false;
  CallId next_ = 1;
  std::size_t cancelled_ = 0;
  Seen last_;
  std::vector<std::string> loads_;
};

}  // namespace tactus
