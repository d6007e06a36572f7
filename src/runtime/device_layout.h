// A device that is split into lanes: what it is, how it is split, and what its planner is asked.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "core/model.h"
#include "core/plan.h"
#include "placement/plan_question.h"
#include "workload/share_profiles.h"

namespace tactus {

// Some cores of the processor are one device, whose parts are the lanes, as a plan says.
struct SplitOptions {
  int cores = 1;  // a share of the device is so many of its cores, and threads of the engine
  // What batches take on each share; models of which they know nothing cannot be served.
  std::vector<ShareProfile> shares;
  // That models may take together, by what is known of them.
  double memory_mb = std::numeric_limits<double>::infinity();
};

// How a device is split.
struct DeviceLayout {
  // Lanes by LaneId, with their share and who is there; without entries: closed. Null before the
  // first.
  std::shared_ptr<const Plan> plan;
  std::vector<std::string> models;  // by the plan's ModelId
  std::int64_t changes = 0;         // plans that came to serve
  std::int64_t given_up = 0;        // plans of which a lane could not be had
  // Lanes that end what they run before they go, or before a model leaves them, and for how long
  // the first of them has been at it.
  int draining = 0;
  Duration drain{};
};

struct LoadedModel {
  const Model& model;
  const ModelSpec& spec;
};

// What the model holds while it is loaded, in MB: the most that a profile of a share says, else the
// files of its graphs; 0 where neither is known.
double MemoryOf(const ModelSpec& spec, const std::vector<ShareProfile>& shares);

// That the profiles know, of whichever model on whichever share: its mean or its P99.
Duration LongestBatch(const std::vector<ShareProfile>& shares);

// What a planner is asked for these models; rates are 0. An error for a model that a share's
// profile lacks, or whose SLO not even the whole device keeps.
Expected<PlanQuestion> MakePlanQuestion(const std::vector<LoadedModel>& models,
                                        const SplitOptions& split, const ProfileOptions& options);

}  // namespace tactus
