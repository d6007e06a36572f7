// An engine for tests: it answers with its first input, and a test says which batches fail, which
// wait, and which loads block.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"

namespace tactus::testing {

// A door that tests open and close; what comes to a closed one waits.
class Gate {
 public:
  void Close() { Set(false); }
  void Open() { Set(true); }
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  // Until `n` wait before the door.
  void AwaitWaiting(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= n; });
  }

 private:
  void Set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
};

class FakeEngine final : public Engine {
 public:
  struct Seen {
    std::string model;
    std::size_t rows;
    ExitId exit;
    Shape first_shape;
  };

  // What becomes of a batch; null: answered. Called on lane threads.
  std::function<Status(const std::string& model, const BatchJob&)> verdict;
  // Whether this batch's output has not one row for each; null: all have.
  std::function<bool(const BatchJob&)> misshapen;
  // Whether the lane dies under this batch; null: none does. Called on lane threads.
  std::function<bool()> dies;
  // The same, and perhaps because of the batch.
  std::function<bool(const BatchJob&)> dies_of;
  // Batches pass here; Terminate lets those that it names leave with kCancelled.
  Gate batches;
  // Loads of the model named `slow_model` pass here.
  Gate loads;
  std::string slow_model;
  std::set<std::string> broken_models;  // refuse to load
  std::atomic<bool> broken{false};      // every load is refused
  std::atomic<bool> no_memory{false};   // for what a model is measured with
  std::atomic<bool> abandoned{false};
  bool terminates = false;
  bool runs_apart = true;
  bool isolated = false;
  bool tries = false;
  int assumes = 0;  // rows of a batch that nobody declared
  int max_slots = 64;

  // Terminate is called inside a turn, which allocates nothing.
  FakeEngine() { terminated_.reserve(4096); }

  EngineTraits traits() const override {
    return {.name = "fake",
            .terminates = terminates,
            .runs_apart = runs_apart,
            .isolated = isolated,
            .tries = tries,
            .max_slots = max_slots};
  }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    if (spec.name == slow_model) loads.Pass();
    if (abandoned) return Fail(ErrorCode::kUnavailable, "the engine was abandoned");
    if (broken || broken_models.contains(spec.name)) return Internal("a broken model");
    if (spec.max_batch < 0) spec.max_batch = assumes;
    const std::lock_guard lock(mutex_);
    models_[++last_] = spec.name;
    lanes_.push_back(lane);
    return ModelHandle{last_};
  }
  std::vector<SampleTensor> Sample(ModelHandle) const override {
    if (no_memory) throw std::bad_alloc();
    return {};
  }
  void Unload(ModelHandle handle) override {
    const std::lock_guard lock(mutex_);
    models_.erase(handle.value);
  }
  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    std::string model;
    {
      const std::lock_guard lock(mutex_);
      const auto it = models_.find(handle.value);
      if (it == models_.end()) return done.Done(job.id, {.status = Internal("dead handle")});
      model = it->second;
      const auto shape = job.rows[0].inputs[0].shape;
      seen_.push_back({model, job.rows.size(), job.exit, Shape(shape.begin(), shape.end())});
    }
    if (job.id.value() < (std::uint64_t{1} << 63)) batches.Pass();
    if (abandoned) {
      return done.Done(job.id, {.status = Internal("abandoned"), .lane_lost = true});
    }
    if (terminates && Terminated(job.id)) {
      return done.Done(job.id, {.status = Fail(ErrorCode::kCancelled, "terminated")});
    }
    if (dies && job.id.value() < (std::uint64_t{1} << 63) && dies()) {
      died_.fetch_add(1);
      return done.Done(job.id,
                       {.status = Internal("the device fell off the bus"), .lane_lost = true});
    }
    if (dies_of && dies_of(job)) {
      died_.fetch_add(1);
      return done.Done(
          job.id, {.status = Internal("signal 8 (SIGFPE)"), .lane_lost = true, .suspect = true});
    }
    if (misshapen && misshapen(job)) {
      return done.Done(job.id,
                       {.status = Internal("output 0 has no row for each"), .misshapen = true});
    }
    if (verdict) {
      if (Status status = verdict(model, job); !status) {
        return done.Done(job.id, {.status = std::unexpected(status.error())});
      }
    }
    done.Done(job.id, Echo(job));
  }
  void Terminate(BatchId id) noexcept override {
    const std::lock_guard lock(mutex_);
    terminated_.push_back(id.value());
  }
  // What waits behind a gate ends with it: with lane_lost, or without the model.
  void Abandon() noexcept override {
    abandoned = true;
    batches.Open();
    loads.Open();
  }

  std::vector<Seen> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  // What models were loaded for, since the last time they were forgotten.
  std::vector<LaneSpec> lanes() const {
    const std::lock_guard lock(mutex_);
    return lanes_;
  }
  void ForgetLanes() {
    const std::lock_guard lock(mutex_);
    lanes_.clear();
  }
  std::size_t loaded() const {
    const std::lock_guard lock(mutex_);
    return models_.size();
  }
  int died() const { return died_.load(); }
  std::size_t terminated() const {
    const std::lock_guard lock(mutex_);
    return terminated_.size();
  }

 private:
  bool Terminated(BatchId id) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(terminated_, id.value()) != terminated_.end();
  }
  // All rows of a batch have one shape.
  static BatchResult Echo(const BatchJob& job) {
    const TensorView& first = job.rows[0].inputs[0];
    auto bytes = std::make_shared<std::vector<std::byte>>(first.bytes * job.rows.size());
    for (std::size_t i = 0; i < job.rows.size(); ++i) {
      const TensorView& row = job.rows[i].inputs[0];
      std::memcpy(bytes->data() + i * first.bytes, row.data, row.bytes);
    }
    auto output = std::make_shared<BatchOutput>();
    Shape shape(first.shape.begin(), first.shape.end());
    if (!shape.empty()) shape[0] = static_cast<std::int64_t>(job.rows.size());
    output->tensors.push_back({std::move(shape), *bytes});
    output->storage = bytes;
    return {.status = {}, .output = std::move(output)};
  }

  std::atomic<int> died_{0};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::string> models_;
  std::vector<std::uint64_t> terminated_;
  std::vector<Seen> seen_;
  std::vector<LaneSpec> lanes_;
  std::uint64_t last_ = 0;
};

}  // namespace tactus::testing
