// tactus goodput: how much load each policy sustains, and what no scheduler beats beside it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

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

struct GoodputOptions {
  SearchOptions search;
  double precision_percent = 0.5;
  double start_rps = 0;  // 0: the fluid limit
  double first_step = 2;
  std::vector<double> multiples;
  std::optional<double> least_staggered;
  std::optional<double> least_fluid;
  std::optional<double> least_flat_top;
  std::string json;
};

using Found = Searched<PeakResult>;
using Row = Found::Row;

std::string OfBound(double rate, double bound) { return bound > 0 ? Percent(rate / bound) : "-"; }

std::string PeakTable(const Found& found) {
  TextTable table;
  table.AddColumns("policy|peak [r/s]|+-95% [r/s]~3|staggered [%]~1|fluid [%]~2");
  AddUsageColumns(table);
  table.AddColumn("limited", "by", 4);
  for (const Row& row : found.rows) {
    const PeakGoodput& peak = row.result.peak;
    std::vector<std::string> cells = {row.policy, Rate(peak.rate_rps),
                                      peak.seeds > 1 ? Rate(peak.half_width_rps) : "-",
                                      OfBound(peak.rate_rps, peak.staggered_bound_rps.value_or(0)),
                                      OfBound(peak.rate_rps, peak.fluid_limit_rps)};
    for (std::string& cell : UsageCells(row.result.at_peak.runs)) cells.push_back(std::move(cell));
    cells.push_back(peak.limiting_model.empty() ? "-" : peak.limiting_model);
    table.Add(std::move(cells));
  }
  for (const FailedPolicy& failed : found.failed) table.Add({failed.policy, "failed"});
  return table.Print();
}

double GoodputOf(const RunReport& run) { return run.all.goodput_rps; }

std::string LoadTable(const std::vector<Row>& rows) {
  TextTable table;
  table.AddColumns("policy|load [x peak]|offered [r/s]~1|goodput [r/s]|of peak's [%]|viol. [%]");
  AddUsageColumns(table);
  for (const Row& row : rows) {
    for (const LoadedRuns& load : row.result.beside) {
      std::vector<std::string> cells = {row.policy, fmt::format("{:.4g}", load.multiple)};
      if (load.runs.empty()) {
        cells.resize(cells.size() + 4, "-");
      } else {
        const RunReport mean = Average(load.runs);
        cells.push_back(Rate(mean.all.offered_rps));
        cells.push_back(Rate(mean.all.goodput_rps));
        cells.push_back(OfBound(mean.all.goodput_rps, Mean(row.result.at_peak.runs, GoodputOf)));
        cells.push_back(fmt::format("{:.2f}", 100 * mean.all.bad_ratio));
      }
      for (std::string& cell : UsageCells(load.runs)) cells.push_back(std::move(cell));
      table.Add(std::move(cells));
    }
  }
  return table.Print();
}

void AddCheck(std::vector<Check>& checks, std::string what, double value, double bar) {
  checks.push_back({std::move(what), value, fmt::format(">= {:.4g}", bar), value >= bar});
}

// The bars that the command line set.
std::vector<Check> MakeChecks(const GoodputOptions& options, const std::vector<Row>& rows) {
  std::vector<Check> checks;
  for (const Row& row : rows) {
    const PeakGoodput& peak = row.result.peak;
    if (options.least_staggered && peak.staggered_bound_rps) {
      AddCheck(checks, row.policy + ": peak over the staggered bound",
               peak.rate_rps / *peak.staggered_bound_rps, *options.least_staggered);
    }
    if (options.least_fluid) {
      AddCheck(checks, row.policy + ": peak over the fluid limit",
               peak.rate_rps / peak.fluid_limit_rps, *options.least_fluid);
    }
    if (!options.least_flat_top) continue;
    for (const LoadedRuns& load : row.result.beside) {
      if (load.multiple <= 1) continue;
      const double flat =
          load.runs.empty() ? 0
                            : Mean(load.runs, GoodputOf) / Mean(row.result.at_peak.runs, GoodputOf);
      AddCheck(checks,
               fmt::format("{}: goodput at {:.4g} x the peak over the peak's", row.policy,
                           load.multiple),
               flat, *options.least_flat_top);
    }
  }
  return checks;
}

Report MakeReport(const Found& found, std::vector<Check> checks) {
  Report report;
  const auto add = [&](const LoadedRuns& load) {
    for (RunReport run : load.runs) {
      run.settings["of_peak"] = fmt::format("{:.4g}", load.multiple);
      report.runs.push_back(std::move(run));
    }
  };
  for (const Row& row : found.rows) {
    add(row.result.at_peak);
    if (row.result.at_peak.runs.empty()) {  // no rate passed: the report says so
      report.runs.emplace_back().policy = row.policy;
      report.runs.back().peak = row.result.peak;
    }
    for (const LoadedRuns& load : row.result.beside) add(load);
  }
  report.failed = found.failed;
  report.checks = std::move(checks);
  return report;
}

Expected<Found> Search(const GoodputOptions& options, const Experiment& experiment) {
  PeakOptions search;
  search.search.bad_limit = options.search.bad_percent / 100;
  search.search.precision = options.precision_percent / 100;
  search.search.start_rps = options.start_rps;
  search.search.first_step = options.first_step;
  search.together = options.search.together;
  search.multiples = options.multiples;
  search.seeds = SeedsOf(options.search);
  // How many probes a search takes is known only at its end; about this many, mostly.
  const std::size_t each = 9 + options.multiples.size();
  return SearchEach<PeakResult>(
      options.search, experiment, search.seeds.size() * each,
      [&](const Experiment& named, const PolicyFactory& make, auto show) {
        search.on_probe = [&](std::size_t seed, std::size_t probes) {
          show(seed * each + std::min(probes, each - 1),
               fmt::format(", seed {} of {}", seed + 1, search.seeds.size()));
        };
        return FindPeakGoodput(named.scenario, named.profile, make, search);
      });
}

std::string Explanation(const Experiment& experiment, const GoodputOptions& options,
                        const Found& found) {
  std::string text = fmt::format(
      "{} (simulated, {:.4g} s for each run, {} seed{})\nprofile: {}\n"
      "peak: the highest offered rate at which {} {:.4g} %\n",
      experiment.scenario.name, experiment.scenario.duration_s, options.search.seeds,
      options.search.seeds > 1 ? "s" : "", experiment.profile.provenance,
      options.search.together ? "the violation ratio of all requests together does not exceed"
      : experiment.scenario.pipelines.empty()
          ? "no model's violation ratio exceeds"
          : "no pipeline's and no other model's violation ratio exceeds",
      options.search.bad_percent);
  if (!experiment.scenario.pipelines.empty()) {
    return text +
           "rates count requests to models, and a pipeline request makes several; there is no "
           "bound for pipelines\n";
  }
  const PeakGoodput& peak = found.rows.front().result.peak;
  if (peak.staggered_bound_rps.value_or(0) > 0) {
    text += fmt::format("staggered bound {:.0f} r/s, ", *peak.staggered_bound_rps);
  }
  text += fmt::format("fluid limit {:.0f} r/s on {}, with the final exit", peak.fluid_limit_rps,
                      LanesOf(experiment.scenario));
  const double error = FitError(experiment.scenario, experiment.profile).value_or(0);
  if (error > 0.02) {
    text += fmt::format("; latencies are up to {:.0f} % off the straight line they assume",
                        100 * error);
  }
  return text + "\n";
}

// Why there is no peak, as far as the probes tell.
std::string InVain(const std::string& policy, const GoodputPeak& search, const Scenario& scenario,
                   bool together) {
  const GoodputProbe& least = *std::ranges::min_element(search.probes, {}, &GoodputProbe::rate_rps);
  const auto name_of = [&](const GoodputProbe& probe) -> std::string {
    if (together) return "all models together";
    return fmt::format("{} '{}'", probe.worst_model < scenario.models.size() ? "model" : "pipeline",
                       ArrivalName(scenario, probe.worst_model));
  };
  std::string text = fmt::format("{}: no rate from {} r/s up passes", policy, Rate(least.rate_rps));
  if (!least.refused.empty()) return text + fmt::format("; there: {}\n", least.refused);
  const GoodputProbe* best = BestProbe(search);
  if (best != nullptr) {
    text += fmt::format("; the best seen is {:.2f} % violations of {}, at {} r/s",
                        100 * best->worst, name_of(*best), Rate(best->rate_rps));
  }
  if (!least.judged) {
    text += fmt::format(
        "; at {} r/s nothing of {} was counted, which a longer run may mend: --set "
        "duration_s=...",
        Rate(least.rate_rps), name_of(least));
  } else if (best != &least) {
    text += fmt::format("; less load is no remedy: {:.2f} % at {} r/s", 100 * least.worst,
                        Rate(least.rate_rps));
  }
  return text + fmt::format("; at less than {} r/s too few requests come to judge by\n",
                            Rate(LeastJudgedRate(scenario, together)));
}

// What a reader must know before trusting a row.
std::string Doubts(const Row& row, const Experiment& experiment, const GoodputOptions& options) {
  for (const GoodputPeak& search : row.result.searches) {
    if (search.rate_rps > 0) continue;
    return InVain(row.policy, search, experiment.scenario, options.search.together);
  }
  std::string text;
  for (const GoodputPeak& search : row.result.searches) {
    if (search.refused.empty() || !text.empty()) continue;
    text = fmt::format("{}: nothing ran at {} r/s: {}\n", row.policy, Rate(search.failed_rps),
                       search.refused);
  }
  return text + CoarseRuns(options.search, row.policy, row.result.at_peak.runs);
}

double WorstBadRatio(const std::vector<RunReport>& runs, const SearchOptions& options) {
  double worst = 0;
  for (const RunReport& run : runs) {
    for (const Judged& judged : JudgedOf(run, options)) worst = std::max(worst, judged.bad_ratio);
  }
  return worst;
}

// Where a load under the peak fails, or one above it passes.
std::string OtherCrossings(const Row& row, const GoodputOptions& options) {
  std::string text;
  for (std::size_t i = 0; i < row.result.beside.size(); ++i) {
    const double worst = WorstBadRatio(row.result.beside[i].runs, options.search);
    const bool fails = worst > options.search.bad_percent / 100;
    const double multiple = options.multiples[i];
    if (row.result.beside[i].runs.empty() || multiple == 1 || fails == (multiple > 1)) continue;
    text += fmt::format(
        "{}: at {:.4g} times the peak one has {:.2f} % violations: here their ratio does not rise "
        "with the load, and the peak is one of several\n",
        row.policy, multiple, 100 * worst);
  }
  return text;
}

// A bar that no figure would be held against must not pass for one that was held.
Status CheckBars(const GoodputOptions& options, const Scenario& scenario) {
  const auto above = [](double multiple) { return multiple > 1; };
  if (options.least_flat_top && std::ranges::none_of(options.multiples, above)) {
    return InvalidArgument(
        "--least-flat-top is about loads above the peak, and no --at is: add --at 1.5");
  }
  const std::size_t kinds = LaneKinds(scenario).size();
  if (options.search.together && !scenario.pipelines.empty()) {
    return InvalidArgument(fmt::format(
        "--together is about single requests, and {} has pipelines: leave it out", scenario.name));
  }
  if (options.least_fluid && !scenario.pipelines.empty()) {
    return InvalidArgument(fmt::format(
        "--least-fluid is about a bound that holds for single requests, and {} has pipelines: "
        "leave it out",
        scenario.name));
  }
  if (options.least_staggered && (scenario.models.size() != 1 || kinds != 1)) {
    return InvalidArgument(
        fmt::format("--least-staggered is about a bound of one model on lanes of one kind, and {} "
                    "has {} and {}: use --least-fluid",
                    scenario.name, scenario.models.size(), kinds));
  }
  return {};
}

int RunGoodput(const GoodputOptions& options) {
  const auto experiment =
      LoadExperiment(options.search.scenario, options.search.settings, {options.json});
  if (!experiment) return ReportBadInput(experiment.error());
  if (auto checked = CheckBars(options, experiment->scenario); !checked) {
    return ReportBadInput(checked.error());
  }
  const auto found = Search(options, *experiment);
  if (!found) return ReportBadInput(found.error());
  const std::vector<Row>& rows = found->rows;
  fmt::print("{}{}\n{}", Explanation(*experiment, options, *found),
             ScenarioDoubts(experiment->scenario, experiment->profile), PeakTable(*found));
  if (!options.multiples.empty()) fmt::print("\n{}", LoadTable(rows));
  fmt::print("{}", FailuresOf(found->failed));
  for (const Row& row : rows) {
    fmt::print("{}{}", PolicyDoubts(*experiment, row.policy),
               Doubts(row, *experiment, options) + OtherCrossings(row, options));
  }
  fmt::print("{}",
             TuningNotes(PoliciesOf(options.search, experiment->scenario), experiment->scenario));
  std::vector<Check> checks = MakeChecks(options, rows);
  if (!checks.empty()) fmt::print("\n{}", ToText(checks));
  const bool held = std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.ok; });
  if (!options.json.empty()) {
    const auto written = WriteJson(MakeReport(*found, std::move(checks)), options.json);
    if (!written) return ReportBadInput(written.error());
  }
  const bool peaks =
      std::ranges::all_of(rows, [](const Row& row) { return row.result.peak.rate_rps > 0; });
  return held && peaks && found->failed.empty() ? 0 : 1;
}

}  // namespace

void AddGoodput(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<GoodputOptions>();
  CLI::App* command =
      app.add_subcommand("goodput", "Find the highest load that each policy sustains in time");
  Declare(options->search, *command,
          "How many seeds, from --first-seed, each with a search of its own");
  AddOption(*command, "--precision", options->precision_percent, CLI::Range(0.001, 50.0),
            "Precision of each search, in %")
      ->capture_default_str();
  AddOption(*command, "--start", options->start_rps, CLI::Range(0.001, 1e9),
            "Rate at which each search begins (default: the fluid limit); the closer to "
            "the peak, the fewer runs");
  AddOption(*command, "--first-step", options->first_step, CLI::Range(1.001, 2.0),
            "Factor of a search's first step up or down; the next is its square, up to 2")
      ->capture_default_str();
  command->add_flag("--together", options->search.together,
                    "Judge a rate by the violations of all models' requests together, not of the "
                    "worst model: for models that are alike");
  AddOption(*command, "--at", options->multiples, CLI::Range(0.001, 100.0),
            "Also run at these multiples of the peak: 0.25,0.5,0.75,1.5")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->allow_extra_args(false);
  command->add_option("--least-staggered", options->least_staggered,
                      "Exit with 1 where the peak is below this fraction of the staggered bound");
  command->add_option("--least-fluid", options->least_fluid,
                      "Exit with 1 where the peak is below this fraction of the fluid limit");
  command->add_option(
      "--least-flat-top", options->least_flat_top,
      "Exit with 1 where an --at above 1 keeps less than this fraction of the peak's goodput");
  AddOption(*command, "--json", options->json, WritableFile(),
            "Write every run and check to this file");
  command->callback([options, &context] { context.exit_code = RunGoodput(*options); });
}

}  // namespace tactus
