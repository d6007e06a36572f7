#include "metrics/recorder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus {
namespace {

Outcome OutcomeOf(const BatchReport& report, bool in_time) {
  switch (report.status) {
    case BatchStatus::kOk:
      return in_time ? Outcome::kMet : Outcome::kLate;
    case BatchStatus::kAborted:
      return Outcome::kCancelled;
    case BatchStatus::kFailed:
    case BatchStatus::kLost:
      return Outcome::kError;
  }
  return Outcome::kError;
}

}  // namespace

void Recorder::Complete(const Batch& batch, const BatchReport& report, TimePoint answered) {
  for (const Request& request : batch.requests) Complete(batch, report, request, answered);
}

void Recorder::Complete(const Batch& batch, const BatchReport& report, const Request& request,
                        TimePoint answered) {
  Add({.arrival = request.arrival,
       .deadline = request.deadline,
       .started = report.started,
       .ended = answered,
       .model = batch.model.value(),
       .exit = static_cast<std::uint16_t>(batch.exit.value()),
       .batch = static_cast<std::uint16_t>(batch.requests.size()),
       .outcome = OutcomeOf(report, answered <= request.deadline)});
}

void Recorder::Reject(ModelId model, const Request& request, DropReason reason, TimePoint now) {
  Add({.arrival = request.arrival,
       .deadline = request.deadline,
       .started = request.arrival,
       .ended = now,
       .model = model.value(),
       .outcome = tactus::OutcomeOf(reason)});
}

Duration Percentile(std::vector<Duration>& values, double p) {
  CHECK(p > 0 && p <= 100, "a percentile lies in (0, 100]");
  if (values.empty()) return Duration{};
  const auto n = static_cast<double>(values.size());
  // 0.95 * 20 is a little more than 19 in floating point; the rank must still be 19.
  const auto rank = static_cast<std::size_t>(std::ceil(p / 100 * n - 1e-9));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace tactus
