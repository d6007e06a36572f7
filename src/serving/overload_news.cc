#include "serving/overload_news.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "base/serving_time.h"
#include "core/request.h"

namespace tactus {
namespace {

std::uint64_t Of(const OutcomeCounts& counts, Outcome outcome) {
  return counts[static_cast<std::size_t>(outcome)];
}

std::uint64_t MissedOf(const OutcomeCounts& counts) {
  return Of(counts, Outcome::kLate) + Of(counts, Outcome::kShed) + Of(counts, Outcome::kExpired);
}

double Share(std::uint64_t missed, std::uint64_t in_time) {
  return static_cast<double>(missed) /
         static_cast<double>(std::max<std::uint64_t>(missed + in_time, 1));
}

// How many more there are in `to`, where `from` may not know the model yet.
OutcomeCounts Between(const CallsByModel& from, const CallsByModel::value_type& to) {
  OutcomeCounts counts = to.second;
  const auto before = from.find(to.first);
  if (before == from.end()) return counts;
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= before->second[i];
  return counts;
}

}  // namespace

std::optional<std::string> OverloadNews::Second(const CallsByModel& calls, std::uint64_t refused) {
  Total now{.calls = calls, .refused = refused, .missed = refused};
  for (const auto& [model, counts] : calls) {
    now.in_time += Of(counts, Outcome::kMet);
    now.missed += MissedOf(counts);
  }
  const Total last = seconds_.empty() ? Total() : seconds_.back();
  const Total first = seconds_.empty() ? Total() : seconds_.front();
  seconds_.push_back(now);
  if (seconds_.size() > kSeconds) seconds_.pop_front();
  if (!begun_) {
    const std::uint64_t missed = now.missed - first.missed;
    if (missed < kLeast || Share(missed, now.in_time - first.in_time) < kShare) return std::nullopt;
    begun_ = first;
    lasts_ = quiet_ = 0;
    return Begins(first, now);
  }
  ++lasts_;
  const bool quiet = Share(now.missed - last.missed, now.in_time - last.in_time) < kQuietShare;
  quiet_ = quiet ? quiet_ + 1 : 0;
  if (quiet_ < kQuiet) return std::nullopt;
  const std::uint64_t missed = now.missed - begun_->missed;
  const std::uint64_t all = missed + now.in_time - begun_->in_time;
  begun_.reset();
  return fmt::format("the overload has ended after {} s: {} of {} calls were not answered in time",
                     std::max(lasts_ - kQuiet, 1), missed, all);
}

std::string OverloadNews::Begins(const Total& from, const Total& to) const {
  const std::uint64_t missed = to.missed - from.missed;
  std::string text = fmt::format("overload: {} of the last {} calls were not answered in time",
                                 missed, missed + to.in_time - from.in_time);
  std::uint64_t most = 0;
  std::string whose;
  for (const auto& each : to.calls) {
    const OutcomeCounts counts = Between(from.calls, each);
    if (MissedOf(counts) <= most) continue;
    most = MissedOf(counts);
    whose = fmt::format("most of model '{}': {} shed, {} expired, {} late", each.first.first,
                        Of(counts, Outcome::kShed), Of(counts, Outcome::kExpired),
                        Of(counts, Outcome::kLate));
  }
  if (most > 0) text += "; " + whose;
  if (to.refused > from.refused) {
    text += fmt::format("; {} refused as they came", to.refused - from.refused);
  }
  return text;
}

std::unique_ptr<RepeatedTask> LogOverloads(const ServingMetrics& metrics, const Log& log) {
  auto second = [&metrics, log, news = OverloadNews()]() mutable {
    if (const auto line = news.Second(metrics.of_clients(), metrics.no_room())) log->warn(*line);
  };
  return std::make_unique<RepeatedTask>("overloads", Every(Seconds(1), std::move(second)));
}

}  // namespace tactus
