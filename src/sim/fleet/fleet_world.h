// The world of a simulated fleet (sim/fleet/fleet_simulation.h): one event heap for all devices and
// links, one Flow for all pipeline requests. A frame keeps to the plan by which its source routed
// when it came: a new plan has dispatchers of its own where it changes anything, and those of the
// old one end what is theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/indexed_heap.h"
#include "pipeline/flow.h"
#include "sim/fleet/accelerator.h"
#include "sim/fleet/fleet_control.h"
#include "sim/fleet/fleet_node.h"
#include "sim/fleet/fleet_simulation.h"
#include "sim/network/link.h"
#include "sim/world/event_heap.h"

namespace tactus {

class FleetWorld final : private FleetNodeWorld, private FleetControlWorld, private FlowOutbox {
 public:
  FleetWorld(const FleetScenario& scenario, const FleetSimulationOptions& options,
             FleetPipelines pipelines);

  // An error where planner, policy or plan are wrong.
  Status Start();
  void Simulate();
  FleetReport Report() const;

 private:
  enum class RunState : std::uint8_t { kFree, kStarting, kOnLink, kQueued, kToSink };
  // A stage's run on one item, from the Flow's Start on until the Flow hears what became of it.
  struct Run {
    RunKey key;
    TimePoint deadline;
    DeviceId from;        // where its input is, then where its answer is
    double accuracy = 1;  // of its input, then of its answer: of the exits that made it, multiplied
    std::uint32_t node = 0;
    RequestId sent;
    std::uint32_t place = 0;  // in its frame's runs
    RunState state = RunState::kFree;
    SendOutcome link = SendOutcome::kDelivered;
    bool cancelled = false;
  };
  struct Frame {
    FleetPipelineId pipeline{0};
    std::uint32_t generation = 0;
    std::int64_t number = 0;
    double t_s = 0;  // of its arrival
    TimePoint arrival, deadline;
    std::vector<std::uint32_t> runs;
    bool ended = false;
  };
  struct Ending {  // of a run, for the Flow
    std::uint32_t run = 0;
    bool answered = false;
    DropReason reason = DropReason::kExpired;
  };
  // A plan that serves, or whose frames are not all through.
  struct Generation {
    PlanId id;
    FleetPlan plan;
    std::vector<std::uint32_t> nodes;  // by device; kNoNode
    // By stage as a model: where its items go.
    struct Routes {
      std::vector<FleetTarget> to;
      std::vector<double> credit;  // whose turn it is (base/weighted_turn.h)
    };
    std::vector<Routes> routes;
    std::int64_t frames = 0;
    std::size_t pipelines = 0;  // whose sources route by it
  };
  struct NodePlace {
    std::unique_ptr<FleetNode> node;
    int generations = 0;  // that use it
    bool touched = false;
  };
  struct RunningBatch {
    std::uint32_t node = 0;
    LaneId lane;
    BatchId batch;
    std::uint32_t accelerator = 0;
    bool used = false;
  };
  static constexpr std::uint32_t kNoNode = static_cast<std::uint32_t>(-1);
  static constexpr std::uint32_t kNoGeneration = static_cast<std::uint32_t>(-1);

  // fleet_world.cc: frames and runs.
  void Start(const RunKey& key, TimePoint now, TimePoint deadline) override;
  void Lost(const RunKey&, TimePoint) override {}
  void Cancel(const RunKey& key) override;
  void Ended(const PipelineEnd& end) override;
  void Answered(std::uint32_t node, const Request& request, double accuracy) override;
  void Refused(std::uint32_t node, const Request& request, DropReason reason) override;
  void Arrive(FleetPipelineId p, TimePoint now);
  void StartRun(std::uint32_t run, TimePoint now);
  void Enter(std::uint32_t run, TimePoint now);
  void Crop(std::uint32_t run, const FleetFlowStage& stage, TimePoint now);
  void Send(std::uint32_t run, DeviceId to, double kilobytes, TimePoint latest, RunState state,
            TimePoint now);
  void LinkDone(std::uint32_t run, TimePoint now);
  void End(const Ending& ending, TimePoint now);
  void Tell(const Ending& ending, TimePoint now);
  void CountResult(const Run& run, TimePoint now);
  std::uint32_t NewRun();
  void FreeRun(std::uint32_t run);
  void FreeFrame(PipelineRequestId id);
  FleetStageReport& CountOf(const Run& run);
  const FleetFlowStage& StageOf(const Run& run) const;
  FleetPipelineId PipelineOf(const RunKey& key) const;
  Link* LinkFor(DeviceId from, DeviceId to);
  DeviceId SinkOf(FleetPipelineId p) const { return sinks_[p.value()]; }

  // fleet_serving.cc: devices, plans and what is done to them.
  void Begin(std::uint32_t node, LaneId lane, BatchId batch, int accelerator, Duration alone,
             double use, TimePoint now) override;
  void Handle(const Event& event, TimePoint now);
  void EndBatches(TimePoint now);
  void Settle(TimePoint now);
  void Touch(std::uint32_t node);
  void Serve(DeviceId device, PlanId id, const FleetPlan& plan) override;
  void Scaled() override { ++report_.scalings; }
  void Adopt(PlanId id, const FleetPlan& plan);
  void MakeNodes(Generation& made);
  void SetNeeds(FleetPipelineId p, const FleetPlan& plan);
  // Ends it if it neither serves nor has frames.
  void MayRetire(std::uint32_t generation);
  void DropNode(std::uint32_t node);
  // What the way of a last answer to the sink takes, as it looks now.
  Duration SinkHop(FleetPipelineId p, FleetStageId s, DeviceId from) const;
  Duration HopTime(DeviceId from, DeviceId to, double kilobytes) const;
  std::uint32_t NewNode(DeviceId device, std::vector<FleetInstance> instances);
  void Crash(DeviceId device, TimePoint now);
  void Restore(DeviceId device);
  void Control(TimePoint now);
  std::uint32_t AcceleratorOf(DeviceId device, int accelerator) const {
    return first_accelerator_[device.value()] + static_cast<std::uint32_t>(accelerator);
  }

  const FleetScenario& scenario_;
  const FleetSimulationOptions& options_;
  const FleetInput& input_;
  const bool windows_;
  const TimePoint end_;
  const FleetModels models_;
  const FleetItems items_;
  const std::vector<std::vector<FleetFlowStage>> stages_;  // by pipeline, by StageId
  Flow flow_;
  EventHeap heap_{64};
  Rng luck_;

  std::vector<Link> links_;  // by link of the input, twice: from a to b, and back
  std::vector<DeviceId> sinks_;
  std::vector<std::uint32_t> first_accelerator_;  // by device
  std::vector<Accelerator> accelerators_;
  IndexedHeap<TimePoint> ends_;  // of batches, by accelerator
  std::vector<RunningBatch> batches_;
  std::vector<std::uint32_t> free_batches_;

  std::vector<NodePlace> nodes_;
  IndexedHeap<TimePoint> wakes_;  // by node
  std::vector<std::uint32_t> touched_;
  std::vector<Generation> generations_;
  std::uint32_t serving_ = kNoGeneration;    // the last that any device serves
  std::vector<std::uint32_t> serving_from_;  // by pipeline: by which its source routes
  std::vector<int> down_;                    // by device: crashes that are not over
  std::unique_ptr<FleetControl> control_;

  std::vector<std::int64_t> frames_of_;  // by pipeline: that came
  std::vector<Frame> frames_;            // by PipelineRequestId
  std::vector<Run> runs_;
  std::vector<std::uint32_t> free_runs_;
  std::vector<Ending> endings_;
  std::vector<std::uint32_t> starts_;
  DeviceId answering_;  // where the answer lies of which the Flow is told
  double answering_accuracy_ = 1;
  std::uint64_t sent_ = 0;

  FleetReport report_;
  std::vector<std::vector<std::int64_t>> latency_ms_;  // by pipeline: results, by whole ms
};

}  // namespace tactus
