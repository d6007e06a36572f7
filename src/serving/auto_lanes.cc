#include "serving/auto_lanes.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "experiment/auto_lanes.h"
#include "planners/lane_choice.h"
#include "platform/processors.h"
#include "runtime/models/model_profile.h"
#include "runtime/models/served_model.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/model_config.h"
#include "service/model_folders.h"
#include "serving/device.h"
#include "serving/host_lanes.h"
#include "serving/plans.h"
#include "serving/runtime_options.h"
#include "workload/profile_threads.h"

namespace tactus {
namespace {

// Those that are loaded at the start.
std::vector<std::string> ModelsAtStart(const ServeOptions& o) {
  const bool all = o.model_control != "explicit" || std::ranges::count(o.load_models, "*") > 0;
  return all ? o.folders->List().value_or(std::vector<std::string>{}) : o.load_models;
}

// The versions that are served, as far as they can be read: what cannot is refused when it is
// loaded. No ensembles, whose steps are models of their own, and none that run on the host's lanes.
std::vector<ModelSpec> SpecsAtStart(const ServeOptions& o) {
  std::vector<ModelSpec> specs;
  for (const std::string& model : ModelsAtStart(o)) {
    const std::filesystem::path folder = o.folders->Of(model);
    if (HoldsEnsemble(folder, "") || (o.engine.empty() && RunsOnHost(folder, ""))) continue;
    for (const std::int64_t version :
         ListVersions(folder, "").value_or(std::vector<std::int64_t>{})) {
      auto spec = ReadModelSpec(folder, version, "", {PlatformsOf(o)});
      if (spec) specs.push_back(*std::move(spec));
    }
  }
  return specs;
}

ModelDemand DemandOf(const ModelSpec& spec, const ServeOptions& o,
                     const std::optional<ProfileFile>& profile) {
  const Duration slo = spec.slo > Duration{} ? spec.slo : FromMillis(o.default_slo_ms);
  ModelDemand demand{.model = spec.name, .slo = slo};
  // Of which threads a profile in the model's own folder is, nobody knows.
  if (!profile || !spec.profile.empty()) return demand;
  auto known = FindProfile(spec, profile);
  if (!known || !*known) return demand;
  if (spec.max_batch > 0) (*known)->max_batch = std::min((*known)->max_batch, spec.max_batch);
  return DemandOf(**known, profile->machine.threads, slo,
                  {.percentile = o.percentile, .jitter_ms = o.jitter_ms});
}

// Whether its lanes are parts of this machine's processors, and of no plan.
bool OnProcessors(const ServeOptions& o) {
  return o.engine != "emulated" && !OnDevices(o) && !SplitsDevice(o);
}

ServeOptions WithLanes(ServeOptions o, int lanes, int threads) {
  o.lanes = lanes;
  o.threads = threads;
  return o;
}

}  // namespace

ServeOptions WithLanes(ServeOptions o) {
  const bool given = o.threads != kUnsaid;
  if (o.lanes == kUnsaid) o.lanes = given ? 1 : kAutoLanes;
  if (o.lanes != kAutoLanes) return WithLanes(o, o.lanes, given ? o.threads : 1);
  if (!OnProcessors(o)) return WithLanes(o, 1, given ? o.threads : 1);
  const std::vector<ModelSpec> specs = SpecsAtStart(o);
  const bool emulated = !specs.empty() && std::ranges::all_of(specs, [](const ModelSpec& spec) {
    return spec.platform == "emulated";
  });
  if (emulated) return WithLanes(o, 1, given ? o.threads : 1);
  std::optional<ProfileFile> profile;
  if (!o.profile.empty()) {
    // An error is said where the profile is loaded to serve with it.
    if (auto read = LoadProfile(o.profile)) profile = *std::move(read);
  }
  const Processors found = FindProcessors();
  LaneQuestion question{
      .processors = found.usable(), .slots = o.slots, .threads = given ? o.threads : 0};
  for (const ModelSpec& spec : specs) question.demands.push_back(DemandOf(spec, o, profile));
  const LaneChoice choice = ChooseLanes(question);
  o.chosen_lanes = {"found " + Text(found), "chose " + choice.why,
                    "--lanes N and --threads N set them; `tactus profile` measures what more "
                    "threads bring"};
  return WithLanes(std::move(o), choice.lanes, choice.threads);
}

int ThreadsOfProfile(const ServeOptions& o, const ProfileFile& profile) {
  if (o.chosen_lanes.empty() || AtThreads(profile, o.threads).models.empty()) return o.threads;
  return profile.machine.threads;
}

}  // namespace tactus
