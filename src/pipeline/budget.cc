#include "pipeline/budget.h"

#include <algorithm>
#include <ranges>

namespace tactus {
namespace {

// The longest path from the request's arrival to each stage's end.
std::vector<Duration> UpTo(const PipelineGraph& graph, std::span<const Duration> latency) {
  std::vector<Duration> up_to(graph.size());
  for (const StageId stage : graph.order()) {
    Duration start{};
    for (const StageId other : graph.before(stage)) start = std::max(start, up_to[other.value()]);
    up_to[stage.value()] = start + latency[stage.value()];
  }
  return up_to;
}

}  // namespace

std::vector<Duration> LeastAfter(const PipelineGraph& graph, std::span<const Duration> latency) {
  std::vector<Duration> after(graph.size());
  for (const StageId stage : graph.order() | std::views::reverse) {
    Duration& most = after[stage.value()];
    for (const StageId other : graph.next(stage)) {
      most = std::max(most, latency[other.value()] + after[other.value()]);
    }
  }
  return after;
}

TimePoint Redivide(TimePoint now, TimePoint deadline, Duration need, Duration behind) {
  if (behind <= Duration{} || now >= deadline) return deadline;
  const double part = ToSeconds(need) / ToSeconds(need + behind);
  return now + FromSeconds(ToSeconds(deadline - now) * part);
}

std::vector<StageId> LongestPath(const PipelineGraph& graph, std::span<const Duration> latency) {
  const std::vector<Duration> up_to = UpTo(graph, latency);
  const auto length = [&](StageId stage) { return up_to[stage.value()]; };
  std::vector<StageId> path = {*std::ranges::max_element(graph.order(), {}, length)};
  while (!graph.before(path.back()).empty()) {
    path.push_back(*std::ranges::max_element(graph.before(path.back()), {}, length));
  }
  std::ranges::reverse(path);
  return path;
}

Duration PathLength(std::span<const StageId> path, std::span<const Duration> latency) {
  Duration length{};
  for (const StageId stage : path) length += latency[stage.value()];
  return length;
}

std::vector<Duration> DeadlinesByBudget(const PipelineGraph& graph,
                                        std::span<const Duration> budget) {
  return UpTo(graph, budget);
}

std::vector<Duration> DeadlinesByLatency(const PipelineGraph& graph,
                                         std::span<const Duration> latency, Duration slo) {
  const std::vector<Duration> up_to = UpTo(graph, latency);
  const std::vector<Duration> behind = LeastAfter(graph, latency);
  std::vector<Duration> deadlines;
  for (std::size_t s = 0; s < graph.size(); ++s) {
    const double part = ToSeconds(up_to[s]) / ToSeconds(up_to[s] + behind[s]);
    // The last stages' exactly, whatever the division rounds to.
    deadlines.push_back(behind[s] == Duration{} ? slo : FromSeconds(ToSeconds(slo) * part));
  }
  return deadlines;
}

std::vector<Duration> BudgetsOf(const PipelineGraph& graph, std::span<const Duration> deadline) {
  std::vector<Duration> budgets;
  for (std::size_t s = 0; s < graph.size(); ++s) {
    Duration start{};
    for (const StageId other : graph.before(StageId{static_cast<StageId::rep>(s)})) {
      start = std::max(start, deadline[other.value()]);
    }
    budgets.push_back(deadline[s] - start);
  }
  return budgets;
}

}  // namespace tactus
