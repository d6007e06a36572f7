// A device that is split into lanes: what it is, and what its planner is asked.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/model.h"
#include "core/model_spec.h"
#include "core/plan.h"
#include "placement/plan_question.h"
#include "workload/share_profiles.h"

namespace tactus {

// Some cores of the processor are one device, or it is one of its own (EngineTraits::device). Its
// parts are the lanes, as a plan says.
struct SplitOptions {
  int cores = 1;  // a share of the device is so many of its cores, and threads of the engine
  // What batches take on each share; models of which they know nothing cannot be served.
  std::vector<ShareProfile> shares = {};
  // Memory that models may take together, by what is known of them.
  double memory_mb = std::numeric_limits<double>::infinity();
  bool on_device = false;  // no cores: lanes lie side by side on it
};

struct LoadedModel {
  const Model& model;
  const ModelSpec& spec;
};

// What the model holds while it is loaded, in MB: the most that a profile of a share says, else the
// files of its graphs; 0 where neither is known.
double MemoryOf(const ModelSpec& spec, const std::vector<ShareProfile>& shares);

// The longest mean or P99 that the profiles know, of any model on any share.
Duration LongestBatch(const std::vector<ShareProfile>& shares);

// What a planner is asked for these models; rates are 0. An error for a model that a share's
// profile lacks, or whose SLO not even the whole device keeps.
Expected<PlanQuestion> MakePlanQuestion(const std::vector<LoadedModel>& models,
                                        const SplitOptions& split, const ProfileOptions& options);

}  // namespace tactus
