// A device of a simulated fleet as one plan has it: the dispatcher that serves, with its policy,
// and lanes where its instances run. Where the plan has windows a lane is a stream of an
// accelerator; where it has none a lane is an instance, which runs whenever it can beside the
// others, as rivals' containers do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/fleet_plan.h"
#include "core/policy.h"
#include "dispatch/dispatcher.h"

namespace tactus {

// By name, as a scenario gives it.
using PolicyMaker = std::function<Expected<std::unique_ptr<Policy>>(const std::string&)>;

// All stages of all pipelines, in their order: each is a model of a node's dispatcher.
class FleetModels {
 public:
  explicit FleetModels(const FleetInput& input);
  ModelId of(FleetPipelineId p, FleetStageId s) const {
    return ModelId{first_[p.value()] + s.value()};
  }
  FleetPipelineId pipeline(ModelId m) const { return stages_[m.value()].pipeline; }
  FleetStageId stage(ModelId m) const { return stages_[m.value()].stage; }
  std::size_t size() const { return stages_.size(); }

 private:
  struct Stage {
    FleetPipelineId pipeline;
    FleetStageId stage;
  };
  std::vector<ModelId::rep> first_;
  std::vector<Stage> stages_;
};

// What a batch of that size takes and asks for; between the sizes that were profiled in proportion.
// `part`: of its inference, at an early exit.
struct BatchCost {
  Duration total{};
  double use = 0;
};
BatchCost CostOfBatch(const FleetCost& cost, int batch, double part = 1);

// What a node asks of the world around it.
class FleetNodeWorld {
 public:
  virtual ~FleetNodeWorld() = default;
  // A batch begins on the device's accelerator and takes so long with all of it.
  virtual void Begin(std::uint32_t node, LaneId lane, BatchId batch, int accelerator,
                     Duration alone, double use, TimePoint now) = 0;
  // `accuracy`: of the exit that answers (FleetExit).
  virtual void Answered(std::uint32_t node, const Request& request, double accuracy) = 0;
  virtual void Refused(std::uint32_t node, const Request& request, DropReason reason) = 0;
};

struct FleetNodeOptions {
  std::uint32_t id = 0;  // in the world
  DeviceId device;
  std::vector<FleetInstance> instances;  // on the device
  bool windows = false;
  std::string policy;
  double spread = 0;  // FleetRun::spread
};

class FleetNode final : private Outbox {
 public:
  // An error for a policy that there is not. `input`, `models`, `rng` and `world` outlive it.
  static Expected<std::unique_ptr<FleetNode>> Make(FleetNodeOptions options,
                                                   const FleetInput& input,
                                                   const FleetModels& models,
                                                   const PolicyMaker& maker, Rng& rng,
                                                   FleetNodeWorld& world);

  DeviceId device() const { return options_.device; }
  const std::vector<FleetInstance>& instances() const { return options_.instances; }
  bool Serves(ModelId m) const { return served_->models[m.value()].loaded; }

  void Arrive(ModelId m, const Request& request) {
    dispatcher_->Arrive(first_[m.value()], request);
  }
  void Cancel(ModelId m, RequestId request) { dispatcher_->Cancel(first_[m.value()], request); }
  void Finish(LaneId lane, BatchId batch, TimePoint now, BatchStatus status = BatchStatus::kOk);
  TimePoint Step(TimePoint now) { return dispatcher_->Step(now); }
  // All lanes close, or open again. What ran there is reported lost by the world.
  void SetOpen(bool open);
  std::size_t running() const { return dispatcher_->running(); }
  std::size_t waiting() const { return dispatcher_->waiting(); }

 private:
  FleetNode(FleetNodeOptions options, const FleetInput& input, const FleetModels& models,
            std::unique_ptr<Policy> policy, Rng& rng, FleetNodeWorld& world);

  void Launch(const Batch& batch) override;
  void Abort(LaneId, BatchId) override {}  // it runs to its end; nobody is left in it
  void Reject(ModelId model, const Request& request, DropReason reason) override;
  void Complete(const Batch& batch, const BatchReport& report) override;

  std::shared_ptr<const ServedModels> MakeServed() const;
  const FleetCost& CostOf(ModelId m) const;
  std::shared_ptr<const Plan> MakePlan();

  const FleetNodeOptions options_;
  const FleetInput& input_;
  const FleetModels& models_;
  std::unique_ptr<Policy> policy_;
  Rng& rng_;
  FleetNodeWorld& world_;
  std::vector<ModelId> first_;  // by stage: in whose queue it is, where instances are shared
  std::vector<LaneSpec> lanes_;
  std::vector<int> accelerator_;  // by lane
  std::shared_ptr<const ServedModels> served_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace tactus
