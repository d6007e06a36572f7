#include "experiment/recorded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "dispatch/replay.h"
#include "metrics/recorder.h"
#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// A cell with fewer batches takes what it was expected to, times what its model's batches took over
// that.
constexpr std::size_t kEnough = 5;

// How finely the speed of the machine is followed: what slows it slows batches that follow each
// other alike, and queues grow. Coarser windows make queues too short: of four recorded runs at
// 74 to 81 % load the P95 was off by up to 31 % with 50 ms, 14 % with 10 ms.
constexpr Duration kWindow = Millis(10);

using CellKey = std::tuple<std::uint32_t, std::uint16_t, int>;  // model, exit, batch

struct Took {
  TimePoint started;
  Duration duration;
};

// What the replay tells: every request's end, and what every batch took.
class Tale final : public ReplayWatch {
 public:
  explicit Tale(const JournalFile& journal) : recorder_(journal.records.size() / 4) {
    TimePoint step = kNever;
    for (const JournalRecord& record : std::views::reverse(journal.records)) {
      if (record.kind == JournalRecord::Kind::kStep) step = record.at;
      if (record.kind != JournalRecord::Kind::kFinish) continue;
      learnt_[record.id] = record.at;
      free_[record.id] = step == kNever ? record.at : std::max(step, record.at);
    }
  }

  void Configured(std::shared_ptr<const ServedModels> served) override {
    served_.push_back(std::move(served));
  }
  void Launched(const Batch& batch) override {
    running_[batch.id.value()] = {
        {batch.model.value(), batch.exit.value(), static_cast<int>(batch.requests.size())},
        batch.lane,
        batch.start};
  }
  void Finished(BatchId id, const BatchReport& report) override {
    const auto found = running_.find(id.value());
    if (found == running_.end()) return;
    const Running ran = found->second;
    running_.erase(found);
    busy[ran.lane.value()].busy += report.ended - report.started;
    ++busy[ran.lane.value()].batches;
    if (report.status != BatchStatus::kOk) return;
    took[ran.cell].push_back({ran.decided, free_.at(id.value()) - ran.decided});
  }
  void Answered(const Batch& batch, const BatchReport& report) override {
    recorder_.Complete(batch, report, learnt_.at(batch.id.value()));
  }
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override {
    if (reason == DropReason::kCancelled) {
      cancelled.insert(request.id.value());
    } else {
      recorder_.Reject(model, request, reason, now);
    }
  }

  std::vector<RequestRecord> TakeRecords() { return std::move(recorder_).Take(); }
  const std::vector<std::shared_ptr<const ServedModels>>& served() const { return served_; }

  std::map<CellKey, std::vector<Took>> took;
  std::map<std::uint32_t, LaneTotals> busy;     // by lane
  std::unordered_set<std::uint64_t> cancelled;  // requests whose clients left

 private:
  struct Running {
    CellKey cell;
    LaneId lane;
    TimePoint decided;
  };
  Recorder recorder_;
  std::vector<std::shared_ptr<const ServedModels>> served_;
  std::unordered_map<std::uint64_t, Running> running_;
  std::unordered_map<std::uint64_t, TimePoint> learnt_;  // by batch: when its end was known ...
  std::unordered_map<std::uint64_t, TimePoint> free_;    // ... and its lane was given another
};

Status CheckLanes(const JournalFile& journal) {
  if (journal.header.lanes.empty()) return InvalidArgument("it has no lanes");
  const LaneSpec& first = journal.header.lanes.front();
  const bool alike = std::ranges::all_of(journal.header.lanes, [&](const LaneSpec& lane) {
    return lane.lane_class == first.lane_class && lane.slots == first.slots && lane.fraction == 1 &&
           lane.serves == ModelSet::All();
  });
  const bool planned = std::ranges::any_of(journal.changes, [](const JournalFile::Change& change) {
    return !std::holds_alternative<std::shared_ptr<const ServedModels>>(change.to);
  });
  if (alike && !planned) return {};
  return InvalidArgument(
      "its lanes differ, are shares of a device, or follow a plan, which is not simulated from a "
      "journal; write a scenario with those lanes instead");
}

bool AreAlike(const Model& a, const Model& b) {
  return a.name == b.name && a.exit_count() == b.exit_count();
}

// By id, what was served when the model was loaded last; null: it never was. An id that several
// models had cannot be told apart.
Expected<std::vector<std::shared_ptr<const ServedModels>>> ModelsOf(const Tale& tale) {
  std::vector<std::shared_ptr<const ServedModels>> models;
  for (const auto& each : tale.served()) {
    models.resize(std::max(models.size(), each->models.size()));
    for (std::size_t m = 0; m < each->models.size(); ++m) {
      if (!each->models[m].loaded) continue;
      if (models[m] != nullptr && !AreAlike(models[m]->models[m], each->models[m])) {
        return InvalidArgument(
            fmt::format("model '{}' was loaded where '{}' had been, with another name or other "
                        "exits, which is not simulated from a journal",
                        each->models[m].name, models[m]->models[m].name));
      }
      models[m] = each;
    }
  }
  return models;
}

std::size_t WindowOf(TimePoint at) {
  return static_cast<std::size_t>(std::max<std::int64_t>((at - kStart) / kWindow, 0));
}

// For each window, what its batches took over the means of batches like them; what the window
// before had where no batch started.
std::vector<double> SpeedsOf(const Tale& tale) {
  struct Sums {
    double took = 0, usual = 0;
  };
  std::vector<Sums> windows;
  for (const auto& [cell, batches] : tale.took) {
    double sum = 0;
    for (const Took& each : batches) sum += ToMillis(each.duration);
    for (const Took& each : batches) {
      const std::size_t window = WindowOf(each.started);
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
ProfileCell CellOf(const std::vector<Took>& batches, const std::vector<double>& speeds) {
  std::vector<Duration> took;
  double sum = 0;
  double squares = 0;
  for (const Took& each : batches) {
    const double ms = ToMillis(each.duration) / speeds[WindowOf(each.started)];
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
std::pair<ProfiledModel, ProfiledModel> ProfilesOf(const ServedModels& served, ModelId id,
                                                   LaneClass on, const Tale& tale,
                                                   const std::vector<double>& speeds) {
  const Model& model = served.models[id.value()];
  ProfiledModel counted{.name = model.name, .max_batch = model.max_batch};
  counted.slo_ms = ToMillis(model.slo);
  ProfiledModel took = counted;
  double expected_sum = 0;
  double took_sum = 0;
  const auto expected = [&](std::uint16_t exit, int batch) {
    return ToMillis(served.profile.Latency(id, ExitId{exit}, batch, on) -
                    served.profile.margin(id));
  };
  for (const auto& [cell, durations] : tale.took) {
    const auto& [of, exit, batch] = cell;
    if (of != id.value() || batch > served.profile.max_batch(id)) continue;
    expected_sum += expected(exit, batch) * static_cast<double>(durations.size());
    for (const Took& each : durations) took_sum += ToMillis(each.duration);
  }
  const double ratio = expected_sum > 0 ? took_sum / expected_sum : 1;
  for (std::uint16_t e = 0; e < model.exit_count(); ++e) {
    counted.exits.push_back({.name = model.exits[e].name, .accuracy = model.exits[e].accuracy});
    took.exits.push_back(counted.exits.back());
    for (int batch = 1; batch <= model.max_batch; ++batch) {
      const double ms = std::max(expected(e, batch), 1e-6);
      counted.exits.back().cells.push_back(Flat(ms));
      const auto found = tale.took.find({id.value(), e, batch});
      const bool enough = found != tale.took.end() && found->second.size() >= kEnough;
      took.exits.back().cells.push_back(enough ? CellOf(found->second, speeds) : Flat(ms * ratio));
    }
    Fit(counted.exits.back());
    Fit(took.exits.back());
  }
  return {std::move(counted), std::move(took)};
}

Scenario ScenarioOf(const JournalHeader& header, const std::string& name) {
  constexpr std::array kExpiries = {"never", "passed", "unmeetable"};
  Scenario scenario;
  scenario.name = name;
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

// When what counts begins and ends.
std::pair<TimePoint, TimePoint> WindowOf(const JournalFile& journal, std::optional<Duration> last) {
  TimePoint first = kNever;
  TimePoint end = kStart;
  for (const JournalRecord& record : journal.records) {
    if (record.kind != JournalRecord::Kind::kArrive) continue;
    first = std::min(first, record.at);
    end = std::max(end, record.at);
  }
  if (last && first != kNever) first = std::max(first, end - *last);
  return {first, end};
}

// By the journal's ids, the place in the scenario, which is dense; none: no request came for it.
using Places = std::vector<std::optional<std::uint32_t>>;

// Adds the models that requests came for.
Places AddModels(const std::vector<std::shared_ptr<const ServedModels>>& models, LaneClass on,
                 const std::vector<std::uint64_t>& counts, const Tale& tale, RecordedRun& run,
                 std::vector<Model>& served_models) {
  Scenario& scenario = run.experiment.scenario;
  ProfileFile& profile = run.experiment.profile;
  profile.provenance = "what batches took in " + scenario.name;
  profile.service_window_ms = ToMillis(kWindow);
  profile.service_trace = SpeedsOf(tale);
  Places places(models.size());
  for (std::uint32_t m = 0; m < models.size(); ++m) {
    if (counts[m] == 0 || models[m] == nullptr) continue;
    const ServedModels& served = *models[m];
    const Model& model = served.models[m];
    places[m] = static_cast<std::uint32_t>(scenario.models.size());
    auto [counted, took] = ProfilesOf(served, ModelId{m}, on, tale, profile.service_trace);
    // A model that was loaded again may have had another id.
    std::string name = model.name;
    for (int n = 2; HasModel(scenario, name); ++n) name = fmt::format("{} ({})", model.name, n);
    counted.name = took.name = name;
    ScenarioModel& listed = scenario.models.emplace_back();
    listed.name = listed.profile_as = name;
    listed.slo_ms = ToMillis(model.slo);
    listed.max_batch = model.max_batch;
    listed.priority = model.priority;
    listed.rate_rps = static_cast<double>(counts[m]) / scenario.duration_s;
    scenario.jitter_ms = std::max(scenario.jitter_ms, ToMillis(served.profile.margin(ModelId{m})));
    run.counted_on.models.push_back(std::move(counted));
    profile.models.push_back(std::move(took));
    served_models.push_back(model);
    served_models.back().name = name;
  }
  return places;
}

// What arrived is known to the dispatcher at its next step.
void AddArrivals(const JournalFile& journal, const Places& places, const Tale& tale,
                 RecordedRun& run) {
  Scenario& scenario = run.experiment.scenario;
  run.arrivals.resize(scenario.models.size());
  TimePoint known = kStart;
  for (const JournalRecord& record : std::views::reverse(journal.records)) {
    if (record.kind == JournalRecord::Kind::kStep) known = record.at;
    if (record.kind != JournalRecord::Kind::kArrive) continue;
    if (record.model >= places.size() || !places[record.model]) continue;
    if (tale.cancelled.contains(record.id)) continue;
    run.arrivals[*places[record.model]].push_back({{.arrival = record.at,
                                                    .deadline = record.deadline,
                                                    .shape = record.shape,
                                                    .priority = record.priority},
                                                   std::max(known, record.at)});
    scenario.duration_s = std::max(scenario.duration_s, ToSeconds(known - kStart) + 1e-6);
  }
  for (auto& model : run.arrivals) {
    std::ranges::reverse(model);
    // The end of a journal that was cut off has no step.
    TimePoint last = kStart;
    for (RecordedRequest& each : model) last = each.known = std::max(each.known, last);
  }
}

// How it was; `result` has the models.
RunReport Happened(const JournalHeader& header, const Places& places, TimePoint first, Tale& tale,
                   const Experiment& experiment, SimulationResult result) {
  for (RequestRecord& record : tale.TakeRecords()) {
    if (record.model >= places.size() || !places[record.model]) continue;
    record.model = *places[record.model];
    result.records.push_back(record);
    result.last = std::max(result.last, record.ended);
  }
  for (std::uint32_t lane = 0; lane < header.lanes.size(); ++lane) {
    result.lanes.push_back(tale.busy[lane]);
  }
  result.begin = first;
  result.end = kStart + FromSeconds(experiment.scenario.duration_s);
  RunReport report = MakeReport(experiment.scenario, experiment.profile, result);
  report.source = "recorded (" + header.source + ")";
  return report;
}

}  // namespace

Expected<RecordedRun> ReadRecorded(const JournalFile& journal, const std::string& name,
                                   std::optional<Duration> last) {
  if (Status can = CheckLanes(journal); !can) return std::unexpected(can.error());
  auto policy = MakePolicy(journal.header.policy);
  if (!policy) return std::unexpected(policy.error());
  Tale tale(journal);
  const auto replayed = Replay(journal, **policy, &tale);
  if (!replayed) return std::unexpected(replayed.error());
  if (replayed->difference) {
    return InvalidArgument(
        fmt::format("this program decides otherwise than the one that wrote it (commit {})",
                    journal.header.commit));
  }
  const auto models = ModelsOf(tale);
  if (!models) return std::unexpected(models.error());
  const auto [first, end] = WindowOf(journal, last);
  constexpr Duration kLongest = Seconds(std::int64_t{24} * 3600);
  if (end - kStart > kLongest) {
    return InvalidArgument(
        "it is longer than a day; write a journal anew (--journal) to try a part");
  }
  std::vector<std::uint64_t> counts(models->size());
  for (const JournalRecord& record : journal.records) {
    const bool arrives = record.kind == JournalRecord::Kind::kArrive;
    if (arrives && record.model < counts.size()) ++counts[record.model];
  }
  RecordedRun run;
  Scenario& scenario = run.experiment.scenario;
  scenario = ScenarioOf(journal.header, name);
  scenario.duration_s = ToSeconds(end - kStart) + 1e-6;
  scenario.warmup_s = first == kNever ? 0 : ToSeconds(first - kStart);
  SimulationResult result;
  const LaneClass on = journal.header.lanes.front().lane_class;
  const Places places = AddModels(*models, on, counts, tale, run, result.models);
  if (scenario.models.empty()) return InvalidArgument("no request came for a model that is loaded");
  AddArrivals(journal, places, tale, run);
  run.happened = Happened(journal.header, places, first, tale, run.experiment, std::move(result));
  return run;
}

Expected<RunReport> SimulateRecorded(const RecordedRun& run, const std::vector<Duration>& slos) {
  const Scenario& scenario = run.experiment.scenario;
  if (scenario.process != ArrivalProcess::kPoisson || !scenario.schedule.empty() ||
      scenario.front_call_us > 0 || scenario.front_byte_ns > 0) {
    return InvalidArgument(
        "what arrives is what the journal has: [arrivals] and [front] cannot be set");
  }
  auto policy = MakePolicy(scenario.policy);
  if (!policy) return std::unexpected(policy.error());
  std::vector<std::vector<RecordedRequest>> arrivals = run.arrivals;
  constexpr double kSame = 0.1;  // the way to the server is taken off a client's time
  for (std::size_t m = 0; m < arrivals.size(); ++m) {
    const Duration slo = FromMillis(scenario.models[m].slo_ms);
    if (slo == slos[m]) continue;
    for (auto& [request, known] : arrivals[m]) {
      const double had = ToMillis(request.deadline - request.arrival);
      if (std::abs(had - ToMillis(slos[m])) <= kSame * ToMillis(slos[m])) {
        request.deadline += slo - slos[m];
      }
      request.deadline = std::min(request.deadline, request.arrival + slo);
    }
  }
  const auto result = Simulate(scenario, run.experiment.profile, **policy,
                               {.recorded = arrivals, .counted_on = &run.counted_on});
  if (!result) return std::unexpected(result.error());
  return MakeReport(scenario, run.experiment.profile, *result);
}

}  // namespace tactus
