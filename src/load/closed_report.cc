#include "load/closed_report.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

std::string TimeText(double us) {
  return us < 1000 ? fmt::format("{:.1f} us", us) : fmt::format("{:.2f} ms", us / 1000);
}

}  // namespace

std::string ToText(const ClosedLoopResult& result, int concurrency) {
  std::string text;
  const auto out = std::back_inserter(text);
  const bool alone = result.models.size() == 1;
  for (const ClosedLoopResult::OfModel& of : result.models) {
    fmt::format_to(out, "{}{} answers at concurrency {}: {:.0f} a second, P50 {}, P99 {}\n",
                   alone ? "" : of.name + ": ", of.answered, concurrency, of.per_second,
                   TimeText(of.p50_us), TimeText(of.p99_us));
    if (of.in_time == of.answered && of.refused + of.expired + of.failed == 0) continue;
    fmt::format_to(out, "  in time {} ({:.1f} a second), refused {}, expired {}, errors {}\n",
                   of.in_time, of.in_time_per_second, of.refused, of.expired, of.failed);
  }
  if (result.unanswered > 0) {
    fmt::format_to(out, "{} calls had no answer when the wait for the last was over\n",
                   result.unanswered);
  }
  if (!result.first_error.empty()) fmt::format_to(out, "first error: {}\n", result.first_error);
  return text;
}

RunReport ReportOf(const ClosedLoopResult& result, int concurrency) {
  RunReport run;
  run.scenario = fmt::format("closed loop, concurrency {}", concurrency);
  const auto add = [&run](Outcome outcome, std::int64_t calls) {
    run.all.requests += calls;
    run.all.outcomes[static_cast<int>(outcome)] += calls;
  };
  for (const ClosedLoopResult::OfModel& of : result.models) {
    add(Outcome::kMet, of.in_time);
    add(Outcome::kLate, of.answered - of.in_time);
    add(Outcome::kShed, of.refused);
    add(Outcome::kExpired, of.expired);
    add(Outcome::kError, of.failed);
    run.all.offered_rps += of.per_second;
    run.all.goodput_rps += of.in_time_per_second;
  }
  run.all.p50_ms = result.models.front().p50_us / 1000;
  run.all.p99_ms = result.models.front().p99_us / 1000;
  return run;
}

std::string GeneratorJson(const ClosedLoopResult& result) {
  nlohmann::json models = nlohmann::json::array();
  for (const ClosedLoopResult::OfModel& of : result.models) {
    models.push_back({{"name", of.name},
                      {"answered", of.answered},
                      {"in_time", of.in_time},
                      {"in_time_per_s", of.in_time_per_second},
                      {"refused", of.refused},
                      {"expired", of.expired},
                      {"failed", of.failed},
                      {"p50_ms", of.p50_us / 1000},
                      {"p99_ms", of.p99_us / 1000}});
  }
  const nlohmann::json generator = {{"failed", result.failed()},
                                    {"unanswered", result.unanswered},
                                    {"models", std::move(models)},
                                    {"first_error", result.first_error}};
  return generator.dump();
}

}  // namespace tactus
