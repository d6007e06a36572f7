// A fleet: devices of several kinds at sites, links between them, pipelines whose sources sit on
// devices; and a plan of it: which stage runs where, in what batches and windows. Immutable data
// that planners make, and that a controller and a simulator roll out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/ids.h"
#include "base/serving_time.h"

namespace tactus {

using SiteId = Id<struct SiteTag>;
using KindId = Id<struct DeviceKindTag>;
using FleetPipelineId = Id<struct FleetPipelineTag>;
using FleetStageId = Id<struct FleetStageTag>;  // in its pipeline
// A network that has no link between two devices.
inline constexpr std::size_t kNoLink = static_cast<std::size_t>(-1);
inline constexpr double kPacketBytes = 1500;  // what a link loses, it loses in these

struct FleetDevice {
  std::string name;
  KindId kind{0};
  SiteId site{0};
  int accelerators = 1;
  int streams = 1;       // of each accelerator: batches at once
  double memory_mb = 0;  // of each accelerator
  double most_use = 1;   // of an accelerator's throughput, summed over its streams (Eq. 5)
  bool server = false;   // takes stages of other devices' pipelines

  bool operator==(const FleetDevice&) const = default;
};

// Between two sites, in both directions. Conservative estimates: the 25th percentile of the last
// minute's bandwidth, say.
struct FleetLink {
  SiteId a{0};
  SiteId b{0};
  double mbps = 0;
  Duration rtt{};
  double loss = 0;  // of its packets, which are sent again: part of all, from 0 to below 1

  // What is left of it for what is not sent again.
  double carried_mbps() const { return mbps * (1 - loss); }
  bool operator==(const FleetLink&) const = default;
};

struct FleetStage {
  std::string name;
  ModelId model{0};
  std::vector<FleetStageId> after = {};  // earlier ones, in order
  double items = 1;                      // that it works on for each of the pipeline's frames, mean
  // Coefficient of variation of the gaps between items; below 0: derived from `items`
  // (CoefficientOf).
  double cv = -1;
  double in_kb = 0;   // of an item, as it is sent over a link
  double out_kb = 0;  // of an answer

  bool operator==(const FleetStage&) const = default;
};

struct FleetPipeline {
  std::string name;
  Duration slo{};
  DeviceId source{0};  // where its frames come from
  double rate_rps = 0;
  std::vector<FleetStage> stages;  // each after those that it waits for

  bool operator==(const FleetPipeline&) const = default;
};

// What a batch of a model costs on a device of a kind.
struct FleetBatch {
  int batch = 1;
  Duration pre{}, infer{}, post{};
  double peak_mb = 0;  // of intermediates
  double use = 0;      // of an accelerator's throughput while it runs

  Duration total() const { return pre + infer + post; }
  bool operator==(const FleetBatch&) const = default;
};
// Where a model may end early, of every batch: after a part of the time of `infer`. `post` follows.
struct FleetExit {
  double part = 1;
  double accuracy = 1;  // of an answer, beside one of the whole model

  bool operator==(const FleetExit&) const = default;
};
struct FleetCost {
  ModelId model{0};
  KindId kind{0};
  double weights_mb = 0;
  std::vector<FleetBatch> batches;    // ascending; of the whole model
  std::vector<FleetExit> exits = {};  // shallowest first, the last one whole; empty: it has none

  bool operator==(const FleetCost&) const = default;
};

struct FleetInput {
  std::vector<std::string> kinds, sites, models;  // names, by id
  std::vector<FleetDevice> devices;               // by DeviceId
  std::vector<FleetLink> links;
  std::vector<FleetPipeline> pipelines;  // by FleetPipelineId
  std::vector<FleetCost> costs;

  // Null: the model does not run on devices of that kind.
  const FleetCost* CostOf(ModelId model, KindId kind) const;
  // The index in links; kNoLink where there is none, as within a site.
  std::size_t LinkBetween(DeviceId from, DeviceId to) const;
  // The servers that may take stages of pipelines from there: which it reaches, and which reach
  // each other, the first of them being the sink. In their order.
  std::vector<DeviceId> ServersFor(DeviceId source) const;
  // Whether an answer gets from one to the other: at one site, or over a link.
  bool Reaches(DeviceId from, DeviceId to) const;
  // Items of the stage a second.
  double RateOf(FleetPipelineId p, FleetStageId s) const;

  bool operator==(const FleetInput&) const = default;
};

// CV of the gaps between a stage's items: as measured, or else of items that come together, so many
// for each frame: CV^2 = items - 1 from one item on, 1 - items below.
double CoefficientOf(const FleetStage& stage);

// A stage of a pipeline of the fleet.
struct FleetStageRef {
  FleetPipelineId pipeline;
  FleetStageId stage;

  auto operator<=>(const FleetStageRef&) const = default;
};

// One worker of a stage: it runs a batch of the stage in its window of every cycle of its stream.
struct FleetInstance {
  FleetPipelineId pipeline;
  FleetStageId stage;
  DeviceId device;
  int accelerator = 0;
  int stream = 0;
  int batch = 1;
  Duration offset{};
  Duration length{};  // 0: open, any time in the cycle; no window was found
  Duration cycle{};   // of its stream
  // Stages of the same model whose items come into its batches too (planners/fleet_sharing.h).
  std::vector<FleetStageRef> also = {};

  bool operator==(const FleetInstance&) const = default;
};

// Where the items of a stage go: to each of these devices in proportion to its weight.
struct FleetTarget {
  DeviceId device;
  double weight = 1;

  bool operator==(const FleetTarget&) const = default;
};
struct FleetRoute {
  FleetPipelineId pipeline;
  FleetStageId stage;
  std::vector<FleetTarget> to;

  bool operator==(const FleetRoute&) const = default;
};

// A stage of which less is sustained than comes.
struct FleetShortage {
  FleetPipelineId pipeline;
  FleetStageId stage;
  double missing_rps = 0;  // items a second
  std::string why;

  bool operator==(const FleetShortage&) const = default;
};

// Why a stage is where it is, for people.
struct FleetReason {
  FleetPipelineId pipeline;
  FleetStageId stage;
  std::string why;

  bool operator==(const FleetReason&) const = default;
};

struct FleetPlan {
  std::uint64_t epoch = 0;
  std::vector<FleetInstance> instances;  // by pipeline, then stage
  std::vector<FleetRoute> routes;        // of every stage that runs, each once
  std::vector<FleetShortage> short_of;
  std::vector<FleetReason> reasons;
  std::vector<Duration> latency;  // by pipeline: the estimate, worst case

  bool operator==(const FleetPlan&) const = default;
};

// kInvalidArgument names the first thing that makes no sense: a source on a device that no server's
// link reaches, a model that runs nowhere, a stage after itself, two devices of one name, numbers
// out of range.
Status CheckFleet(const FleetInput& input);

// What planners give: each stage's items go where it has instances, by how many there are.
std::vector<FleetRoute> RoutesOf(const std::vector<FleetInstance>& instances);

// What is wrong with the plan for this fleet; empty: nothing. Windows of a stream do not overlap
// and end within its cycle, memory and use are kept, every stage that is not said to be short has
// an instance, each runs where its model can, answers reach the next stage and the sink, and every
// stage that runs has a route, to devices where it runs.
// Use may be without a limit, as in plans that have no windows.
enum class UseLimit { kKept, kNone };
std::string FaultOf(const FleetPlan& plan, const FleetInput& input, UseLimit use = UseLimit::kKept);

}  // namespace tactus
