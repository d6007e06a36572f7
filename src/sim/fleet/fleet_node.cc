#include "sim/fleet/fleet_node.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tactus {
namespace {

constexpr std::size_t kQueue = 1024;  // requests of one stage

const FleetCost& CostAt(const FleetInput& input, FleetPipelineId p, FleetStageId s, DeviceId d) {
  const ModelId model = input.pipelines[p.value()].stages[s.value()].model;
  const FleetCost* cost = input.CostOf(model, input.devices[d.value()].kind);
  CHECK(cost != nullptr, "a plan that was looked through runs models where they can");
  return *cost;
}

std::vector<ModelId> FirstOf(const std::vector<FleetInstance>& instances,
                             const FleetModels& models) {
  std::vector<ModelId> first;
  for (ModelId::rep m = 0; m < models.size(); ++m) first.push_back(ModelId{m});
  for (const FleetInstance& each : instances) {
    for (const FleetStageRef& also : each.also) {
      first[models.of(also.pipeline, also.stage).value()] = models.of(each.pipeline, each.stage);
    }
  }
  return first;
}

}  // namespace

FleetModels::FleetModels(const FleetInput& input) {
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    first_.push_back(static_cast<ModelId::rep>(stages_.size()));
    for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
      stages_.push_back({FleetPipelineId{p}, FleetStageId{s}});
    }
  }
}

BatchCost CostOfBatch(const FleetCost& cost, int batch, double part) {
  const auto total = [part](const FleetBatch& each) {
    if (part == 1) return each.total();
    const double infer = static_cast<double>(each.infer.count()) * part;
    return each.pre + Nanos(std::llround(infer)) + each.post;
  };
  const auto above = std::ranges::lower_bound(cost.batches, batch, {}, &FleetBatch::batch);
  if (above == cost.batches.end()) return {total(cost.batches.back()), cost.batches.back().use};
  if (above == cost.batches.begin() || above->batch == batch) return {total(*above), above->use};
  const FleetBatch& below = *std::prev(above);
  const double way =
      static_cast<double>(batch - below.batch) / static_cast<double>(above->batch - below.batch);
  const double ns = static_cast<double>(total(below).count()) * (1 - way) +
                    static_cast<double>(total(*above).count()) * way;
  return {Nanos(std::llround(ns)), below.use * (1 - way) + above->use * way};
}

Expected<std::unique_ptr<FleetNode>> FleetNode::Make(FleetNodeOptions options,
                                                     const FleetInput& input,
                                                     const FleetModels& models,
                                                     const PolicyMaker& maker, Rng& rng,
                                                     FleetNodeWorld& world) {
  auto policy = maker(options.policy);
  if (!policy) return std::unexpected(policy.error());
  return std::unique_ptr<FleetNode>(
      new FleetNode(std::move(options), input, models, std::move(*policy), rng, world));
}

FleetNode::FleetNode(FleetNodeOptions options, const FleetInput& input, const FleetModels& models,
                     std::unique_ptr<Policy> policy, Rng& rng, FleetNodeWorld& world)
    : options_(std::move(options)),
      input_(input),
      models_(models),
      policy_(std::move(policy)),
      rng_(rng),
      world_(world),
      first_(FirstOf(options_.instances, models)),
      served_(MakeServed()) {
  const auto plan = MakePlan();
  for (const LanePlan& lane : plan->lanes) lanes_.push_back(lane.spec);
  Outbox& outbox = *this;
  dispatcher_ = std::make_unique<Dispatcher>(
      DispatcherOptions{.queue_capacity = kQueue, .expiry = Expiry::kUnmeetable}, lanes_, *policy_,
      outbox);
  dispatcher_->Configure(served_);
  if (!policy_->traits().planner.empty()) dispatcher_->Adopt(plan);
}

const FleetCost& FleetNode::CostOf(ModelId m) const {
  return CostAt(input_, models_.pipeline(m), models_.stage(m), options_.device);
}

std::shared_ptr<const ServedModels> FleetNode::MakeServed() const {
  auto served = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows(models_.size());
  for (ModelId::rep m = 0; m < models_.size(); ++m) {
    const FleetPipeline& pipeline = input_.pipelines[models_.pipeline(ModelId{m}).value()];
    served->models.push_back({.name = pipeline.name, .slo = pipeline.slo, .loaded = false});
  }
  for (const FleetInstance& each : options_.instances) {
    const ModelId m = models_.of(each.pipeline, each.stage);
    Model& model = served->models[m.value()];
    if (model.loaded) continue;  // instances of a stage on a device are alike
    const FleetCost& cost = CostOf(m);
    model.name += '/' + input_.pipelines[each.pipeline.value()].stages[each.stage.value()].name;
    model.loaded = true;
    model.max_batch = each.batch;  // for which there is memory
    model.exits = {{.name = "1"}};
    ProfileTable::ModelRows& row = rows[m.value()];
    row.max_batch = model.max_batch;
    if (!cost.exits.empty()) model.exits.clear();
    for (const FleetExit& exit : cost.exits) {
      model.exits.push_back(
          {.name = std::to_string(model.exits.size() + 1), .accuracy = exit.accuracy});
    }
    row.exits = model.exit_count();
    for (std::size_t e = 0; e < model.exits.size(); ++e) {
      const double part = cost.exits.empty() ? 1 : cost.exits[e].part;
      for (int b = 1; b <= row.max_batch; ++b) {
        row.latency.push_back(CostOfBatch(cost, b, part).total);
      }
    }
  }
  served->profile = ProfileTable(1, rows);
  return served;
}

std::shared_ptr<const Plan> FleetNode::MakePlan() {
  const FleetDevice& device = input_.devices[options_.device.value()];
  auto plan = std::make_shared<Plan>();
  const auto add = [&](int accelerator) {
    plan->lanes.push_back({.spec = {.device = DeviceId{static_cast<DeviceId::rep>(accelerator)},
                                    .serves = ModelSet::None(models_.size())}});
    accelerator_.push_back(accelerator);
  };
  if (options_.windows) {
    for (int a = 0; a < device.accelerators; ++a) {
      for (int s = 0; s < device.streams; ++s) add(a);
    }
  }
  // A policy that reads no plan may run a stage on any stream of an accelerator that has it.
  const bool planned = !policy_->traits().planner.empty();
  for (const FleetInstance& each : options_.instances) {
    const ModelId m = models_.of(each.pipeline, each.stage);
    if (!options_.windows) add(each.accelerator);
    const int first = options_.windows ? each.accelerator * device.streams
                                       : static_cast<int>(plan->lanes.size()) - 1;
    const std::size_t own = static_cast<std::size_t>(first + (options_.windows ? each.stream : 0));
    LanePlan& lane = plan->lanes[own];
    lane.cycle = each.cycle;
    lane.entries.push_back(
        {.model = m, .batch = each.batch, .offset = each.offset, .length = each.length});
    lane.spec.serves.Insert(m);
    if (planned || !options_.windows) continue;
    for (int s = 0; s < device.streams; ++s) {
      plan->lanes[static_cast<std::size_t>(first + s)].spec.serves.Insert(m);
    }
  }
  for (LanePlan& lane : plan->lanes) {
    std::ranges::stable_sort(lane.entries, {}, &PlanEntry::offset);
    // Nothing runs there; a cycle of its own does no harm.
    if (lane.entries.empty()) lane.cycle = Millis(100);
  }
  return plan;
}

void FleetNode::Finish(LaneId lane, BatchId batch, TimePoint now, BatchStatus status) {
  dispatcher_->Finish(lane, batch, {.started = now, .ended = now, .status = status}, now);
}

void FleetNode::SetOpen(bool open) {
  for (LaneId::rep lane = 0; lane < lanes_.size(); ++lane) {
    dispatcher_->SetLaneOpen(LaneId{lane}, open);
  }
}

// Costs are 95th percentiles of what batches take, log-normal (1.645 deviations).
void FleetNode::Launch(const Batch& batch) {
  const FleetCost& model = CostOf(batch.model);
  const double part = model.exits.empty() ? 1 : model.exits[batch.exit.value()].part;
  const BatchCost cost = CostOfBatch(model, static_cast<int>(batch.requests.size()), part);
  double luck = 1;
  if (options_.spread > 0) luck = std::exp(options_.spread * (rng_.Normal() - 1.645));
  const auto alone = Nanos(std::llround(static_cast<double>(cost.total.count()) * luck));
  world_.Begin(options_.id, batch.lane, batch.id, accelerator_[batch.lane.value()],
               std::max(alone, Nanos(1)), cost.use, batch.start);
}

void FleetNode::Reject(ModelId, const Request& request, DropReason reason) {
  world_.Refused(options_.id, request, reason);
}

void FleetNode::Complete(const Batch& batch, const BatchReport&) {
  const std::vector<FleetExit>& exits = CostOf(batch.model).exits;
  const double accuracy = exits.empty() ? 1 : exits[batch.exit.value()].accuracy;
  for (const Request& request : batch.requests) world_.Answered(options_.id, request, accuracy);
}

}  // namespace tactus
