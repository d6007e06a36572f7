// What a placement of a pipeline's stages would give, before it runs: how long a frame takes in the
// worst case, what goes over links, what accelerators it keeps busy. Pure; shared by the planners
// of fleets. Where OctopInf's paper leaves a formula open, the choice is stated here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/fleet_plan.h"

namespace tactus {

// Where and how one stage runs.
struct StagePlacement {
  DeviceId device;
  int batch = 1;
  int instances = 1;
  // Items a second that they run in all, where they run those of other stages too
  // (fleet_sharing.h); 0: its own alone.
  double shared_rps = 0;

  bool operator==(const StagePlacement&) const = default;
};

// By pipeline, then stage.
using FleetPlacement = std::vector<std::vector<StagePlacement>>;

// The estimate of a batch of this size; null where it was not profiled there.
const FleetBatch* BatchOf(const FleetInput& input, ModelId model, DeviceId device, int batch);

// The largest batch that the device was profiled with, up to `most`; the smallest of all where none
// is. The device runs the model.
int LargestBatch(const FleetInput& input, ModelId model, DeviceId device, int most);

// Batches that are fixed instead of searched (Section IV-A3): of a first stage, of others on a
// source device, of others on a server.
struct StaticBatches {
  int first = 2, edge = 4, server = 8;

  int Of(std::size_t stage, bool at_source) const {
    return stage == 0 ? first : at_source ? edge : server;
  }
};

// The server whose accelerators have least to do, of those that run the model and that the source
// reaches; else none. `busy`: accelerators, by device.
std::optional<DeviceId> LeastBusyServer(const FleetInput& input, DeviceId source, ModelId model,
                                        std::span<const double> busy);

// The least number of instances with rate <= 0.8 n batch / time: a fifth is kept for bursts. At
// least 1, at most kMostInstances.
int InstancesFor(double rate_rps, const FleetBatch& batch);
inline constexpr double kRateMargin = 0.8;
inline constexpr int kMostInstances = 200;
// What the most instances that a stage gets leave of its items a second; 0 of any fewer, which
// InstancesFor counted.
double LeftByMost(double rate_rps, const FleetBatch& batch, int instances);

// The same of instances that run once in a cycle, in their windows: rate <= 0.8 n batch / cycle.
int WindowsFor(double rate_rps, const FleetBatch& batch, Duration cycle);

// How long a request waits for a free instance: Allen and Cunneen's approximation for batch service
// with n servers,
//   W = rho^(sqrt(2 (n + 1)) - 1) / (n (1 - rho)) (C_a^2 / b + C_s^2) / 2 L(b),  C_s = 0,
// forever at rho >= 1.
Duration QueueingTime(double rate_rps, double cv, int instances, const FleetBatch& batch);

// How long the first request of a batch waits for the others, at most a cycle; bursts fill it
// sooner: min((b - 1) / (rate (1 + cv^2)), cycle).
Duration FillingTime(double rate_rps, double cv, int batch, Duration cycle);

// Megabits a second over each link, by its index.
using LinkLoads = std::vector<double>;

// What a planner of fleets decides before anything gets a stream.
struct PlacedFleet {
  FleetPlacement placement;
  std::vector<FleetReason> reasons;  // of every stage
  LinkLoads links;
};

// How long one item takes over a link that carries `load_mbps`: size / bandwidth + rtt / 2, and as
// in an M/D/1 queue rho / (1 - rho) size / bandwidth for waiting; forever at rho >= 0.9. What is
// lost is sent again: it takes so much of the bandwidth, and an item waits a round trip for each
// time that some of its packets are sent again (ResendRounds).
Duration TransferTime(const FleetLink& link, double kilobytes, double load_mbps);

// How often, in the mean, some of so many packets are sent again until all of them are there, where
// each is lost with chance `loss`: the sum over k >= 1 of 1 - (1 - loss^k)^packets.
double ResendRounds(double packets, double loss);

// What this placement of the pipeline adds to links.
void AddLinkLoads(const FleetInput& input, FleetPipelineId p,
                  const std::vector<StagePlacement>& placed, double sign, LinkLoads& loads);

// The links that items of the pipeline cross, each once.
std::vector<std::size_t> LinksOf(const FleetInput& input, FleetPipelineId p,
                                 const std::vector<StagePlacement>& placed);

// The worst case along the longest path (Eq. 2 and 3): queueing, filling, the batch and transfers,
// from the source to the last stage. kForever where a queue or a link is overloaded.
inline constexpr Duration kForever = Seconds(1'000'000);
Duration WorstLatency(const FleetInput& input, FleetPipelineId p,
                      const std::vector<StagePlacement>& placed, const LinkLoads& loads);

// Accelerator seconds a second that the stage takes.
double BusyOf(double rate_rps, const FleetBatch& batch);

}  // namespace tactus
