#include "sim/search/peak_goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "sim/simulation.h"
#include "workload/arrivals.h"

namespace tactus {
namespace {

Expected<RunReport> RunAt(const Scenario& base, const ProfileFile& profile,
                          const PolicyFactory& make_policy, std::uint64_t seed, double rate_rps) {
  Scenario scenario = base;
  scenario.seed = seed;
  SetTotalRate(scenario, rate_rps);
  auto policy = make_policy();
  if (!policy) return std::unexpected(policy.error());
  const auto result = Simulate(scenario, profile, **policy);
  if (!result) return std::unexpected(result.error());
  return MakeReport(scenario, profile, *result);
}

// By a planner that finds no plan for this rate on these lanes.
bool IsRefused(const Expected<RunReport>& run) {
  return !run && run.error().code == ErrorCode::kResourceExhausted;
}

constexpr double kLeastCounted = 10;  // requests of every model, for a rate to be judged

// Of what arrives (ArrivalName): of a pipeline its requests', and nothing of their models. NaN
// where something could have come and none was counted.
std::vector<double> BadRatiosOf(const RunReport& run, const Scenario& scenario,
                                bool together = false) {
  if (together) {
    return {run.all.requests == 0 ? std::numeric_limits<double>::quiet_NaN() : run.all.bad_ratio};
  }
  const std::vector<double> rates = ArrivalRates(scenario);
  std::vector<double> ratios;
  const auto add = [&](std::int64_t counted, double bad_ratio) {
    const bool unseen = counted == 0 && rates[ratios.size()] > 0;
    ratios.push_back(unseen ? std::numeric_limits<double>::quiet_NaN() : bad_ratio);
  };
  for (const ModelSummary& model : run.models) {
    add(model.figures.requests, model.staged ? 0 : model.figures.bad_ratio);
  }
  for (const PipelineSummary& pipeline : run.pipelines) {
    add(pipeline.requests(), pipeline.bad_ratio);
  }
  return ratios;
}

// A model of which nothing is known does not pass: else a search that goes down would end in a run
// too short for its rate.
bool Pass(const std::vector<double>& ratios, double limit) {
  return std::ranges::all_of(ratios, [&](double ratio) { return ratio <= limit; });
}

// `highest_rps`: a load far above all that the search will offer.
Status CheckSearchable(const Scenario& scenario, double highest_rps, double sustained_rps,
                       bool together = false) {
  if (scenario.scale_interval_s > 0) {
    return InvalidArgument(
        fmt::format("{}: its lanes follow the load ([autoscale]), so there is no one highest load, "
                    "and no least "
                    "number of lanes; --set autoscale.interval_s=0 takes all {} lanes at once",
                    scenario.name, scenario.lanes));
  }
  const double least_rps = LeastJudgedRate(scenario, together);
  if (least_rps <= highest_rps) return {};
  return InvalidArgument(fmt::format(
      "{}: too short a run to judge a load by: for {:.0f} requests{} to count it takes {:.3g} r/s, "
      "and there are about {:.3g}; --set duration_s=... makes it longer, and warmup_requests and "
      "warmup_s do not count",
      scenario.name, kLeastCounted, together ? "" : " of every model", least_rps, sustained_rps));
}

// The model that held the peak down for most of the seeds.
std::string LimitingModel(const Scenario& scenario, const std::vector<GoodputPeak>& searches) {
  std::map<std::size_t, int> votes;
  for (const GoodputPeak& search : searches) {
    if (search.failed_rps > 0 && search.refused.empty()) ++votes[search.limiting_model];
  }
  if (votes.empty()) return "";
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return ArrivalName(scenario, most->first);
}

}  // namespace

void SetTotalRate(Scenario& scenario, double rate_rps) {
  double total = 0;
  for (const double rate : Rates(scenario)) total += rate;
  const double factor = rate_rps / total;
  scenario.rate_rps *= factor;
  const auto scale = [factor](std::optional<double>& rate) {
    if (rate) *rate *= factor;
  };
  for (ScenarioModel& model : scenario.models) scale(model.rate_rps);
  for (ScenarioPipeline& pipeline : scenario.pipelines) scale(pipeline.rate_rps);
}

Expected<std::vector<AffineModel>> AffineModels(const Scenario& scenario,
                                                const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  const auto served = MakeModels(scenario, profile);
  if (!served) return std::unexpected(served.error());
  const std::vector<double> rates = Rates(scenario);
  const double speed = LaneKinds(scenario).front().speed;
  std::vector<AffineModel> models;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    ProfiledExit last = selected->models[i].exits.back();
    Fit(last);  // a cut-down profile, or an imported one, may come with another fit
    models.push_back({.alpha_ms = last.alpha_ms / speed,
                      .beta_ms = last.beta_ms / speed,
                      .slo_ms = scenario.pipelines.empty() ? scenario.models[i].slo_ms
                                                           : ToMillis((*served)[i].slo),
                      .rate_rps = rates[i]});
  }
  return models;
}

double QuickestLanes(const Scenario& scenario) {
  const std::vector<LaneKind> kinds = LaneKinds(scenario);
  double lanes = 0;
  for (const LaneKind& kind : kinds) lanes += kind.count * kind.speed / kinds.front().speed;
  return lanes;
}

Expected<double> FitError(const Scenario& scenario, const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  double worst = 0;
  for (const ProfiledModel& model : selected->models) {
    ProfiledExit last = model.exits.back();
    Fit(last);
    worst = std::max(worst, last.fit_error);
  }
  return worst;
}

double LeastJudgedRate(const Scenario& scenario, bool together) {
  double total = 0;
  for (const double rate : Rates(scenario)) total += rate;
  double rarest = together ? total : std::numeric_limits<double>::infinity();
  for (const double rate : ArrivalRates(scenario)) {
    if (together) break;
    if (rate > 0) rarest = std::min(rarest, rate);
  }
  const auto skipped = static_cast<double>(scenario.warmup_requests);
  return (kLeastCounted * total / rarest + skipped) / (scenario.duration_s - scenario.warmup_s);
}

Expected<PeakResult> FindPeakGoodput(const Scenario& scenario, const ProfileFile& profile,
                                     const PolicyFactory& make_policy, const PeakOptions& options) {
  if (options.seeds.empty()) return InvalidArgument("a goodput search needs a seed");
  if (Status open = CheckOpenLoop(scenario); !open) return std::unexpected(open.error());
  const auto models = AffineModels(scenario, profile);
  if (!models) return std::unexpected(models.error());
  PeakResult result;
  PeakGoodput& peak = result.peak;
  peak.bad_limit = options.search.bad_limit;
  peak.seeds = static_cast<int>(options.seeds.size());
  const double fluid_rps = FluidPeak(*models, QuickestLanes(scenario));
  // A stage may use what those before it left of their time, so its budget bounds nothing.
  const bool bounded = scenario.pipelines.empty();
  if (bounded) peak.fluid_limit_rps = fluid_rps;
  // Batches of several lanes are staggered evenly where all take the same time.
  const bool alike = LaneKinds(scenario).size() == 1;
  if (models->size() == 1 && alike && bounded)
    peak.staggered_bound_rps = StaggeredBound((*models)[0], scenario.lanes);
  GoodputSearchOptions search = options.search;
  if (search.start_rps == 0) search.start_rps = std::max(1.0, fluid_rps);
  constexpr double kBeyond =
      16;  // times what the lanes can sustain: whatever is found there is no peak
  if (auto checked =
          CheckSearchable(scenario, kBeyond * search.start_rps, search.start_rps, options.together);
      !checked) {
    return std::unexpected(checked.error());
  }
  search.least_rps = std::max(search.least_rps, LeastJudgedRate(scenario, options.together));

  for (const double multiple : options.multiples) result.beside.push_back({multiple, {}});
  std::vector<double> peaks;
  for (std::size_t s = 0; s < options.seeds.size(); ++s) {
    RunReport best;
    std::size_t probes = 0;
    const auto found = FindPeak(
        [&](double rate_rps) -> Expected<std::vector<double>> {
          if (options.on_probe) options.on_probe(s, probes++);
          auto run = RunAt(scenario, profile, make_policy, options.seeds[s], rate_rps);
          if (!run) return std::unexpected(run.error());
          std::vector<double> ratios = BadRatiosOf(*run, scenario, options.together);
          // Rates that pass rise: the last one is the peak.
          if (Pass(ratios, search.bad_limit)) best = std::move(*run);
          return ratios;
        },
        search);
    if (!found) return std::unexpected(found.error());
    peaks.push_back(found->rate_rps);
    result.searches.push_back(*found);
    if (found->rate_rps == 0) continue;
    result.at_peak.runs.push_back(std::move(best));
    for (std::size_t i = 0; i < options.multiples.size(); ++i) {
      if (options.on_probe) options.on_probe(s, probes++);
      const double rate_rps = found->rate_rps * options.multiples[i];
      auto run = RunAt(scenario, profile, make_policy, options.seeds[s], rate_rps);
      if (IsRefused(run)) continue;
      if (!run) return std::unexpected(run.error());
      result.beside[i].runs.push_back(std::move(*run));
    }
  }
  const ConfidentMean mean = MeanWithConfidence(peaks);
  peak.rate_rps = mean.mean;
  peak.half_width_rps = mean.half_width;
  peak.rates_rps = peaks;
  if (!options.together) peak.limiting_model = LimitingModel(scenario, result.searches);
  for (RunReport& run : result.at_peak.runs) run.peak = peak;
  return result;
}

namespace {

Scenario OnLanes(const Scenario& scenario, int lanes) {
  Scenario tried = scenario;
  tried.lanes = lanes;
  return tried;
}

// Of [[lane_kinds]]; one where there are none.
int GivenLanes(const Scenario& scenario) {
  int lanes = 0;
  for (const LaneKind& kind : scenario.lane_kinds) lanes += kind.count;
  return std::max(lanes, 1);
}

Expected<int> FluidLeastLanes(const Scenario& scenario, const ProfileFile& profile, int most) {
  int lanes = std::min(GivenLanes(scenario), most);
  for (; lanes < most; ++lanes) {
    const Scenario tried = OnLanes(scenario, lanes);
    const auto models = AffineModels(tried, profile);
    if (!models) return std::unexpected(models.error());
    if (FluidLanes(*models) <= QuickestLanes(tried)) break;
  }
  return lanes;
}

double TotalRate(const Scenario& scenario) {
  double rate_rps = 0;
  for (const double rate : Rates(scenario)) rate_rps += rate;
  return rate_rps;
}

}  // namespace

Expected<LeastLanes> FindLeastLanes(const Scenario& scenario, const ProfileFile& profile,
                                    const PolicyFactory& make_policy,
                                    const LeastLanesOptions& options) {
  if (options.seeds.empty()) return InvalidArgument("a search for lanes needs a seed");
  const double rate_rps = TotalRate(scenario);
  if (auto checked = CheckSearchable(scenario, rate_rps, rate_rps); !checked) {
    return std::unexpected(checked.error());
  }
  const auto fluid = FluidLeastLanes(scenario, profile, options.most);
  if (!fluid) return std::unexpected(fluid.error());
  LeastLanes least;
  if (scenario.pipelines.empty()) {
    const auto models = AffineModels(scenario, profile);
    if (!models) return std::unexpected(models.error());
    least.fluid = *fluid;
    least.fluid_exact = FluidLanes(*models);
  }
  std::size_t probes = 0;
  const auto sustains = [&](int lanes) -> Expected<bool> {
    const Scenario tried = OnLanes(scenario, lanes);
    std::vector<RunReport> runs;
    bool enough = true;
    for (std::size_t s = 0; enough && s < options.seeds.size(); ++s) {
      if (options.on_probe) options.on_probe(lanes, probes++);
      auto run = RunAt(tried, profile, make_policy, options.seeds[s], rate_rps);
      if (IsRefused(run) && lanes < options.most) return false;
      if (!run) return std::unexpected(run.error());
      enough = Pass(BadRatiosOf(*run, tried), options.bad_limit);
      runs.push_back(std::move(*run));
    }
    if (enough) least.lanes = lanes;
    if (enough || lanes == options.most) least.runs = std::move(runs);
    return enough;
  };
  // Up from the fluid limit, in growing steps; then between the last two. Who exits early or drops
  // a percent may do with less than that limit.
  int too_few = GivenLanes(scenario) - 1;
  for (int step = 1, lanes = *fluid;; step *= 2) {
    const auto sustained = sustains(lanes);
    if (!sustained) return std::unexpected(sustained.error());
    if (*sustained) break;
    if (lanes == options.most) return least;
    too_few = lanes;
    lanes = std::min(lanes + step, options.most);
  }
  while (least.lanes - too_few > 1) {
    const int middle = too_few + (least.lanes - too_few) / 2;
    const auto sustained = sustains(middle);
    if (!sustained) return std::unexpected(sustained.error());
    if (!*sustained) too_few = middle;
  }
  return least;
}

}  // namespace tactus
