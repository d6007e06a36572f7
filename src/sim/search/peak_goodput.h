// The peak goodput of a policy on a scenario, simulated: a search for each seed, a run at each
// seed's peak, and what no scheduler beats beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/expected.h"
#include "core/policy.h"
#include "metrics/report.h"
#include "sim/search/goodput_search.h"
#include "workload/bounds.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// A policy keeps state, so every run gets a new one.
using PolicyFactory = std::function<Expected<std::unique_ptr<Policy>>()>;

// Sets the rate of all models together, in their proportions; those that state a rate of their own
// keep their share of the total.
void SetTotalRate(Scenario& scenario, double rate_rps);

// The models as the bounds see them: the final exit's fit on the quickest lanes, the SLO, the
// scenario's rate. A policy that exits early is not held by these bounds.
Expected<std::vector<AffineModel>> AffineModels(const Scenario& scenario,
                                                const ProfileFile& profile);
// The lanes in units of the quickest, for those bounds.
double QuickestLanes(const Scenario& scenario);
// The largest relative error of those fits: how far the bounds may be off.
Expected<double> FitError(const Scenario& scenario, const ProfileFile& profile);

struct PeakOptions {
  // start_rps 0: the fluid limit.
  GoodputSearchOptions search{.start_rps = 0};
  std::vector<std::uint64_t> seeds = {1};
  // A rate is judged by the violation ratio of all requests together, not of the worst model: of
  // models that are alike this takes far fewer requests. Not for pipelines.
  bool together = false;
  // Runs at these multiples of each seed's peak besides: below 1 they show whether lanes are used
  // in proportion to the load, above 1 whether the goodput keeps its flat top (Symphony, 3.5).
  std::vector<double> multiples;
  // Called before every simulation with the seed's place and the number of probes it took so far.
  std::function<void(std::size_t seed_index, std::size_t probes)> on_probe;
};

struct LoadedRuns {
  double multiple = 1;  // of the peak
  // By seed; none for a seed at which no rate passed, or for a load that has no plan.
  std::vector<RunReport> runs;
};

struct PeakResult {
  PeakGoodput peak;
  std::vector<GoodputPeak> searches;  // by seed
  LoadedRuns at_peak;                 // each run holds `peak`
  std::vector<LoadedRuns> beside;     // by PeakOptions::multiples
};

// The least total rate at which some 10 requests of every model count, or of all together: at less,
// a model may have none at all, and what is found is chance.
double LeastJudgedRate(const Scenario& scenario, bool together = false);

// The mean over seeds of each seed's peak: arrivals differ between seeds, so the spread of the
// peaks is what another day would bring. The scenario's own seed and rate do not matter. The
// search goes no lower than LeastJudgedRate, and a rate for which a planner has no plan does not
// pass. Errors: a profile that does not cover the scenario, a
// policy that cannot be made, a run too short to judge any rate by, lanes that follow the load
// ([autoscale]: the highest load of how many?).
Expected<PeakResult> FindPeakGoodput(const Scenario& scenario, const ProfileFile& profile,
                                     const PolicyFactory& make_policy, const PeakOptions& options);

struct LeastLanesOptions {
  double bad_limit = 0.01;  // of every model, at every seed
  std::vector<std::uint64_t> seeds = {1};
  int most = 1024;
  // Called before every simulation with the number of lanes it tries and how many came before it.
  std::function<void(int lanes, std::size_t probes)> on_probe;
};

struct LeastLanes {
  int lanes = 0;  // 0: `most` are too few
  // No policy that drops nothing and always runs the final exit does with fewer; `most` at the
  // most.
  int fluid = 0;
  // The same without rounding, and without `most`.
  double fluid_exact = 0;
  // By seed, on `lanes`; where those are 0, on `most` up to the seed at which they were too few.
  std::vector<RunReport> runs;
};

// The fewest lanes on which the policy sustains the scenario's own rate. Those of [[lane_kinds]]
// are given; the others are plain. It takes the violation ratios to fall as lanes are added. Errors
// as above.
Expected<LeastLanes> FindLeastLanes(const Scenario& scenario, const ProfileFile& profile,
                                    const PolicyFactory& make_policy,
                                    const LeastLanesOptions& options);

}  // namespace tactus
