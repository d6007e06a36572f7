// Watches a runtime from within: every answer, and every batch beside what its profile says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/serving_time.h"
#include "core/prediction_errors.h"
#include "metrics/recorder.h"
#include "service/observer.h"
#include "workload/profile_file.h"

namespace tactus {

// A quantity of every batch or answer.
struct Spread {
  Duration mean{};
  Duration p50{};
  Duration p95{};
  Duration p99{};
};

Spread SpreadOf(std::vector<Duration> values);

// Collects on the threads that answer; read after the runtime has stopped, while its model specs
// live. It keeps a hundred bytes for each batch and each answer. A batch goes unseen where these
// threads are thousands of batches behind: the runtime does not wait for them.
class ServiceWatch final : public Observer {
 public:
  // `selected` has the models that are served, by name, with their exits in order; `expected`
  // answers have room without an allocation.
  ServiceWatch(std::size_t expected, const ProfileFile& selected);

  void OnAnswered(const ModelSpec&, const RequestRecord& record, int) override { last = record; }
  // The reply follows on the same thread: it knows whether the answer was right.
  void Keep(std::int8_t correct);
  void OnBatch(const ModelSpec& spec, const BatchRecord& batch) override;

  // In the scenario's time, whose start is `start`. Once.
  std::vector<RequestRecord> TakeRecords(TimePoint start);

  Spread launch() const;  // from the decision to the start on the lane
  Spread finish() const;  // from the engine's end to the dispatcher's knowledge of it
  Spread answer() const;  // from there to the answer; before TakeRecords
  // By model of `selected`: what its batches took over the profile's means, both in sum; 1 for a
  // model without a batch.
  std::vector<double> service_ratios() const;
  // How that moved: for each window from `start` on, what batches took over the profile's means
  // times the ratio of their model; what the window before had where no batch started.
  std::vector<double> service_trace(TimePoint start, Duration window) const;
  // The predictions of batches that had neighbours, if the policy predicts, in the order of their
  // ends.
  std::vector<Prediction> predictions() const;

 private:
  struct Seen {
    const ModelSpec* spec;
    BatchRecord batch;
  };

  // The mean that the profile states for a batch of the model at this place in `selected`.
  Duration Profiled(std::size_t model, const BatchRecord& batch) const;
  std::size_t ModelOf(const Seen& seen) const;

  static inline thread_local RequestRecord last;

  const ProfileFile& selected_;
  std::mutex mutex_;
  Recorder recorder_;
  std::vector<Seen> batches_;
};

}  // namespace tactus
