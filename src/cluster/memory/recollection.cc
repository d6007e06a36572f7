#include "cluster/memory/recollection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/memory/plan_text.h"
#include "fleet/slices.h"
#include "workload/fleet_plan_file.h"

namespace tactus {
namespace {

constexpr std::chrono::hours kLinkWindow{1};
// Who led before may have had a clock that was ahead.
constexpr std::chrono::days kClocksApart{1};

// None: it is a plan of another fleet.
std::optional<RememberedPlan> TakenFrom(const knowledge::Plan& plan, const FleetInput& declared,
                                        const std::string& mark) {
  const auto input = ParseInput(plan.input, declared);
  if (!input || input->mark != mark) return std::nullopt;
  RememberedPlan remembered{.id = {plan.term, plan.epoch},
                            .nodes = {input->devices.begin(), input->devices.end()},
                            .links = input->links,
                            .adopted = plan.fate == knowledge::PlanFate::kAdopted};
  std::set<std::string> away;
  for (const FleetDevice& each : declared.devices) {
    if (!remembered.nodes.contains(each.name)) away.insert(each.name);
  }
  std::vector<LostPipeline> lost;
  auto file = ParseFleetPlan(plan.plan, "the knowledge base", Without(declared, away, lost));
  if (file) remembered.plan = std::move(file->plan);
  return remembered;
}

}  // namespace

Expected<Recollection> Recollect(knowledge::Store& store, const FleetInput& declared,
                                 std::string_view planner, knowledge::UtcTime now) {
  Recollection recollection;
  const auto highest = store.HighestSeen();
  if (!highest) return std::unexpected(highest.error());
  recollection.highest = {.term = highest->term, .epoch = highest->epoch};

  // The newest may serve everywhere although its leader did not live to say so.
  const std::string mark = FleetMark(declared, planner);
  if (highest->epoch > 0) {
    const auto newest = store.PlanOf(highest->epoch);
    if (!newest && newest.error().code != ErrorCode::kNotFound) {
      return std::unexpected(newest.error());
    }
    if (newest && newest->fate == knowledge::PlanFate::kProposed) {
      auto plan = TakenFrom(*newest, declared, mark);
      if (plan) recollection.remembered.plans.push_back(*std::move(plan));
    }
  }
  const auto adopted = store.LastAdoptedPlan();
  if (!adopted) return std::unexpected(adopted.error());
  if (*adopted) {
    auto plan = TakenFrom(**adopted, declared, mark);
    if (plan) recollection.remembered.plans.push_back(*std::move(plan));
  }

  const knowledge::Window window{now - kLinkWindow, now + kClocksApart};
  for (FleetLink link : declared.links) {
    const std::string &a = declared.sites[link.a.value()], &b = declared.sites[link.b.value()];
    const auto there = store.LinkBandwidth(a, b, window), back = store.LinkBandwidth(b, a, window);
    if (!there) return std::unexpected(there.error());
    if (!back) return std::unexpected(back.error());
    const std::optional<double>&out = *there, &in = *back;
    if (!out && !in) continue;
    link.mbps = out && in ? std::min(*out, *in) : out ? *out : *in;
    recollection.remembered.links.push_back(link);
  }
  return recollection;
}

}  // namespace tactus
