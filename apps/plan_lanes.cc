// tactus plan lanes: how many devices a load needs, and under which scheduler.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/written_file.h"
#include "check/doubts.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/usage_columns.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "search_options.h"
#include "sim/search/peak_goodput.h"

namespace tactus {
namespace {

struct LanesOptions {
  SearchOptions search;
  int most = 1024;
  std::string json;
};

using FoundLanes = Searched<LeastLanes>;
using LanesRow = FoundLanes::Row;

// The model or pipeline with the largest violation ratio of any seed.
struct Worst {
  std::string name;
  double bad_ratio = -1;
};

Worst WorstOf(const LanesRow& row, const SearchOptions& options) {
  Worst worst;
  for (const RunReport& run : row.result.runs) {
    for (const Judged& judged : JudgedOf(run, options)) {
      if (judged.bad_ratio > worst.bad_ratio) worst = {judged.name, judged.bad_ratio};
    }
  }
  return worst;
}

// Fewest lanes first; those that no number was enough for come last, in the order asked for.
void Sort(std::vector<LanesRow>& rows) {
  std::ranges::stable_sort(rows, [](const LanesRow& a, const LanesRow& b) {
    if (a.result.lanes == 0 || b.result.lanes == 0)
      return b.result.lanes == 0 && a.result.lanes > 0;
    return a.result.lanes < b.result.lanes;
  });
}

Expected<FoundLanes> Search(const LanesOptions& options, const Experiment& experiment) {
  LeastLanesOptions search;
  search.bad_limit = options.search.bad_percent / 100;
  search.most = options.most;
  search.seeds = SeedsOf(options.search);
  // How many numbers of lanes a search tries is known only at its end; about this many, mostly, of
  // which half fail at their first seed.
  auto found =
      SearchEach<LeastLanes>(options.search, experiment, 3 + 3 * search.seeds.size(),
                             [&](const Experiment& named, const PolicyFactory& make, auto show) {
                               search.on_probe = [&](int lanes, std::size_t probes) {
                                 show(probes, fmt::format(" on {} lanes", lanes));
                               };
                               return FindLeastLanes(named.scenario, named.profile, make, search);
                             });
  if (found) Sort(found->rows);
  return found;
}

std::string ToTable(const FoundLanes& found, const LanesOptions& options) {
  TextTable table;
  table.AddColumns("policy|lanes [needed]|over [fluid]~1|goodput [r/s]|worst [viol. %]~2");
  AddUsageColumns(table);
  table.AddColumn("worst", "model", 3);
  for (const LanesRow& row : found.rows) {
    const LeastLanes& least = row.result;
    const Worst worst = WorstOf(row, options.search);
    const bool enough = least.lanes > 0;
    std::vector<std::string> cells = {
        row.policy, enough ? std::to_string(least.lanes) : fmt::format("> {}", options.most),
        enough && least.fluid > 0
            ? fmt::format("{:.2f} x", static_cast<double>(least.lanes) / least.fluid)
            : "-",
        Rate(Average(least.runs).all.goodput_rps), fmt::format("{:.2f}", 100 * worst.bad_ratio)};
    for (std::string& cell : UsageCells(least.runs)) cells.push_back(std::move(cell));
    cells.push_back(worst.name);
    table.Add(std::move(cells));
  }
  for (const FailedPolicy& failed : found.failed) table.Add({failed.policy, "failed"});
  return table.Print();
}

std::string Explanation(const Experiment& experiment, const LanesOptions& options, int fluid) {
  const Scenario& scenario = experiment.scenario;
  double rate_rps = 0;
  for (const double rate : Rates(scenario)) rate_rps += rate;
  std::string text = fmt::format(
      "{} (simulated, {:.4g} s for each run, {} seed{}), {:.4g} r/s\nprofile: {}\n"
      "lanes needed: the fewest on which no {}'s violation ratio exceeds {:.4g} % at any seed\n",
      scenario.name, scenario.duration_s, options.search.seeds, options.search.seeds > 1 ? "s" : "",
      rate_rps, experiment.profile.provenance,
      scenario.pipelines.empty() ? "model" : "pipeline's and no other model",
      options.search.bad_percent);
  text += fluid == 0
              ? "fluid limit: none is known for pipelines\n"
              : fmt::format(
                    "fluid limit: no policy that gives nothing up and always runs the "
                    "final exit does with fewer than {}{}\n",
                    fluid, fluid == options.most ? ", or with so many, which is the --most" : "");
  const char* before = "given: ";
  for (const LaneKind& kind : scenario.lane_kinds) {
    text += fmt::format("{}{} {} of speed {:.6g}", before, kind.count, kind.name, kind.speed);
    before = ", ";
  }
  if (!scenario.lane_kinds.empty()) text += "; further lanes are plain\n";
  return text;
}

// What a reader must know before trusting a row.
std::string Doubts(const LanesRow& row, const LanesOptions& options) {
  std::string text;
  if (row.result.lanes == 0) {
    text += fmt::format(
        "{}: {} lanes (--most) are not enough, as shown; if more lanes do not lower the violation "
        "ratio, "
        "the cause is the policy or an SLO\n",
        row.policy, options.most);
  }
  return text + CoarseRuns(options.search, row.policy, row.result.runs);
}

Status WritePlan(const FoundLanes& found, const LanesOptions& options) {
  const RunReport& first = found.rows.front().result.runs.front();
  nlohmann::ordered_json json = {{"scenario", first.scenario},
                                 {"profile", first.profile_provenance},
                                 {"source", first.source},
                                 {"commit", first.commit},
                                 {"seeds", options.search.seeds},
                                 {"first_seed", options.search.first_seed},
                                 {"bad_limit", options.search.bad_percent / 100},
                                 {"most_lanes", options.most},
                                 {"policies", nlohmann::ordered_json::array()}};
  for (const FailedPolicy& failed : found.failed) {
    json["failed"].push_back({{"policy", failed.policy}, {"why", failed.why}});
  }
  for (const LanesRow& row : found.rows) {
    const RunReport mean = Average(row.result.runs);
    const Worst worst = WorstOf(row, options.search);
    nlohmann::ordered_json entry = {{"policy", row.policy}, {"lanes", nullptr}};
    if (row.result.lanes > 0) entry["lanes"] = row.result.lanes;
    entry["fluid_lanes"] = nullptr;
    if (row.result.fluid > 0) {
      entry["fluid_lanes"] = row.result.fluid;
      entry["fluid_lanes_exact"] = row.result.fluid_exact;
    }
    entry["offered_rps"] = mean.all.offered_rps;
    entry["goodput_rps"] = mean.all.goodput_rps;
    entry["worst_bad_ratio"] = worst.bad_ratio;
    entry["worst_model"] = worst.name;
    entry["mean_batch"] = mean.all.mean_batch;
    entry["busy_ratio"] = BusyRatio(mean);
    entry["idle_ratio"] = IdleRatio(mean);
    json["policies"].push_back(std::move(entry));
  }
  const std::string text =
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return WriteFileText(text, options.json, "report");
}

int RunLanes(const LanesOptions& options) {
  const auto experiment =
      LoadExperiment(options.search.scenario, options.search.settings, {options.json});
  if (!experiment) return ReportBadInput(experiment.error());
  const auto found = Search(options, *experiment);
  if (!found) return ReportBadInput(found.error());
  const std::vector<LanesRow>& rows = found->rows;
  fmt::print("{}{}\n{}{}", Explanation(*experiment, options, rows.front().result.fluid),
             ScenarioDoubts(experiment->scenario, experiment->profile), ToTable(*found, options),
             FailuresOf(found->failed));
  for (const LanesRow& row : rows) {
    fmt::print("{}{}", PolicyDoubts(*experiment, row.policy), Doubts(row, options));
  }
  fmt::print("{}",
             TuningNotes(PoliciesOf(options.search, experiment->scenario), experiment->scenario));
  if (!options.json.empty()) {
    const auto written = WritePlan(*found, options);
    if (!written) return ReportBadInput(written.error());
  }
  const bool all =
      std::ranges::all_of(rows, [](const LanesRow& row) { return row.result.lanes > 0; });
  return all && found->failed.empty() ? 0 : 1;
}

}  // namespace

void AddPlanLanes(CLI::App& plan, CommandContext& context) {
  auto options = std::make_shared<LanesOptions>();
  CLI::App* command =
      plan.add_subcommand("lanes", "Find how many lanes a scenario's load needs under each policy");
  Declare(options->search, *command, "How many seeds, from --first-seed; every one must pass");
  AddOption(*command, "--most", options->most, CLI::Range(1, 4096),
            "Largest number of lanes to try")
      ->capture_default_str();
  AddOption(*command, "--json", options->json, WritableFile(), "Write the plan to this file");
  command->callback([options, &context] { context.exit_code = RunLanes(*options); });
}

}  // namespace tactus
