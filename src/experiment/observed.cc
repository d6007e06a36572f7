#include "experiment/observed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "policies/registry.h"

namespace tactus {
namespace {

// A cell with fewer batches takes what it was expected to, times what its model's batches took over
// that.
constexpr std::size_t kEnough = 5;

// How finely the speed of the machine is followed: what slows it slows batches that follow each
// other alike, and queues grow. Coarser windows make queues too short: of four recorded runs at
// 74 to 81 % load the P95 was off by up to 31 % with 50 ms, 14 % with 10 ms.
constexpr Duration kWindow = Millis(10);

std::size_t WindowOf(TimePoint at) {
  return static_cast<std::size_t>(std::max<std::int64_t>((at - kStart) / kWindow, 0));
}

// For each window, what its batches took over the means of batches like them; what the window
// before had where no batch started.
std::vector<double> SpeedsOf(const Observed& seen) {
  struct Sums {
    double took = 0, usual = 0;
  };
  std::vector<Sums> windows;
  for (const auto& [cell, batches] : seen.took) {
    double sum = 0;
    for (const Observed::Took& each : batches) sum += ToMillis(each.duration);
    for (const Observed::Took& each : batches) {
      const std::size_t window = WindowOf(each.decided);
      if (window >= windows.size()) windows.resize(window + 1);
      windows[window].took += ToMillis(each.duration);
      windows[window].usual += sum / static_cast<double>(batches.size());
    }
  }
  std::vector<double> speeds;
  for (const Sums& window : windows) {
    const double before = speeds.empty() ? 1 : speeds.back();
    speeds.push_back(
        window.usual > 0 ? std::max(window.took / window.usual, ProfileFile::kLeastRatio) : before);
  }
  return speeds;
}

// Of batches at the machine's usual speed.
ProfileCell CellOf(const std::vector<Observed::Took>& batches, const std::vector<double>& speeds) {
  std::vector<Duration> took;
  double sum = 0;
  double squares = 0;
  for (const Observed::Took& each : batches) {
    const double ms = ToMillis(each.duration) / speeds[WindowOf(each.decided)];
    took.push_back(FromMillis(ms));
    sum += ms;
    squares += ms * ms;
  }
  const auto count = static_cast<double>(took.size());
  const double mean = sum / count;
  const auto at = [&](double percent) { return ToMillis(Percentile(took, percent)); };
  return {.repetitions = static_cast<int>(took.size()),
          .mean_ms = mean,
          .min_ms = ToMillis(*std::ranges::min_element(took)),
          .p50_ms = at(50),
          .p95_ms = at(95),
          .p99_ms = at(99),
          .max_ms = at(100),
          .cv = std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean};
}

ProfileCell Flat(double ms) {
  return {.mean_ms = ms, .min_ms = ms, .p50_ms = ms, .p95_ms = ms, .p99_ms = ms, .max_ms = ms};
}

// Of a loaded model: what its policy counted on, and what its batches took.
std::pair<ProfiledModel, ProfiledModel> ProfilesOf(std::uint32_t place, LaneClass on,
                                                   const Observed& seen,
                                                   const std::vector<double>& speeds) {
  const ServedModels& served = *seen.models[place].all;
  const ModelId id{seen.models[place].id};
  const Model& model = seen.models[place].model();
  ProfiledModel counted{.name = model.name, .max_batch = model.max_batch};
  counted.slo_ms = ToMillis(model.slo);
  ProfiledModel took = counted;
  double expected_sum = 0;
  double took_sum = 0;
  const auto expected = [&](std::uint16_t exit, int batch) {
    return ToMillis(served.profile.Latency(id, ExitId{exit}, batch, on) -
                    served.profile.margin(id));
  };
  for (const auto& [cell, durations] : seen.took) {
    const auto& [of, exit, batch] = cell;
    if (of != place || batch > served.profile.max_batch(id)) continue;
    expected_sum += expected(exit, batch) * static_cast<double>(durations.size());
    for (const Observed::Took& each : durations) took_sum += ToMillis(each.duration);
  }
  const double ratio = expected_sum > 0 ? took_sum / expected_sum : 1;
  for (std::uint16_t e = 0; e < model.exit_count(); ++e) {
    counted.exits.push_back({.name = model.exits[e].name, .accuracy = model.exits[e].accuracy});
    took.exits.push_back(counted.exits.back());
    for (int batch = 1; batch <= model.max_batch; ++batch) {
      const double ms = std::max(expected(e, batch), 1e-6);
      counted.exits.back().cells.push_back(Flat(ms));
      const auto found = seen.took.find({place, e, batch});
      const bool enough = found != seen.took.end() && found->second.size() >= kEnough;
      took.exits.back().cells.push_back(enough ? CellOf(found->second, speeds) : Flat(ms * ratio));
    }
    Fit(counted.exits.back());
    Fit(took.exits.back());
  }
  return {std::move(counted), std::move(took)};
}

Scenario ScenarioOf(const Observed& seen) {
  constexpr std::array kExpiries = {"never", "passed", "unmeetable"};
  const JournalHeader& header = seen.setting;
  Scenario scenario;
  scenario.name = seen.name;
  scenario.policy = header.policy;
  scenario.expiry = kExpiries[static_cast<std::size_t>(header.options.expiry)];
  scenario.queue_capacity = static_cast<std::int64_t>(header.options.queue_capacity);
  scenario.follow = !header.options.follow.on      ? "no"
                    : header.options.follow.stalls ? "stalls"
                                                   : "yes";
  scenario.percentile = header.options.follow.percentile;
  scenario.lanes = static_cast<int>(header.lanes.size());
  scenario.slots = header.lanes.front().slots;
  return scenario;
}

// By model of the run, the place in the scenario, which is dense; none: no request came for it.
using Places = std::vector<std::optional<std::uint32_t>>;

// Adds the models that requests came for.
Places AddModels(const Observed& seen, RecordedRun& run, std::vector<Model>& served_models) {
  const LaneClass on = seen.setting.lanes.front().lane_class;
  Scenario& scenario = run.experiment.scenario;
  ProfileFile& profile = run.experiment.profile;
  profile.provenance = "what batches took in " + scenario.name;
  profile.service_window_ms = ToMillis(kWindow);
  profile.service_trace = SpeedsOf(seen);
  Places places(seen.models.size());
  for (std::uint32_t m = 0; m < places.size(); ++m) {
    if (m >= seen.arrivals.size() || seen.arrivals[m].empty()) continue;
    const Model& model = seen.models[m].model();
    places[m] = static_cast<std::uint32_t>(scenario.models.size());
    auto [counted, took] = ProfilesOf(m, on, seen, profile.service_trace);
    // A model that was loaded again may have had another id.
    std::string name = model.name;
    for (int n = 2; HasModel(scenario, name); ++n) name = fmt::format("{} ({})", model.name, n);
    counted.name = took.name = name;
    ScenarioModel& listed = scenario.models.emplace_back();
    listed.name = listed.profile_as = name;
    listed.slo_ms = ToMillis(model.slo);
    listed.max_batch = model.max_batch;
    listed.priority = model.priority;
    listed.rate_rps = static_cast<double>(seen.arrivals[m].size()) / scenario.duration_s;
    scenario.jitter_ms =
        std::max(scenario.jitter_ms,
                 ToMillis(seen.models[m].all->profile.margin(ModelId{seen.models[m].id})));
    run.counted_on.models.push_back(std::move(counted));
    profile.models.push_back(std::move(took));
    served_models.push_back(model);
    served_models.back().name = name;
  }
  return places;
}

// What another setting may change of a run: the rest is what was recorded, or would change nothing.
bool MayChange(std::string_view key) {
  constexpr std::array<std::string_view, 10> kKeys = {
      "policy", "expiry", "queue_capacity", "percentile",       "follow",
      "lanes",  "count",  "slots",          "decision_cost_us", "candidate_cost_us"};
  constexpr std::array<std::string_view, 4> kOfModels = {"slo_ms", "max_batch", "priority",
                                                         "exits"};
  if (key.starts_with("models.")) {
    return std::ranges::find(kOfModels, key.substr(key.rfind('.') + 1)) != kOfModels.end();
  }
  if (key.starts_with("lanes.")) key.remove_prefix(std::string_view("lanes.").size());
  return std::ranges::find(kKeys, key) != kKeys.end();
}

Expected<std::vector<Setting>> SettingsOf(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    auto setting = SplitSetting(text);
    if (!setting) return std::unexpected(setting.error());
    if (!MayChange(setting->first)) {
      return InvalidArgument(text +
                             ": is no setting of a recorded run; those are policy, lanes, slots, "
                             "expiry, queue_capacity, percentile, follow, and models.NAME.slo_ms, "
                             ".max_batch, .priority and .exits. What arrives is what was recorded");
    }
    settings.push_back(*std::move(setting));
  }
  return settings;
}

// A setting may name the models that calls came for, and no others.
Status CheckNames(const Scenario& scenario, const std::vector<Setting>& settings) {
  constexpr std::string_view kModels = "models.";
  for (const auto& [key, value] : settings) {
    if (!key.starts_with(kModels)) continue;
    const std::string name = key.substr(kModels.size(), key.rfind('.') - kModels.size());
    if (name == "*" || HasModel(scenario, name)) continue;
    std::string names;
    for (const ScenarioModel& model : scenario.models) {
      names += (names.empty() ? "" : ", ") + model.name;
    }
    return InvalidArgument(
        fmt::format("{}={}: no call of a model '{}' is simulated; those are {}. Of a pipeline it "
                    "is the steps that are",
                    key, value, name, names));
  }
  return {};
}

// Whether its deadline is the model's, not one of its own.
bool HasSlo(const Request& request, Duration slo) {
  constexpr double kSame = 0.1;  // the way to the server is taken off a client's time
  const double had = ToMillis(request.deadline - request.arrival);
  return std::abs(had - ToMillis(slo)) <= kSame * ToMillis(slo);
}

std::size_t OwnDeadlines(const RecordedRun& run) {
  std::size_t own = 0;
  for (std::size_t m = 0; m < run.arrivals.size(); ++m) {
    if (FromMillis(run.experiment.scenario.models[m].slo_ms) == run.slos[m]) continue;
    own += static_cast<std::size_t>(std::ranges::count_if(
        run.arrivals[m],
        [&](const RecordedRequest& each) { return !HasSlo(each.request, run.slos[m]); }));
  }
  return own;
}

// How it was; `result` has the models.
RunReport Happened(const Observed& seen, const Places& places, const Experiment& experiment,
                   SimulationResult result) {
  for (RequestRecord record : seen.records) {
    if (record.model >= places.size() || !places[record.model]) continue;
    record.model = *places[record.model];
    result.records.push_back(record);
    result.last = std::max(result.last, record.ended);
  }
  result.lanes = seen.lanes;
  result.begin = seen.first;
  result.end = kStart + FromSeconds(experiment.scenario.duration_s);
  RunReport report = MakeReport(experiment.scenario, experiment.profile, result);
  report.source = "recorded (" + seen.setting.source + ")";
  return report;
}

}  // namespace

Status CheckLanesAlike(const std::vector<LaneSpec>& lanes) {
  if (lanes.empty()) return InvalidArgument("it has no lanes");
  const LaneSpec& first = lanes.front();
  const bool alike = std::ranges::all_of(lanes, [&](const LaneSpec& lane) {
    return lane.lane_class == first.lane_class && lane.slots == first.slots && lane.fraction == 1 &&
           lane.serves == ModelSet::All();
  });
  if (alike) return {};
  return InvalidArgument("its lanes " + std::string(kLanesNotSimulated));
}

Status CheckSettings(const std::vector<std::string>& settings) {
  const auto read = SettingsOf(settings);
  return read ? Status() : std::unexpected(read.error());
}

Expected<RecordedRun> RunOf(const Observed& seen) {
  if (Status can = CheckLanesAlike(seen.setting.lanes); !can) return std::unexpected(can.error());
  RecordedRun run;
  Scenario& scenario = run.experiment.scenario;
  scenario = ScenarioOf(seen);
  TimePoint last = seen.end;
  for (const auto& model : seen.arrivals) {
    if (!model.empty()) last = std::max(last, model.back().known);
  }
  scenario.duration_s = ToSeconds(last - kStart) + 1e-6;
  scenario.warmup_s = seen.first == kNever ? 0 : ToSeconds(seen.first - kStart);
  SimulationResult result;
  const Places places = AddModels(seen, run, result.models);
  if (scenario.models.empty()) return InvalidArgument("no request came for a model that is loaded");
  run.arrivals.resize(scenario.models.size());
  for (std::size_t m = 0; m < places.size(); ++m) {
    if (places[m]) run.arrivals[*places[m]] = seen.arrivals[m];
  }
  for (const ScenarioModel& model : scenario.models) run.slos.push_back(FromMillis(model.slo_ms));
  run.happened = Happened(seen, places, run.experiment, std::move(result));
  return run;
}

Expected<RunReport> SimulateRecorded(const RecordedRun& run,
                                     const SimulationProgress& on_progress) {
  const Scenario& scenario = run.experiment.scenario;
  auto policy = MakePolicy(scenario.policy);
  if (!policy) return std::unexpected(policy.error());
  std::vector<std::vector<RecordedRequest>> arrivals = run.arrivals;
  for (std::size_t m = 0; m < arrivals.size(); ++m) {
    const Duration slo = FromMillis(scenario.models[m].slo_ms);
    if (slo == run.slos[m]) continue;
    for (auto& [request, known] : arrivals[m]) {
      if (HasSlo(request, run.slos[m])) request.deadline += slo - run.slos[m];
      request.deadline = std::min(request.deadline, request.arrival + slo);
    }
  }
  const auto result =
      Simulate(scenario, run.experiment.profile, **policy,
               {.recorded = arrivals, .counted_on = &run.counted_on, .on_progress = on_progress});
  if (!result) return std::unexpected(result.error());
  return MakeReport(scenario, run.experiment.profile, *result);
}

Expected<WhatIfRuns> TryOther(RecordedRun run, const std::vector<std::string>& settings,
                              const SimulationProgress& on_progress) {
  WhatIfRuns runs;
  auto same = SimulateRecorded(run, on_progress);
  if (!same) return std::unexpected(std::move(same.error()));
  runs.same = *std::move(same);
  runs.slots = runs.other_slots = run.experiment.scenario.slots;
  runs.was = std::move(run.happened);
  if (settings.empty()) return runs;
  const auto changes = SettingsOf(settings);
  if (!changes) return std::unexpected(changes.error());
  if (Status named = CheckNames(run.experiment.scenario, *changes); !named) {
    return std::unexpected(std::move(named.error()));
  }
  if (Status applied = Override(run.experiment.scenario, *changes); !applied) {
    return std::unexpected(std::move(applied.error()));
  }
  runs.other_slots = run.experiment.scenario.slots;
  runs.own_deadlines = OwnDeadlines(run);
  auto other = SimulateRecorded(run, on_progress);
  if (!other) return std::unexpected(std::move(other.error()));
  runs.other = *std::move(other);
  return runs;
}

}  // namespace tactus
