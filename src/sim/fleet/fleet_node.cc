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

}  // namespace

FleetModels::FleetModels(const FleetInput& input) {
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    first_.push_back(static_cast<ModelId::rep>(stages_.size()));
    for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
      stages_.push_back({FleetPipelineId{p}, FleetStageId{s}});
    }
  }
}

BatchCost CostOfBatch(const FleetCost& cost, int batch) {
  const auto above = std::ranges::lower_bound(cost.batches, batch, {}, &FleetBatch::batch);
  if (above == cost.batches.end()) return {cost.batches.back().total(), cost.batches.back().use};
  if (above == cost.batches.begin() || above->batch == batch) return {above->total(), above->use};
  const FleetBatch& below = *std::prev(above);
  const double part =
      static_cast<double>(batch - below.batch) / static_cast<double>(above->batch - below.batch);
  const double ns = static_cast<double>(below.total().count()) * (1 - part) +
                    static_cast<double>(above->total().count()) * part;
  return {Nanos(std::llround(ns)), below.use * (1 - part) + above->use * part};
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
    const FleetCost& cost = CostAt(input_, each.pipeline, each.stage, options_.device);
    model.name += '/' + input_.pipelines[each.pipeline.value()].stages[each.stage.value()].name;
    model.loaded = true;
    model.max_batch = each.batch;  // for which there is memory
    model.exits = {{.name = "1"}};
    ProfileTable::ModelRows& row = rows[m.value()];
    row.exits = 1;
    row.max_batch = model.max_batch;
    for (int b = 1; b <= row.max_batch; ++b) row.latency.push_back(CostOfBatch(cost, b).total);
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
  const BatchCost cost = CostOfBatch(
      CostAt(input_, models_.pipeline(batch.model), models_.stage(batch.model), options_.device),
      static_cast<int>(batch.requests.size()));
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
  for (const Request& request : batch.requests) world_.Answered(options_.id, request);
}

}  // namespace tactus
