#include "measurement/service_watch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace tactus {
namespace {

// Of some batches, in seconds: what they took and what was expected of them.
struct Sums {
  double took = 0;
  double expected = 0;

  void Add(Duration actual, double seconds) {
    took += ToSeconds(actual);
    expected += seconds;
  }
  double Ratio(double without) const {
    return expected > 0 ? std::max(took / expected, ProfileFile::kLeastRatio) : without;
  }
};

}  // namespace

Spread SpreadOf(std::vector<Duration> values) {
  Duration sum{};
  for (const Duration value : values) sum += value;
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(values.size()));
  return {sum / count, Percentile(values, 50), Percentile(values, 95), Percentile(values, 99)};
}

ServiceWatch::ServiceWatch(std::size_t expected, const ProfileFile& selected)
    : selected_(selected), recorder_(expected) {
  batches_.reserve(expected);
}

void ServiceWatch::Keep(std::int8_t correct) {
  last.correct = correct;
  const std::lock_guard lock(mutex_);
  recorder_.Add(last);
}

// On a thread that has batches to run: what can wait is worked out afterwards.
void ServiceWatch::OnBatch(const ModelSpec& spec, const BatchRecord& batch) {
  if (batch.status != BatchStatus::kOk) return;
  const std::lock_guard lock(mutex_);
  batches_.push_back({&spec, batch});
}

std::vector<RequestRecord> ServiceWatch::TakeRecords(TimePoint start) {
  std::vector<RequestRecord> records = std::move(recorder_).Take();
  const Duration offset = start - kStart;
  for (RequestRecord& record : records) {
    record.arrival -= offset;
    record.deadline -= offset;
    record.started -= offset;
    record.ended -= offset;
  }
  return records;
}

Spread ServiceWatch::launch() const {
  std::vector<Duration> values;
  for (const Seen& seen : batches_) values.push_back(seen.batch.started - seen.batch.decided);
  return SpreadOf(std::move(values));
}

Spread ServiceWatch::finish() const {
  std::vector<Duration> values;
  for (const Seen& seen : batches_) values.push_back(seen.batch.learnt - seen.batch.ended);
  return SpreadOf(std::move(values));
}

// An answer and its batch know each other by the instant at which the batch started: two lanes that
// start in the same nanosecond are too few to matter to a percentile.
Spread ServiceWatch::answer() const {
  std::map<TimePoint, TimePoint> learnt;
  for (const Seen& seen : batches_) learnt[seen.batch.started] = seen.batch.learnt;
  std::vector<Duration> values;
  for (const RequestRecord& record : recorder_.records()) {
    const auto batch = learnt.find(record.started);
    if (batch != learnt.end()) values.push_back(record.ended - batch->second);
  }
  return SpreadOf(std::move(values));
}

Duration ServiceWatch::Profiled(std::size_t model, const BatchRecord& batch) const {
  const auto& cells = selected_.models[model].exits[batch.exit.value()].cells;
  return FromMillis(cells[static_cast<std::size_t>(batch.batch) - 1].mean_ms);
}

std::size_t ServiceWatch::ModelOf(const Seen& seen) const {
  const auto& models = selected_.models;
  const auto found = std::find_if(models.begin(), models.end(), [&](const ProfiledModel& model) {
    return model.name == seen.spec->name;
  });
  CHECK(found != models.end(), "what is served was selected");
  return static_cast<std::size_t>(found - models.begin());
}

std::vector<double> ServiceWatch::service_ratios() const {
  std::vector<Sums> sums(selected_.models.size());
  for (const Seen& seen : batches_) {
    const std::size_t model = ModelOf(seen);
    sums[model].Add(seen.batch.actual(), ToSeconds(Profiled(model, seen.batch)));
  }
  std::vector<double> ratios;
  for (const Sums& model : sums) ratios.push_back(model.Ratio(1));
  return ratios;
}

std::vector<double> ServiceWatch::service_trace(TimePoint start, Duration window) const {
  const std::vector<double> ratios = service_ratios();
  std::vector<Sums> sums;
  for (const Seen& seen : batches_) {
    const auto place =
        static_cast<std::size_t>(std::max<std::int64_t>(0, (seen.batch.started - start) / window));
    if (place >= sums.size()) sums.resize(place + 1);
    const std::size_t model = ModelOf(seen);
    sums[place].Add(seen.batch.actual(), ToSeconds(Profiled(model, seen.batch)) * ratios[model]);
  }
  std::vector<double> trace;
  for (const Sums& span : sums) trace.push_back(span.Ratio(trace.empty() ? 1 : trace.back()));
  return trace;
}

std::vector<Prediction> ServiceWatch::predictions() const {
  std::vector<Prediction> predictions;
  for (const Seen& seen : batches_) {
    if (!(seen.batch.measured_slowdown > 0)) continue;
    predictions.push_back({seen.batch.predicted_slowdown, seen.batch.measured_slowdown});
  }
  return predictions;
}

}  // namespace tactus
