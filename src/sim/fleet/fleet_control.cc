#include "sim/fleet/fleet_control.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "planners/fleet_registry.h"
#include "planners/fleet_scaling.h"

namespace tactus {
namespace {

constexpr double kLeastItems = 0.01;  // a frame; planners size instances for something
constexpr double kLeastMbps = 0.01;
constexpr double kOfLinks = 0.25;  // the percentile that planners take
constexpr Duration kMeasureEvery = Seconds(1);
constexpr Duration kNeverAgain = Seconds(1'000'000'000);

Duration OrNever(double seconds) { return seconds > 0 ? FromSeconds(seconds) : kNeverAgain; }

}  // namespace

FleetControl::FleetControl(const FleetScenario& scenario, const FleetItems& items,
                           std::vector<const RateTrace*> links, FleetControlWorld& world)
    : scenario_(scenario), traces_(std::move(links)), world_(world), declared_(scenario.input) {
  for (FleetPipelineId::rep p = 0; p < declared_.pipelines.size(); ++p) {
    auto& stages = declared_.pipelines[p].stages;
    for (FleetStageId::rep s = 0; s < stages.size(); ++s) {
      stages[s].items =
          std::max(kLeastItems, items.MeanItems(FleetPipelineId{p}, FleetStageId{s}, 0, 60));
    }
  }
  for (std::size_t l = 0; l < traces_.size(); ++l) {
    if (traces_[l] == nullptr) continue;
    declared_.links[l].mbps =
        std::max(kLeastMbps, traces_[l]->Quantile(kStart, kStart + LinkMeter::kWindow, kOfLinks));
  }
  links_ = declared_.links;
}

Expected<FleetPlan> FleetControl::First() const {
  return PlanFleet(scenario_.run.planner, declared_);
}

LeaderOptions FleetControl::OptionsOf(const FleetRun& run) const {
  LeaderOptions options;
  options.rollout.prepare_within += FromSeconds(run.load_s);
  options.replan_every = OrNever(run.period_s);
  options.links_every = OrNever(run.period_s > 0 ? run.links_s : 0);
  options.scale_every = OrNever(run.autoscale_s);
  if (run.autoscale_s > 0) options.scaling = ScalingOf(run.planner);
  return options;
}

void FleetControl::Start(FleetPlan first) {
  first_ = std::move(first);
  const auto plan = [this](const FleetInput& input) -> Expected<FleetPlan> {
    if (!first_) return PlanFleet(scenario_.run.planner, input);
    return *std::exchange(first_, std::nullopt);
  };
  leader_.emplace(declared_, plan, OptionsOf(scenario_.run), LeaderKept{}, kStart,
                  static_cast<FleetHistory*>(this));
  for (const FleetDevice& device : declared_.devices) {
    NodeKept kept{.who = {.home = nodes_.size() + 1, .count = 1}};
    nodes_.push_back({.state = NodeState({.name = device.name}, std::move(kept)),
                      .arrived = std::vector<std::uint64_t>(declared_.models.size())});
    nodes_.back().state.WorkerUp({}, "", "");
  }
  Step(kStart);
  CHECK(!leader_->serving().none(), "all nodes are here, and nothing takes time before the start");
}

void FleetControl::OnPlan(TimePoint, PlanId id, const FleetInput&, const FleetPlan& plan) {
  coming_id_ = id;
  coming_ = plan;
}

void FleetControl::Measure(TimePoint now) {
  measure_at_ = now + kMeasureEvery;
  Measurements seen{.told = now + FromSeconds(scenario_.run.report_s)};
  for (Node& node : nodes_) {
    std::map<std::string, std::uint64_t> counts;
    for (std::size_t m = 0; m < node.arrived.size(); ++m) {
      counts[declared_.models[m]] = node.arrived[m];
    }
    node.rates.Add(now, counts);
    seen.rates.push_back(node.rates.Rates());
  }
  const TimePoint from = std::max(kStart, now - LinkMeter::kWindow);
  for (const RateTrace* each : traces_) {
    const bool known = each != nullptr && now > kStart;
    seen.mbps.push_back(known ? std::max(kLeastMbps, each->Quantile(from, now, kOfLinks)) : 0);
  }
  measured_.push_back(std::move(seen));
}

// A link is told by the first node at each of its ends, towards the first at the other.
void FleetControl::Tell(const Measurements& seen) {
  std::vector<std::vector<MeasuredLink>> ways(nodes_.size());
  for (std::size_t l = 0; l < seen.mbps.size(); ++l) {
    if (seen.mbps[l] <= 0) continue;
    links_[l].mbps = seen.mbps[l];
    const auto& devices = declared_.devices;
    const auto a = std::ranges::find(devices, links_[l].a, &FleetDevice::site);
    const auto b = std::ranges::find(devices, links_[l].b, &FleetDevice::site);
    if (a == devices.end() || b == devices.end()) continue;
    ways[static_cast<std::size_t>(a - devices.begin())].push_back({b->name, {seen.mbps[l], {}}});
  }
  for (std::size_t d = 0; d < nodes_.size(); ++d) {
    nodes_[d].state.Measure(seen.rates[d]);
    nodes_[d].state.MeasureLinks(std::move(ways[d]));
  }
}

// What the node is to do and to say; whether there was anything.
bool FleetControl::Act(DeviceId device, TimePoint now) {
  NodeState& state = nodes_[device.value()].state;
  if (state.Next() > now) return false;
  const NodeActions actions = state.Take(now);
  if (actions.keep) state.WasKept();
  // At the start all is loaded.
  const Duration takes = FromSeconds(leader_->serving().none() ? 0 : scenario_.run.load_s);
  for (const std::string& model : actions.load) loads_.push_back({now + takes, device, model});
  for (const std::string& model : actions.unload) state.Unloaded(model);
  for (const FromNode& message : actions.send) leader_->Receive(message, now);
  return true;
}

bool FleetControl::Lead(TimePoint now) {
  leader_->Step(now);
  const LeaderActions actions = leader_->Take();
  if (actions.keep) leader_->WasKept();
  for (const ToNode& order : actions.send) {
    const auto to = std::ranges::find(declared_.devices, order.node, &FleetDevice::name);
    nodes_[static_cast<std::size_t>(to - declared_.devices.begin())].state.Receive(order, now);
  }
  return !actions.send.empty();
}

void FleetControl::Step(TimePoint now) {
  stepped_ = now;
  if (now >= measure_at_) Measure(now);
  for (; !measured_.empty() && measured_.front().told <= now; measured_.pop_front()) {
    Tell(measured_.front());
  }
  for (bool more = true; more;) {
    for (; !loads_.empty() && loads_.front().ends <= now; loads_.pop_front()) {
      nodes_[loads_.front().device.value()].state.Loaded(loads_.front().model);
    }
    more = false;
    for (DeviceId::rep d = 0; d < nodes_.size(); ++d) more = Act(DeviceId{d}, now) || more;
    more = Lead(now) || more;
  }
  for (DeviceId::rep d = 0; d < nodes_.size(); ++d) {
    const PlanId id = nodes_[d].state.slice().id;
    if (std::exchange(nodes_[d].served, id) == id) continue;
    CHECK(id == coming_id_, "one plan at a time is rolled out");
    world_.Serve(DeviceId{d}, id, coming_);
  }
}

TimePoint FleetControl::Next() const {
  TimePoint next = std::min(measure_at_, leader_->Next());
  if (!measured_.empty()) next = std::min(next, measured_.front().told);
  if (!loads_.empty()) next = std::min(next, loads_.front().ends);
  for (const Node& node : nodes_) next = std::min(next, node.state.Next());
  return std::max(next, stepped_ + Millis(1));
}

}  // namespace tactus
