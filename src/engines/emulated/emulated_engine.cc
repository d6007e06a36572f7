#include "engines/emulated/emulated_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/check.h"
#include "base/memory_guard.h"
#include "base/rng.h"
#include "engines/loaded_models.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

struct Emulated {
  std::vector<TensorSpec> outputs;
  bool batches = false;
  ProfileTable::ModelRows latencies;

  // Null where there is no such exit or batch.
  const Duration* Latency(ExitId exit, std::size_t batch) const {
    const auto row = static_cast<std::size_t>(exit.value());
    const auto most = static_cast<std::size_t>(latencies.max_batch);
    const bool known = row < static_cast<std::size_t>(latencies.exits) && batch - 1 < most;
    return known ? &latencies.latency[row * most + batch - 1] : nullptr;
  }
};

// A batch that has begun.
struct Begun {
  BatchId id;
  LoadedModels<Emulated>::InUse model;
  std::size_t rows = 0;
  Clock::time_point at;
  Completions* done = nullptr;
  Status verdict = {};
};

class EmulatedEngine final : public Engine {
 public:
  explicit EmulatedEngine(EmulatedOptions options)
      : options_(std::move(options)), thread_([this] { Run(); }) {
    CHECK(options_.latencies != nullptr, "an emulated engine needs to know how long a batch takes");
  }
  ~EmulatedEngine() override;

  EngineTraits traits() const override {
    return {.name = "emulated",
            .emulated = true,
            .terminates = true,
            .deferred = true,
            .max_slots = 64};
  }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override;
  void Unload(ModelHandle handle) override { models_.Remove(handle); }
  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override;
  void Terminate(BatchId batch) noexcept override;

 private:
  void Run();
  void AwaitChange(std::unique_lock<std::mutex>& lock);
  void Report(Begun&& batch) const;
  Duration Length(Duration mean, BatchId batch) const;
  static std::shared_ptr<const BatchOutput> Zeros(const Emulated& model, std::size_t rows);

  const EmulatedOptions options_;
  LoadedModels<Emulated> models_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Begun> batches_;  // by their end
  bool stop_ = false;
  std::atomic<bool> sooner_{false};  // the first end has changed: spin for it no longer
  std::thread thread_;               // last: it uses what stands above
};

EmulatedEngine::~EmulatedEngine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    sooner_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_one();
  thread_.join();
}

Expected<ModelHandle> EmulatedEngine::Load(ModelSpec& spec, const LaneSpec&) {
  for (const TensorSpec& tensor : spec.outputs) {
    if (spec.max_batch == 0 || !tensor.dims.empty()) continue;
    return InvalidArgument(
        fmt::format("model '{}': output '{}' has no batch dimension, but max_batch_size is {}",
                    spec.name, tensor.name, spec.max_batch));
  }
  if (spec.exits.empty()) spec.exits.push_back({"1", {}, 0});
  auto latencies = options_.latencies(spec);
  if (!latencies) return std::unexpected(std::move(latencies.error()));
  CHECK(latencies->exits >= static_cast<int>(spec.exits.size()), "each exit takes its time");
  return models_.Add({spec.outputs, spec.max_batch > 0, *std::move(latencies)});
}

void EmulatedEngine::Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept {
  Begun batch{job.id, models_.Use(handle), job.rows.size(), Clock::now(), &done};
  Clock::time_point end = batch.at;
  if (!batch.model) {
    batch.verdict = Fail(ErrorCode::kUnavailable, "model is not loaded");
  } else if (const Duration* mean = batch.model->Latency(job.exit, batch.rows)) {
    end += Length(*mean, job.id);
  } else {
    batch.verdict = InvalidArgument(fmt::format(
        "exit {}, batch {}: not in the emulated model's profile", job.exit.value(), batch.rows));
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    const auto placed = batches_.emplace(end, std::move(batch));
    first = placed == batches_.begin();
    if (first) sooner_.store(true, std::memory_order_relaxed);
  }
  if (first) changed_.notify_one();
}

void EmulatedEngine::Terminate(BatchId id) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(batches_.begin(), batches_.end(),
                                    [&](const auto& entry) { return entry.second.id == id; });
    if (found == batches_.end()) return;
    auto node = batches_.extract(found);
    node.mapped().verdict = Fail(ErrorCode::kCancelled, "the batch was stopped");
    node.key() = Clock::time_point::min();
    batches_.insert(std::move(node));
    sooner_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_one();
}

void EmulatedEngine::Run() {
  prctl(PR_SET_NAME, "emulated");
  prctl(PR_SET_TIMERSLACK, 1);  // the kernel's default wakes a sleeper 50 us late
  std::unique_lock lock(mutex_);
  for (;;) {
    sooner_.store(false, std::memory_order_relaxed);
    if (!batches_.empty() && (stop_ || Clock::now() >= batches_.begin()->first)) {
      auto node = batches_.extract(batches_.begin());
      lock.unlock();
      Report(std::move(node.mapped()));
      node = {};  // lets go of the model
      lock.lock();
    } else if (stop_) {
      return;
    } else {
      AwaitChange(lock);
    }
  }
}

// Until the first batch ends, another becomes the first, or the engine goes away.
void EmulatedEngine::AwaitChange(std::unique_lock<std::mutex>& lock) {
  if (batches_.empty()) return changed_.wait(lock);
  const Clock::time_point end = batches_.begin()->first;
  if (Clock::now() < end - options_.spin) {
    changed_.wait_until(lock, end - options_.spin);
    return;
  }
  lock.unlock();
  while (Clock::now() < end && !sooner_.load(std::memory_order_relaxed)) std::this_thread::yield();
  lock.lock();
}

void EmulatedEngine::Report(Begun&& batch) const {
  BatchResult result{.infer = Clock::now() - batch.at};
  if (batch.verdict) {
    const auto zeros = WithMemory("the batch", [&]() -> Expected<decltype(result.output)> {
      return Zeros(*batch.model, batch.rows);
    });
    zeros ? void(result.output = *zeros) : void(result.status = std::unexpected(zeros.error()));
  } else {
    result.status = std::move(batch.verdict);
  }
  batch.done->Done(batch.id, std::move(result));
}

Duration EmulatedEngine::Length(Duration mean, BatchId batch) const {
  if (options_.noise_cv <= 0) return mean;
  // A stream of its own for each batch: lanes that run side by side do not change each other's.
  char name[32];
  const auto end = fmt::format_to_n(name, sizeof name, "emulated/{}", batch.value());
  Rng rng = Rng::Stream(options_.seed, {name, end.size});
  const double noise = options_.noise_cv * std::clamp(rng.Normal(), -3.0, 3.0);
  return FromSeconds(ToSeconds(mean) * std::max(0.5, 1 + noise));
}

std::shared_ptr<const BatchOutput> EmulatedEngine::Zeros(const Emulated& model, std::size_t rows) {
  auto output = std::make_shared<BatchOutput>();
  auto storage = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (const TensorSpec& spec : model.outputs) {
    BatchOutput::Tensor tensor{.shape = spec.dims};
    for (std::int64_t& dim : tensor.shape) dim = std::max<std::int64_t>(dim, dim < 0 ? 1 : 0);
    if (model.batches) tensor.shape[0] = static_cast<std::int64_t>(rows);
    const bool strings = spec.type == DataType::kBytes;
    // An empty string is its length, four zero bytes.
    const std::size_t element = strings ? 4 : ElementSize(spec.type);
    const std::size_t bytes = ElementCount(tensor.shape).value_or(0) * element;
    tensor.data = storage->emplace_back(bytes);
    if (strings) {
      for (std::size_t i = 0; i < rows; ++i) {
        tensor.rows.push_back(tensor.data.subspan(i * bytes / rows, bytes / rows));
      }
    }
    output->tensors.push_back(std::move(tensor));
  }
  output->storage = std::move(storage);
  return output;
}

}  // namespace

std::unique_ptr<Engine> MakeEmulatedEngine(EmulatedOptions options) {
  return std::make_unique<EmulatedEngine>(std::move(options));
}

}  // namespace tactus
