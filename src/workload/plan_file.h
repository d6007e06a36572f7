// A plan as it is kept on disk: JSON with models by name and lanes by device and share, so that it
// can be read, edited and checked against what is there. `tactus plan gpulet --out` writes one,
// `tactus simulate --plan` and `tactus serve --plan` run it.
//
//   {"tactus_plan": 1, "planner": "gpulet", "scenario": "gpulets-equal", "profile": "...",
//    "shares": [20, 40, 60, 80], "exponent": 1, "utilization_base": "largest-batch",   // percent;
//    or else
//               // "on_share": [{"percent": 50, "profile": "half.json"}, ...], from the plan's
//               // folder on; or neither, where nobody knows
//    "models": [{"name": "LeNet", "slo_ms": 5, "rate_rps": 50}],      // what was planned for
//    "lanes": [{"device": 0, "share": 0.4, "cycle_ms": 2.4,
//               "entries": [{"model": "LeNet", "batch": 8, "offset_ms": 0, "length_ms": 2.1}]}]}
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/planner.h"
#include "workload/share_profiles.h"

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
  // What parts of a device it was made for, and how it was known what batches take there: by the
  // stand-in of a scenario's [plan] shares, percent, exponent and utilization_base; or by what was
  // measured on each part up to the whole. A simulation takes them from here; a server has its own
  // --on-share. The profiles' paths are as they are used; written are those of files that lie
  // beside or below the plan from there on, so that they can be moved together, and the others in
  // full.
  std::vector<double> shares;
  double exponent = 1;
  std::string utilization_base = "largest-batch";
  std::vector<MeasuredShare> on_share;
};

// `plan` is one for `input`.
PlanFile MakePlanFile(const Plan& plan, const PlanInput& input);

// `where` stands in messages for the file's name. Whether the plan fits anything is FitPlan's.
// Paths are taken, and given, as they are.
Expected<PlanFile> ParsePlan(std::string_view text, std::string_view where);
std::string PlanText(const PlanFile& file);

Expected<PlanFile> LoadPlan(const std::filesystem::path& path);
// The file is whole or as it was before.
Status SavePlan(const PlanFile& file, const std::filesystem::path& path);

// The plan in the models, devices and lane classes of `input`. kInvalidArgument names `where`, what
// does not fit (models that are missing or too many, a share that was not profiled, devices, more
// than two lanes on one, memory, windows, SLOs) and the remedy. The rates of `input` need not be
// those that it was made for.
Expected<Plan> FitPlan(const PlanFile& file, std::string_view where, const PlanInput& input);

// What else a reader of a plan that fits `input` must know: models with another SLO there than the
// plan was made for, or, where `rates` are known there, with a load that is more than 1 % above the
// plan's. The first of each, and how many more; nothing where there is none.
enum class KnownRates { kNo, kYes };
std::optional<std::string> ExplainPlanMismatch(const PlanFile& file, const PlanInput& input,
                                               KnownRates rates);

}  // namespace tactus
