#include "engines/emulated/emulated_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/rng.h"
#include "engines/loaded_models.h"
#include "engines/running_batches.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

// A wait that another thread can cut short.
class Pause {
 public:
  void operator()() {  // the Stop of RunningBatches
    std::lock_guard lock(mutex_);
    stopped_.store(true, std::memory_order_relaxed);
    changed_.notify_one();
  }

  // False when it was cut short.
  bool Until(Clock::time_point end, Duration spin) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, end - spin, [&] { return stopped(); });
    }
    while (!stopped() && Clock::now() < end) {
    }
    return !stopped();
  }

 private:
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopped_{false};
};

struct Emulated {
  std::vector<TensorSpec> outputs;
  bool batches = false;
};

class EmulatedEngine final : public Engine {
 public:
  explicit EmulatedEngine(EmulatedOptions options) : options_(std::move(options)) {
    CHECK(options_.latency != nullptr, "an emulated engine needs to know how long a batch takes");
  }

  EngineTraits traits() const override {
    return {.name = "emulated", .emulated = true, .terminates = true, .max_slots = 64};
  }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    for (const TensorSpec& tensor : spec.outputs) {
      if (spec.max_batch == 0 || !tensor.dims.empty()) continue;
      return InvalidArgument(
          fmt::format("model '{}': output '{}' has no batch dimension, but "
                      "max_batch_size is {}",
                      spec.name, tensor.name, spec.max_batch));
    }
    if (spec.exits.empty()) spec.exits.push_back({"1", {}, 0});
    return models_.Add({spec.outputs, spec.max_batch > 0});
  }

  void Unload(ModelHandle handle) override { models_.Remove(handle); }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    const auto begin = Clock::now();
    const auto model = models_.Use(handle);
    if (!model) {
      return done.Done(job.id, {.status = Fail(ErrorCode::kUnavailable, "model is not loaded")});
    }
    Pause pause;
    bool whole = false;
    {
      const RunningBatches<Pause>::Running running(running_, job.id, pause);
      whole = pause.Until(begin + Length(job), options_.spin);
    }
    BatchResult result{.infer = Clock::now() - begin};
    if (whole) {
      result.output = Zeros(*model, job.rows.size());
    } else {
      result.status = Fail(ErrorCode::kCancelled, "the batch was stopped");
    }
    done.Done(job.id, std::move(result));
  }

  void Terminate(BatchId batch) noexcept override { running_.Terminate(batch); }

 private:
  Duration Length(const BatchJob& job) const {
    const Duration mean = options_.latency(job.model, job.exit, static_cast<int>(job.rows.size()));
    if (options_.noise_cv <= 0) return mean;
    // A stream of its own for each batch: lanes that run side by side do not change each other's.
    char name[32];
    const auto end = fmt::format_to_n(name, sizeof name, "emulated/{}", job.id.value());
    Rng rng = Rng::Stream(options_.seed, {name, end.size});
    const double noise = options_.noise_cv * std::clamp(rng.Normal(), -3.0, 3.0);
    return FromSeconds(ToSeconds(mean) * std::max(0.5, 1 + noise));
  }

  static std::shared_ptr<const BatchOutput> Zeros(const Emulated& model, std::size_t rows) {
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

  const EmulatedOptions options_;
  LoadedModels<Emulated> models_;
  RunningBatches<Pause> running_;
};

}  // namespace

std::unique_ptr<Engine> MakeEmulatedEngine(EmulatedOptions options) {
  return std::make_unique<EmulatedEngine>(std::move(options));
}

}  // namespace tactus
