// For tests: an InferenceService that answers each call with its inputs, at once or when told.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class FakeService final : public InferenceService {
 public:
  FakeService() {
    Add("numbers", 8, {{"a", DataType::kFp32, {-1, 4}}, {"b", DataType::kInt32, {-1, 4}}});
    Add("words", 0, {{"text", DataType::kBytes, {-1}}});
    Add("half", 0, {{"h", DataType::kFp16, {2}}});
    Add("series", 4, {{"x", DataType::kFp32, {-1, -1}}});
  }

  // Calls are kept until Release; a cancelled one is answered at once.
  void Hold() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  void Release() {
    std::map<CallId, InferCall> held;
    {
      const std::lock_guard lock(mutex_);
      hold_ = false;
      held.swap(held_);
    }
    for (auto& [id, call] : held) Reply(std::move(call));
  }
  // Every call begins with this, on the thread that brings it.
  void BeginWith(std::function<void()> begin) {
    const std::lock_guard lock(mutex_);
    begin_ = std::move(begin);
  }
  // Every load and unload begins with this.
  void ControlWith(std::function<void()> control) {
    const std::lock_guard lock(mutex_);
    control_ = std::move(control);
  }
  // Every call fails with this from now on.
  void FailWith(Error error) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(error);
  }

  // Every answer has so many bytes from now on, whatever its tensors' shapes say.
  void AnswerWithBytes(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    answer_ = std::make_shared<const std::vector<std::byte>>(bytes);
  }

  // This model is not ready from now on, though it may be called.
  void Unserve(std::string model) {
    const std::lock_guard lock(mutex_);
    unserved_ = std::move(model);
  }

  // Return when there have been so many.
  void AwaitCalls(int n) {
    Await([&] { return calls_ >= n; });
  }
  void AwaitCancels(int n) {
    Await([&] { return cancels_ >= n; });
  }
  int calls() const { return Read(calls_); }
  int cancels() const { return Read(cancels_); }
  std::optional<Duration> last_limit() const { return Read(last_limit_); }
  std::uint32_t last_priority() const { return Read(last_priority_); }
  std::chrono::steady_clock::time_point last_received() const { return Read(last_received_); }
  std::string last_control() const { return Read(last_control_); }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    const auto found = models_.find(std::string(model));
    if (found == models_.end() || (version >= 0 && version != 1)) {
      return NotFound("Request for unknown model: '" + std::string(model) + "' is not found");
    }
    return found->second;
  }

  Status ModelReady(std::string_view model, std::int64_t version) const override {
    const auto found = Find(model, version);
    if (!found) return std::unexpected(found.error());
    if (model == Read(unserved_)) return Fail(ErrorCode::kUnavailable, "no worker serves it");
    return {};
  }

  CallId Infer(InferCall&& call) override {
    if (const auto begin = Read(begin_)) begin();
    CallId id;
    {
      const std::lock_guard lock(mutex_);
      id = static_cast<CallId>(++calls_);
      last_priority_ = call.priority;
      last_limit_ = call.limit.shortest();
      last_received_ = call.received;
      changed_.notify_all();
      if (hold_) {
        held_.emplace(id, std::move(call));
        return id;
      }
    }
    Reply(std::move(call));
    return id;
  }

  void Cancel(CallId id) override {
    std::map<CallId, InferCall>::node_type call;
    {
      const std::lock_guard lock(mutex_);
      ++cancels_;
      changed_.notify_all();
      call = held_.extract(id);
    }
    if (!call) return;
    InferReply reply;
    reply.status = Fail(ErrorCode::kCancelled, "the client is gone");
    call.mapped().reply(std::move(reply));
  }

  bool Live() const override { return true; }
  bool Ready() const override { return true; }
  std::vector<ModelState> Index() const override {
    std::vector<ModelState> states;
    for (const auto& [name, model] : models_) states.push_back({name, 1, "READY", ""});
    states.push_back({"broken", 1, "UNAVAILABLE", "its graph is damaged"});
    return states;
  }
  Status Load(const std::string& model, const std::string& config) override {
    return Control("load " + model + " " + config);
  }
  Status Unload(const std::string& model) override { return Control("unload " + model); }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    if (model.empty()) return std::vector{ModelStatistics{.name = "numbers"}};
    const auto found = Find(model, version);
    if (!found) return std::unexpected(found.error());
    ModelStatistics statistics{.name = std::string(model), .inference_count = 7};
    statistics.batches.push_back({.batch_size = 2, .compute_infer = {3, 900}});
    return std::vector{statistics};
  }

 private:
  void Add(std::string name, int max_batch, std::vector<TensorSpec> tensors) {
    auto spec = std::make_shared<ModelSpec>();
    spec->name = name;
    spec->platform = "identity";
    spec->max_batch = max_batch;
    spec->inputs = tensors;
    spec->outputs = std::move(tensors);
    spec->exits.push_back({.name = "1"});
    models_[std::move(name)] = std::move(spec);
  }

  Status Control(std::string what) {
    if (const auto control = Read(control_)) control();
    const std::lock_guard lock(mutex_);
    last_control_ = std::move(what);
    return {};
  }

  void Reply(InferCall&& call) {
    InferReply reply;
    std::optional<Error> failure = Read(failure_);
    if (failure) {
      reply.status = std::unexpected(*failure);
      reply.served.outcome = Outcome::kShed;
      call.reply(std::move(reply));
      return;
    }
    reply.model = call.model;
    reply.served = {.exit = "1", .batch = 1, .queue_us = 5, .execution_us = 7};
    std::vector<int> outputs = call.outputs;
    for (std::size_t i = 0; call.outputs.empty() && i < call.inputs.size(); ++i) {
      outputs.push_back(static_cast<int>(i));
    }
    for (const int i : outputs) {
      const InputTensor& input = call.inputs[static_cast<std::size_t>(i)];
      reply.outputs.push_back({input.name, input.type, input.shape, {input.data}});
    }
    reply.storage = call.keepalive;
    if (const auto answer = Read(answer_)) {
      reply.outputs[0].parts = {*answer};
      reply.storage = answer;
    }
    call.reply(std::move(reply));
  }

  template <class Condition>
  void Await(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  template <class T>
  T Read(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  std::map<std::string, std::shared_ptr<const ModelSpec>> models_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool hold_ = false;
  int calls_ = 0;
  int cancels_ = 0;
  std::function<void()> begin_;
  std::function<void()> control_;
  std::optional<Error> failure_;
  std::shared_ptr<const std::vector<std::byte>> answer_;
  std::string unserved_;
  std::optional<Duration> last_limit_;
  std::chrono::steady_clock::time_point last_received_;
  std::uint32_t last_priority_ = 0;
  std::string last_control_;
  std::map<CallId, InferCall> held_;
};

}  // namespace tactus
