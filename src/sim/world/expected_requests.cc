#include "sim/world/expected_requests.h"

#include <fmt/format.h>

namespace tactus {
namespace {

// Of callers all of whose calls are refused.
double MostCalls(const Scenario& scenario) {
  const auto sources = static_cast<double>(ArrivalRates(scenario).size());
  return sources * scenario.callers * (1 + scenario.duration_s * 1e3 / scenario.retry_ms);
}

}  // namespace

double ExpectedRequests(const Scenario& scenario) {
  double total = 0;
  for (const double rate : Rates(scenario)) total += rate;
  return total * scenario.duration_s;
}

Status CheckRequests(const Scenario& scenario, double most) {
  const bool closed = scenario.process == ArrivalProcess::kClosed;
  const double requests = closed ? MostCalls(scenario) : ExpectedRequests(scenario);
  if (requests <= most) return {};
  return InvalidArgument(fmt::format(
      "{:.0f} requests {} come in {:g} s, and a simulation keeps {:.0f} at most: lower {}",
      requests, closed ? "could" : "would", scenario.duration_s, most,
      closed ? "callers or duration_s, or raise retry_ms" : "rate_rps or duration_s"));
}

}  // namespace tactus
