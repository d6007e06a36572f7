#include "sim/world/front.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tactus {
namespace {

constexpr double kLately = 0.05;  // s
// What CPU-bound lanes keep of a core that short pieces of work interrupt.
constexpr double kMostOfACore = 0.5;

}  // namespace

Front::Front(const Scenario& scenario)
    : costs_(scenario.front_call_us > 0 || scenario.front_byte_ns > 0),
      shared_core_(scenario.front_cores == "shared"),
      reads_all_(scenario.front_reads == "all"),
      half_(FromMillis(scenario.front_call_us / 2 * 1e-3)),
      ns_per_byte_(scenario.front_byte_ns),
      unread_bytes_(static_cast<std::size_t>(scenario.front_unread_bytes)),
      free_(static_cast<std::size_t>(scenario.front_threads), kStart),
      at_(kStart) {
  for (const ScenarioModel& model : scenario.models) bytes_.push_back(model.bytes);
  for (const ScenarioPipeline& pipeline : scenario.pipelines) bytes_.push_back(pipeline.bytes);
  gates_.resize(bytes_.size());
}

Front::Read Front::Take(std::uint32_t source, Duration slo, TimePoint now) {
  // The header is read when a thread comes to it, and the body with it if it is to be.
  const TimePoint begun = std::max(now, *std::ranges::min_element(free_));
  std::optional<BodyGate::Place> place;
  const bool large = !reads_all_ && bytes_[source] >= BodyGate::kLeastBytes;
  if (large) place = gates_[source].Enter(begun + slo, begun);
  const bool unread = large && !place;
  const std::size_t bytes = unread ? std::min(unread_bytes_, bytes_[source]) : bytes_[source];
  const double body = ns_per_byte_ * static_cast<double>(bytes);
  Read read = Work(half_ + Nanos(std::llround(body)), now);
  read.place = place;
  read.unread = unread;
  return read;
}

TimePoint Front::Answer(TimePoint now) {
  const Read work = Work(half_, now);
  delay_.Note(work.begun - now);
  return work.done;
}

TimePoint Front::Refuse(std::uint32_t source, bool read, Duration slo, TimePoint now) {
  static const std::string kClient = "all";
  const TimePoint told = pace_.When(kClient, read ? bytes_[source] : 0, slo, now);
  return std::max(told, Work(half_, now).done);
}

Duration Front::Stretched(Duration alone, TimePoint now) const {
  if (!costs_ || !shared_core_) return alone;
  const double left = 1 - std::min(Load(now), kMostOfACore);
  return Nanos(std::llround(static_cast<double>(alone.count()) / left));
}

Front::Read Front::Work(Duration cost, TimePoint now) {
  TimePoint& free = *std::ranges::min_element(free_);
  const TimePoint begun = std::max(free, now);
  free = begun + cost;
  load_ = Load(now) + ToSeconds(cost) / kLately;
  at_ = now;
  return {.begun = begun, .done = free};
}

double Front::Load(TimePoint now) const {
  return load_ * std::exp(-ToSeconds(now - at_) / kLately);
}

}  // namespace tactus
