// A fleet's plan cut into what each node must know of it, and in which order they take it over.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/fleet_plan.h"
#include "fleet/messages.h"

namespace tactus {

// A slice for each of `nodes`, by name; empty ones for those of which the plan says nothing. The
// source of a pipeline's frames routes all of its stages: it sends each its input and has the
// answer back.
std::map<std::string, FleetSlice> SlicesOf(const FleetPlan& plan, const FleetInput& input,
                                           PlanId id, const std::set<std::string>& nodes);

// Adds what each node needs of the leader's repository, as `digests` by name have it: the models of
// its instances, and the folders of the pipelines that it routes.
void AddModels(const std::map<std::string, std::string>& digests,
               std::map<std::string, FleetSlice>& slices);

// Who takes over before whom: first those that route nothing, then those that route to the last
// stages, at the end the sources.
std::vector<std::vector<std::string>> WavesOf(const std::map<std::string, FleetSlice>& slices,
                                              const FleetInput& input);

struct LostPipeline {
  std::string pipeline;
  std::string why;  // it has no place: "its source 'north' is away"

  bool operator==(const LostPipeline&) const = default;
};

// The fleet without some of its devices, and without pipelines whose frames come from them or that
// then have a stage for which no device is left: `lost` gets those.
FleetInput Without(const FleetInput& input, const std::set<std::string>& devices,
                   std::vector<LostPipeline>& lost);

// The fleet with the rates that are measured, by model: of a pipeline's frames, and items of a
// stage for each frame. Where several stages have one model its rate is divided as declared. What
// is measured counts from a tenth of what is declared on; of a model that is not in `rates` the
// declaration holds.
FleetInput Measured(const FleetInput& declared, const std::map<std::string, double>& rates);

// Readings of the ways between nodes, by both their names.
using LinkReadings = std::map<std::pair<std::string, std::string>, LinkReading>;
// The fleet with the links that are measured. Several nodes may cross one link: the slowest rate
// and the longest round trip hold. What is not measured is as declared.
FleetInput WithLinks(FleetInput declared, const LinkReadings& readings);
// Whether a plan for the one need not suit the other: a link carries less than half, or more than
// twice, of what it did.
bool LinksDiffer(const std::vector<FleetLink>& a, const std::vector<FleetLink>& b);

}  // namespace tactus
