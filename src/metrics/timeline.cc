// A run by parts of its time: report.h.
#include <algorithm>

#include "metrics/report.h"

namespace tactus {
namespace {

struct Counted {
  double arrived = 0;
  double met = 0;
  double busy_s = 0;
};

}  // namespace

std::vector<Timeline> MakeTimeline(std::span<const RequestRecord> records,
                                   std::span<const Model> models, double duration_s, int parts) {
  const double part_s = duration_s / parts;
  const std::size_t all = models.size();
  std::vector<std::vector<Counted>> counts(all + 1,
                                           std::vector<Counted>(static_cast<std::size_t>(parts)));
  const auto part_at = [&](TimePoint at) {
    return static_cast<std::size_t>(
        std::clamp(static_cast<int>(ToSeconds(at - kStart) / part_s), 0, parts - 1));
  };
  for (const RequestRecord& record : records) {
    for (const std::size_t m : {std::size_t{record.model}, all}) {
      Counted& arrived = counts[m][part_at(record.arrival)];
      ++arrived.arrived;
      arrived.met += record.outcome == Outcome::kMet ? 1 : 0;
      if (record.batch == 0) continue;
      counts[m][part_at(record.started)].busy_s +=
          ToSeconds(record.ended - record.started) / record.batch;
    }
  }
  std::vector<Timeline> timelines;
  for (std::size_t m = 0; m <= all; ++m) {
    Timeline& timeline = timelines.emplace_back();
    if (m < all) timeline.model = models[m].name;
    for (int i = 0; i < parts; ++i) {
      const Counted& part = counts[m][static_cast<std::size_t>(i)];
      timeline.steps.push_back({.end_s = (i + 1) * part_s,
                                .offered_rps = part.arrived / part_s,
                                .goodput_rps = part.met / part_s,
                                .bad_ratio = part.arrived > 0 ? 1 - part.met / part.arrived : 0,
                                .busy_lanes = part.busy_s / part_s});
    }
  }
  return timelines;
}

}  // namespace tactus
