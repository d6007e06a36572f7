// A plan as it is kept on disk: JSON with models by name and lanes by device and share, so that it
// can be read, edited and checked against what is there. `tactus plan gpulet --out` writes one,
// `tactus simulate --plan` runs it.
//
//   {"tactus_plan": 1, "planner": "gpulet", "scenario": "gpulets-equal", "profile": "...",
//    "models": [{"name": "LeNet", "slo_ms": 5, "rate_rps": 50}],      // what was planned for
//    "lanes": [{"device": 0, "share": 0.4, "cycle_ms": 2.4,
//               "entries": [{"model": "LeNet", "batch": 8, "offset_ms": 0, "length_ms": 2.1}]}]}
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/planner.h"

namespace tactus {

struct PlanFile {
  struct PlannedFor {
    std::string name;
    Duration slo{};
    double rate_rps = 0;
  };

  std::string planner;
  std::string scenario;
  std::string profile;             // where its latencies come from
  std::vector<PlannedFor> models;  // by the plan's ModelId
  Plan plan;                       // lanes by share: their class is FitPlan's to find
};

// `plan` is one for `input`.
PlanFile MakePlanFile(const Plan& plan, const PlanInput& input);

// `where` stands in messages for the file's name. Whether the plan fits anything is FitPlan's.
Expected<PlanFile> ParsePlan(std::string_view text, std::string_view where);
std::string PlanText(const PlanFile& file);

Expected<PlanFile> LoadPlan(const std::filesystem::path& path);
// The file is whole or as it was before.
Status SavePlan(const PlanFile& file, const std::filesystem::path& path);

// The plan in the models, devices and lane classes of `input`. kInvalidArgument names `where`, what
// does not fit (models that are missing or too many, a share that was not profiled, devices,
// memory, windows, SLOs) and the remedy. The rates of `input` need not be those that it was made
// for.
Expected<Plan> FitPlan(const PlanFile& file, std::string_view where, const PlanInput& input);

}  // namespace tactus
