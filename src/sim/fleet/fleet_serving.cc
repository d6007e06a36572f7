// The devices of a simulated fleet, their plans, and what is done to both.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "planners/fleet_registry.h"
#include "sim/fleet/fleet_world.h"

namespace tactus {

Status FleetWorld::Start() {
  std::vector<const RateTrace*> rates(input_.links.size());
  for (std::size_t l = 0; l < rates.size(); ++l) {
    const bool traced = l < scenario_.link_rates.size() && !scenario_.link_rates[l].empty();
    rates[l] = traced ? &links_[2 * l].rate() : nullptr;
  }
  const FleetRun& run = scenario_.run;
  control_ = std::make_unique<FleetControl>(scenario_, items_, std::move(rates),
                                            static_cast<FleetControlWorld&>(*this));
  if (auto known = CheckFleetPlanner(run.planner); !known) return known;
  Expected<FleetPlan> first = options_.plan != nullptr ? *options_.plan : control_->First();
  if (!first) return std::unexpected(first.error());
  const std::string fault = FaultOf(*first, input_, windows_ ? UseLimit::kKept : UseLimit::kNone);
  if (!fault.empty()) {
    return InvalidArgument("the plan is not one of this fleet: " + fault +
                           "; make one with tactus plan fleet");
  }
  for (const std::string& name : {run.policy, run.server_policy}) {
    if (name.empty()) continue;
    if (auto policy = options_.policies(name); !policy) return std::unexpected(policy.error());
  }
  control_->Start(*std::move(first));
  heap_.Push(control_->Next(), EventClass::kReplan, 0);
  Rng phases = Rng::Stream(scenario_.run.seed, "fleet/phases");
  for (FleetPipelineId::rep p = 0; p < input_.pipelines.size(); ++p) {
    const double rate = input_.pipelines[p].rate_rps;
    const TimePoint at = kStart + FromSeconds(rate > 0 ? phases.Uniform() / rate : 0);
    if (rate > 0 && at < end_) heap_.Push(at, EventClass::kArrival, p);
  }
  for (const DeviceCrash& each : options_.crashes) {
    heap_.Push(each.at, EventClass::kLaneLost, each.device.value());
    heap_.Push(each.back, EventClass::kLaneBack, each.device.value());
  }
  return {};
}

void FleetWorld::Simulate() {
  for (;;) {
    TimePoint now = heap_.NextAt();
    if (!ends_.empty()) now = std::min(now, ends_.top_key());
    if (!wakes_.empty()) now = std::min(now, wakes_.top_key());
    if (now == kNever) break;
    EndBatches(now);
    while (heap_.NextAt() == now) {
      const Event event = heap_.top();
      heap_.Pop();
      Handle(event, now);
    }
    while (!wakes_.empty() && wakes_.top_key() <= now) {
      const std::uint32_t node = wakes_.top();
      wakes_.Erase(node);
      Touch(node);
    }
    Settle(now);
  }
}

void FleetWorld::Handle(const Event& event, TimePoint now) {
  switch (event.kind) {
    case EventClass::kArrival:
      return Arrive(FleetPipelineId{event.subject}, now);
    case EventClass::kStage:
      return LinkDone(event.subject, now);
    case EventClass::kLaneLost:
      return Crash(DeviceId{event.subject}, now);
    case EventClass::kLaneBack:
      return Restore(DeviceId{event.subject});
    case EventClass::kReplan:
      return Control(now);
    default:
      CHECK(false, "no such event in a fleet");
  }
}

void FleetWorld::EndBatches(TimePoint now) {
  while (!ends_.empty() && ends_.top_key() <= now) {
    const std::uint32_t a = ends_.top();
    for (std::uint32_t b; (b = accelerators_[a].TakeEnded(now)) != Accelerator::kNone;) {
      const RunningBatch ended = batches_[b];
      batches_[b].used = false;
      free_batches_.push_back(b);
      nodes_[ended.node].node->Finish(ended.lane, ended.batch, now);
      Touch(ended.node);
    }
    const TimePoint next = accelerators_[a].next();
    next == kNever ? ends_.Erase(a) : ends_.Put(a, next);
  }
}

// Until nothing more happens at this instant. Whoever is told something may add to the lists.
void FleetWorld::Settle(TimePoint now) {
  do {
    while (!endings_.empty() || !starts_.empty()) {
      for (std::size_t i = 0; i < endings_.size(); ++i) {
        const Ending ending = endings_[i];
        End(ending, now);
      }
      endings_.clear();
      for (std::size_t i = 0; i < starts_.size(); ++i) {
        const std::uint32_t run = starts_[i];
        StartRun(run, now);
      }
      starts_.clear();
    }
    if (touched_.empty()) break;
    const std::uint32_t place = touched_.back();
    touched_.pop_back();
    nodes_[place].touched = false;
    FleetNode* const node = nodes_[place].node.get();
    if (node == nullptr) continue;
    const TimePoint wake = node->Step(now);
    wake == kNever ? wakes_.Erase(place) : wakes_.Put(place, std::max(wake, now + Nanos(1)));
    if (nodes_[place].generations == 0) DropNode(place);
  } while (true);
}

void FleetWorld::Touch(std::uint32_t node) {
  if (nodes_[node].touched) return;
  nodes_[node].touched = true;
  touched_.push_back(node);
}

void FleetWorld::Begin(std::uint32_t node, LaneId lane, BatchId batch, int accelerator,
                       Duration alone, double use, TimePoint now) {
  if (free_batches_.empty()) {
    free_batches_.push_back(static_cast<std::uint32_t>(batches_.size()));
    batches_.emplace_back();
  }
  const std::uint32_t place = free_batches_.back();
  free_batches_.pop_back();
  const std::uint32_t a = AcceleratorOf(nodes_[node].node->device(), accelerator);
  batches_[place] = {.node = node, .lane = lane, .batch = batch, .accelerator = a, .used = true};
  accelerators_[a].Begin(place, now, alone, use);
  ends_.Put(a, accelerators_[a].next());
}

// All devices are ready for the plan when the first of them serves it.
void FleetWorld::Serve(DeviceId device, PlanId id, const FleetPlan& plan) {
  if (serving_ == kNoGeneration || generations_[serving_].id != id) Adopt(id, plan);
  for (FleetPipelineId::rep p = 0; p < input_.pipelines.size(); ++p) {
    if (input_.pipelines[p].source != device) continue;
    SetNeeds(FleetPipelineId{p}, plan);
    ++generations_[serving_].pipelines;
    const std::uint32_t before = std::exchange(serving_from_[p], serving_);
    if (before == kNoGeneration) continue;
    --generations_[before].pipelines;
    MayRetire(before);
  }
}

void FleetWorld::Adopt(PlanId id, const FleetPlan& plan) {
  Generation made{.id = id, .plan = plan};
  made.routes.resize(models_.size());
  for (const FleetRoute& route : plan.routes) {
    auto& [to, credit] = made.routes[models_.of(route.pipeline, route.stage).value()];
    to = route.to;
    credit.assign(to.size(), 0);
  }
  MakeNodes(made);
  std::uint32_t place = 0;  // one that is over
  while (place < generations_.size() && !generations_[place].id.none()) ++place;
  if (place == generations_.size()) generations_.emplace_back();
  generations_[place] = std::move(made);
  const std::uint32_t before = std::exchange(serving_, place);
  ++report_.plans;
  if (before != kNoGeneration) MayRetire(before);
}

// Where the plan that serves has the same instances, its dispatcher goes on.
void FleetWorld::MakeNodes(Generation& made) {
  for (DeviceId::rep d = 0; d < input_.devices.size(); ++d) {
    std::vector<FleetInstance> slice;
    for (const FleetInstance& each : made.plan.instances) {
      if (each.device == DeviceId{d}) slice.push_back(each);
    }
    std::uint32_t place = kNoNode;
    if (!slice.empty() && serving_ != kNoGeneration) {
      place = generations_[serving_].nodes[d];
      if (place != kNoNode && nodes_[place].node->instances() != slice) place = kNoNode;
    }
    if (!slice.empty() && place == kNoNode) place = NewNode(DeviceId{d}, std::move(slice));
    if (place != kNoNode) ++nodes_[place].generations;
    made.nodes.push_back(place);
  }
}

std::uint32_t FleetWorld::NewNode(DeviceId device, std::vector<FleetInstance> instances) {
  std::uint32_t place = 0;
  while (place < nodes_.size() && (nodes_[place].node != nullptr || nodes_[place].touched)) ++place;
  const FleetRun& run = scenario_.run;
  const bool own = input_.devices[device.value()].server && !run.server_policy.empty();
  auto node = FleetNode::Make({.id = place,
                               .device = device,
                               .instances = std::move(instances),
                               .windows = windows_,
                               .policy = own ? run.server_policy : run.policy,
                               .spread = run.spread},
                              input_, models_, options_.policies, luck_, *this);
  CHECK(node.has_value(), "a policy that was made once can be made again");
  if (place == nodes_.size()) {
    nodes_.emplace_back();
    std::vector<std::pair<std::uint32_t, TimePoint>> wakes;
    while (!wakes_.empty()) {
      wakes.emplace_back(wakes_.top(), wakes_.top_key());
      wakes_.Erase(wakes_.top());
    }
    wakes_.Resize(nodes_.size());
    for (const auto& [id, at] : wakes) wakes_.Put(id, at);
  }
  nodes_[place].node = std::move(*node);
  if (down_[device.value()] > 0) nodes_[place].node->SetOpen(false);
  return place;
}

void FleetWorld::MayRetire(std::uint32_t generation) {
  Generation& gone = generations_[generation];
  if (generation == serving_ || gone.pipelines > 0 || gone.frames > 0) return;
  for (const std::uint32_t node : gone.nodes) {
    if (node != kNoNode && --nodes_[node].generations == 0) DropNode(node);
  }
  gone = {};
}

// One that nobody keeps to, once the last of its batches has ended.
void FleetWorld::DropNode(std::uint32_t node) {
  if (nodes_[node].node == nullptr || nodes_[node].node->running() > 0) return;
  wakes_.Erase(node);
  nodes_[node].node.reset();
}

Duration FleetWorld::HopTime(DeviceId from, DeviceId to, double kilobytes) const {
  if (input_.devices[from.value()].site == input_.devices[to.value()].site) return {};
  const std::size_t l = input_.LinkBetween(from, to);
  if (l == kNoLink) return {};
  const FleetLink& link = control_->link(l);
  const double mbps = link.carried_mbps();
  return FromSeconds(std::min(1e3, kilobytes * 8e-3 / mbps)) + link.rtt / 2;
}

Duration FleetWorld::SinkHop(FleetPipelineId p, FleetStageId s, DeviceId from) const {
  const FleetStage& stage = input_.pipelines[p.value()].stages[s.value()];
  return HopTime(from, SinkOf(p), stage.out_kb);
}

// What each stage needs of a frame's time: the way of its input, its batch, and the last ones the
// way to the sink.
void FleetWorld::SetNeeds(FleetPipelineId p, const FleetPlan& plan) {
  const FleetPipeline& pipeline = input_.pipelines[p.value()];
  std::vector<const FleetInstance*> of(pipeline.stages.size());
  for (const FleetInstance& each : plan.instances) {
    if (each.pipeline == p) of[each.stage.value()] = &each;
    for (const FleetStageRef& also : each.also) {
      if (also.pipeline == p) of[also.stage.value()] = &each;
    }
  }
  std::vector<Duration> needs;
  for (const FleetFlowStage& flow_stage : stages_[p.value()]) {
    const FleetStage& stage = pipeline.stages[flow_stage.stage.value()];
    const FleetInstance* const at = of[flow_stage.stage.value()];
    Duration need{};
    if (!flow_stage.crop && at != nullptr) {
      const KindId kind = input_.devices[at->device.value()].kind;
      need = CostOfBatch(*input_.CostOf(stage.model, kind), at->batch).total;
      DeviceId from = pipeline.source;
      if (!stage.after.empty()) {
        const FleetInstance* const before = of[stage.after.front().value()];
        if (before != nullptr) from = before->device;
      }
      need += HopTime(from, at->device, stage.in_kb);
      if (flow_stage.last) need += SinkHop(p, flow_stage.stage, at->device);
    }
    needs.push_back(need);
  }
  flow_.Adopt(p.value(), needs);
}

void FleetWorld::Crash(DeviceId device, TimePoint now) {
  ++down_[device.value()];
  for (std::uint32_t b = 0; b < batches_.size(); ++b) {
    const RunningBatch lost = batches_[b];
    if (!lost.used || nodes_[lost.node].node->device() != device) continue;
    accelerators_[lost.accelerator].Stop(b, now);
    const TimePoint next = accelerators_[lost.accelerator].next();
    next == kNever ? ends_.Erase(lost.accelerator) : ends_.Put(lost.accelerator, next);
    batches_[b].used = false;
    free_batches_.push_back(b);
    nodes_[lost.node].node->Finish(lost.lane, lost.batch, now, BatchStatus::kLost);
    Touch(lost.node);
  }
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].node == nullptr || nodes_[n].node->device() != device) continue;
    nodes_[n].node->SetOpen(false);
    Touch(n);
  }
}

void FleetWorld::Restore(DeviceId device) {
  if (--down_[device.value()] > 0) return;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].node == nullptr || nodes_[n].node->device() != device) continue;
    nodes_[n].node->SetOpen(true);
    Touch(n);
  }
}

void FleetWorld::Control(TimePoint now) {
  if (now >= end_) return;
  control_->Step(now);
  heap_.Push(control_->Next(), EventClass::kReplan, 0);
}

}  // namespace tactus
