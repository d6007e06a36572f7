// A runtime with a fake engine, and calls whose replies a test can wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/registry.h"
#include "runtime/fake_engine_test.h"
#include "runtime/runtime.h"

namespace tactus::testing {

// The replies to a test's calls, by the order in which the calls were made.
class Replies {
 public:
  std::function<void(InferReply&&)> Expect() {
    const std::lock_guard lock(mutex_);
    const std::size_t index = replies_.size();
    replies_.emplace_back();
    return [this, index](InferReply&& reply) {
      const std::lock_guard inner(mutex_);
      replies_[index].push_back(std::move(reply));
      ++answered_;
      changed_.notify_all();
    };
  }
  void AwaitAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answered_ >= replies_.size(); });
  }
  const InferReply& Await(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !replies_[index].empty(); });
    return replies_[index][0];
  }
  // The reply itself, which lets go of its answer at its end.
  InferReply Take(std::size_t index) {
    Await(index);
    const std::lock_guard lock(mutex_);
    return std::move(replies_[index][0]);
  }
  bool answered(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return !replies_[index].empty();
  }
  std::size_t times(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return replies_[index].size();
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return replies_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<InferReply>> replies_;
  std::size_t answered_ = 0;
};

inline ModelSpec FloatModel(const std::string& name, int max_batch = 8, Shape row = {2},
                            Duration slo = Seconds(100)) {
  ModelSpec spec;
  spec.name = name;
  spec.platform = "fake";
  spec.max_batch = max_batch;
  spec.slo = slo;
  Shape dims = std::move(row);
  if (max_batch > 0) dims.insert(dims.begin(), -1);
  spec.inputs = {{"x", DataType::kFp32, dims}};
  spec.outputs = {{"y", DataType::kFp32, dims}};
  spec.exits = {{"1", {}, 0.5}, {"2", {}, 0.9}};
  return spec;
}

// Latencies for FloatModel: exit e takes `ms` times (e + 1), whatever the batch.
inline ProfileFile FlatProfile(const std::vector<std::string>& models, int max_batch, double ms) {
  ProfileFile file;
  file.provenance = "made up by a test";
  for (const std::string& name : models) {
    ProfiledModel model;
    model.name = name;
    model.max_batch = max_batch;
    for (int e = 1; e <= 2; ++e) {
      ProfiledExit exit;
      exit.name = std::to_string(e);
      ProfileCell cell{.repetitions = 1,
                       .mean_ms = ms * e,
                       .min_ms = ms * e,
                       .p50_ms = ms * e,
                       .p95_ms = ms * e,
                       .p99_ms = ms * e,
                       .max_ms = ms * e};
      exit.cells.assign(static_cast<std::size_t>(max_batch), cell);
      model.exits.push_back(exit);
    }
    file.models.push_back(model);
  }
  return file;
}

struct HarnessOptions {
  RuntimeOptions runtime = {.pin = false};
  std::string policy = "all-final";
  std::optional<ProfileFile> profile;
  Observer* observer = nullptr;
  Journal* journal = nullptr;
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> news;
};

class Harness {
 public:
  explicit Harness(HarnessOptions options = {}) {
    auto policy = MakePolicy(options.policy);
    if (!policy) std::abort();
    RuntimeParts parts;
    parts.policy = *std::move(policy);
    parts.engine_for = [this](std::string_view) -> Expected<Engine*> { return &engine; };
    parts.profile = std::move(options.profile);
    parts.observer = options.observer;
    parts.journal = options.journal;
    parts.log = options.log;
    parts.news = options.news;
    runtime = std::make_unique<Runtime>(options.runtime, std::move(parts));
  }

  // Sends `rows` rows of floats for a model of shape [-1, ...]; returns the call's index in
  // replies.
  std::size_t Send(const std::string& model, const std::vector<float>& values, Shape shape,
                   std::optional<Duration> limit = {}, CallId* id = nullptr) {
    const auto spec = runtime->Find(model, -1);
    return SendTo(spec ? *spec : nullptr, values, std::move(shape), limit, id);
  }
  std::size_t SendTo(std::shared_ptr<const ModelSpec> spec, const std::vector<float>& values,
                     Shape shape, std::optional<Duration> limit = {}, CallId* id = nullptr,
                     std::uint32_t priority = 0, bool due_by_limit = false) {
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    InferCall call;
    call.inputs = {{"x", DataType::kFp32, std::move(shape), *bytes}};
    call.keepalive = bytes;
    call.received = std::chrono::steady_clock::now() - since_header;
    call.limit.Tighten(limit);
    call.due_by_limit = due_by_limit;
    call.begun = begun;
    call.model = std::move(spec);
    call.priority = priority;
    const std::size_t index = replies.size();
    call.reply = replies.Expect();
    const CallId given = runtime->Infer(std::move(call));
    if (id != nullptr) *id = given;
    return index;
  }

  Duration since_header{};  // how long the calls that are sent took to come
  bool begun = false;       // something of the calls that are sent ran already
  FakeEngine engine;
  Replies replies;
  std::unique_ptr<Runtime> runtime;
};

// Calls of "m", one row for each value, in one batch: behind another that holds the only lane.
inline std::vector<std::size_t> SendInOneBatch(Harness& h, const std::vector<float>& values) {
  h.engine.batches.Close();
  h.Send("m", {0, 0}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  std::vector<std::size_t> calls;
  for (const float value : values) calls.push_back(h.Send("m", {value, 7}, {1, 2}));
  h.engine.batches.Open();
  h.replies.AwaitAll();
  return calls;
}

// The floats of one output, its parts joined.
inline std::vector<float> Floats(const OutputTensor& tensor) {
  std::vector<float> values;
  for (const auto part : tensor.parts) {
    const std::size_t at = values.size();
    values.resize(at + part.size() / sizeof(float));
    std::memcpy(values.data() + at, part.data(), part.size());
  }
  return values;
}

}  // namespace tactus::testing
