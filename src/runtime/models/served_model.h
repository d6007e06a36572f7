// A model that is loaded: its handles on the lanes, its profile, its counters.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/model.h"
#include "core/profile_table.h"
#include "runtime/calls/shape_classes.h"
#include "runtime/models/apart_gate.h"
#include "service/inference_service.h"

namespace tactus {

// Rows in one batch, at most: the lanes' buffers are sized by it once.
inline constexpr int kMaxBatch = 1024;

// Relaxed: a reader may see a batch's count before its time.
class DurationCounter {
 public:
  void Add(Duration each, std::uint64_t times = 1) {
    count_.fetch_add(times, std::memory_order_relaxed);
    ns_.fetch_add(times * static_cast<std::uint64_t>(each.count() < 0 ? 0 : each.count()),
                  std::memory_order_relaxed);
  }
  DurationCount Read() const {
    return {count_.load(std::memory_order_relaxed), ns_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> ns_{0};
};

struct ModelCounters {
  struct Batch {
    DurationCounter compute_input, compute_infer, compute_output;
  };
  explicit ModelCounters(int max_batch) : batches(static_cast<std::size_t>(max_batch) + 1) {}

  std::atomic<std::uint64_t> last_inference_ms{0};
  std::atomic<std::uint64_t> offered{0};  // rows of accepted calls, whatever becomes of them
  std::atomic<std::uint64_t> inferences{0};
  std::atomic<std::uint64_t> executions{0};
  DurationCounter success, fail, queue, compute_input, compute_infer, compute_output;
  std::vector<Batch> batches;  // by batch size; index 0 unused
  // Measured over profiled time, by lane class, in thousandths; 0: nobody follows it.
  std::vector<std::atomic<std::uint32_t>> ratios;

  void SetRatio(LaneClass c, double ratio) {
    if (c.value() >= ratios.size()) return;
    ratios[c.value()].store(static_cast<std::uint32_t>(1000 * ratio + 0.5),
                            std::memory_order_relaxed);
  }

  ModelStatistics Read() const;
};

struct ServedModel {
  ServedModel(ModelSpec model_spec, Engine& model_engine)
      : spec(std::move(model_spec)),
        engine(model_engine),
        traits(model_engine.traits()),
        counters(spec.max_batch > 0 ? std::min(spec.max_batch, kMaxBatch) : 1) {}

  const ModelSpec spec;
  Engine& engine;
  const EngineTraits traits;
  Model model;                       // as the dispatcher knows it
  ProfileTable::ModelRows rows;      // its part of the profile table
  std::vector<ModelHandle> handles;  // by LaneId; 0: it is not on that lane
  bool fixed_shapes = true;          // no input is optional, or open but for the batch
  ModelId id;                        // set when it is published
  // No made-up row ran (TriedModel); until a call has shown what the model takes.
  std::atomic<bool> untried{false};
  mutable std::atomic<bool> batching_stopped{false};  // for the log: it was told
  mutable std::atomic<bool> files_changed{false};     // the same

  // The longest that a batch took of late; the dispatch loop's. Long until one has run.
  Duration recent_batch = Seconds(1);

  ShapeClasses shapes;
  ApartGate apart;
  ModelCounters counters;
  // Calls that were accepted and are not answered; the model stays until it is 0.
  std::atomic<std::int64_t> outstanding{0};
  // Batches launched whose record was not yet handed on; the handles stay until it is 0.
  std::atomic<std::int64_t> running{0};

  // Lanes that lost it and have not got it again yet.
  std::atomic<int> lanes_without{0};
  std::atomic<std::shared_ptr<const std::string>> left_out_why;  // the last time; null: never
  // No lane has it, so that its calls are refused and it is not ready.
  bool on_no_lane() const {
    const int without = lanes_without.load(std::memory_order_relaxed);
    return without > 0 && static_cast<std::size_t>(without) == handles.size();
  }

  int rows_per_batch() const { return spec.max_batch > 0 ? spec.max_batch : 1; }
};

}  // namespace tactus
