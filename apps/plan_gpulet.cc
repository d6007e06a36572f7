// tactus plan gpulet: how devices are split into gpu-lets, and who is in which.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error_line.h"
#include "base/written_file.h"
#include "check/doubts.h"
#include "commands.h"
#include "core/chance.h"
#include "experiment/device_split.h"
#include "experiment/experiment.h"
#include "experiment/plan_loads.h"
#include "experiment/progress.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "planners/gpulet/elastic.h"
#include "planners/gpulet/ideal.h"
#include "planners/registry.h"
#include "sim/world/plan_question.h"
#include "workload/plan_file.h"
#include "workload/scenario_fields.h"

namespace tactus {
namespace {

struct GpuletOptions {
  std::string scenario;
  std::string planner = "gpulet-retry";
  std::vector<double> percent;        // none: the scenario's, or kUsualShares
  std::optional<double> exponent;     // none: the scenario's
  std::vector<std::string> measured;  // PERCENT=FILE; none: by `percent` and `exponent`
  std::vector<double> interference;   // c1 to c5, or none
  std::vector<std::string> settings;
  std::string out;
  std::string loads;
  std::string json;
};

constexpr const char* kPublished = "gpulet-published";

constexpr std::array kUsualShares = {20.0, 40.0, 50.0, 60.0, 80.0};  // percent, the paper's

struct Asked {
  Experiment experiment;
  std::vector<MeasuredShare> measured;  // as of GpuletOptions
  PlanQuestion question;                // at the scenario's rates
  PlanInput wanted;                     // at those that are planned for
};

Status SplitDevices(const GpuletOptions& options, std::span<const MeasuredShare> measured,
                    Experiment& experiment) {
  if (!measured.empty()) {
    const auto taken = TakeMeasuredShares(measured, experiment);
    if (!taken) return Fail(taken.error().code, "--on-share: " + taken.error().message);
    return {};
  }
  Scenario& scenario = experiment.scenario;
  if (!options.percent.empty()) {
    scenario.plan_shares = options.percent;
  } else if (scenario.plan_shares.empty()) {
    scenario.plan_shares.assign(kUsualShares.begin(), kUsualShares.end());
  }
  if (options.exponent) scenario.plan_exponent = *options.exponent;
  const auto valid = Validate(scenario);
  if (valid) return {};
  const std::string place = options.percent.empty() ? options.scenario : "--shares";
  return Fail(valid.error().code, place + ": " + valid.error().message);
}

// The rates of `load`, and the scenario's headroom.
PlanInput ToBePlannedFor(PlanInput load, const Scenario& scenario) {
  const bool by_chance = scenario.process != ArrivalProcess::kUniform;
  for (PlannedModel& model : load.models) {
    if (by_chance) model.expected_rps = model.rate_rps;
    model.rate_rps *= 1 + scenario.plan_headroom;
  }
  return load;
}

Expected<Asked> Ask(const GpuletOptions& options) {
  auto experiment = LoadExperiment(options.scenario, options.settings, {options.out, options.json});
  if (!experiment) return std::unexpected(experiment.error());
  auto measured = ParseMeasuredShares(options.measured);
  if (!measured) return Fail(measured.error().code, "--on-share: " + measured.error().message);
  if (auto split = SplitDevices(options, *measured, *experiment); !split) {
    return std::unexpected(split.error());
  }
  auto question = MakePlanQuestion(experiment->scenario, experiment->profile, experiment->on_share);
  if (!question) return std::unexpected(question.error());
  PlanInput wanted = ToBePlannedFor(question->input, experiment->scenario);
  return Asked{std::move(*experiment), std::move(*measured), std::move(*question),
               std::move(wanted)};
}

// " and 25 % more ([plan] headroom)"
std::string Headroom(const Scenario& scenario) {
  if (scenario.plan_headroom == 0) return "";
  return fmt::format(" and {:.4g} % more ([plan] headroom)", 100 * scenario.plan_headroom);
}

Expected<Solver> SolveIdeally(const PlanInput& input, const InterferenceModel* interference) {
  std::unique_ptr<Progress> progress;
  IdealOptions options{.interference = interference};
  options.on_progress = [&](std::size_t done, std::size_t all) {
    if (!progress) progress = std::make_unique<Progress>(all);
    progress->Show(done, "combinations of models in the two lanes of a device");
  };
  auto planner = IdealPlanner::Make(input, options);
  if (!planner) return std::unexpected(planner.error());
  return [ideal = std::make_shared<IdealPlanner>(std::move(*planner))](const PlanInput& asked) {
    std::vector<double> rates;
    for (const PlannedModel& model : asked.models) rates.push_back(model.rate_rps);
    return ideal->Solve(rates);
  };
}

Expected<Solver> MakeSolver(const GpuletOptions& options, const Asked& asked) {
  if (!options.interference.empty() && options.planner.starts_with("nexus")) {
    return InvalidArgument("--interference: " + options.planner + " counts on none; leave it out");
  }
  const std::vector<double>& given = options.interference.empty()
                                         ? asked.experiment.scenario.plan_interference
                                         : options.interference;
  std::optional<InterferenceModel> interference;
  if (!given.empty()) {
    std::copy(given.begin(), given.end(), interference.emplace().c.begin());
    if (const auto sane = CheckPredictions(*interference, asked.wanted); !sane) {
      const bool own = options.interference.empty();
      return Fail(sane.error().code,
                  (own ? "[plan] interference: " : "--interference: ") + sane.error().message);
    }
  }
  if (options.planner == "ideal") {
    return SolveIdeally(asked.wanted, interference ? &*interference : nullptr);
  }
  if (options.planner == kPublished) {
    return [interference](const PlanInput& input) {
      return PlanElastic(input, {.interference = interference ? &*interference : nullptr,
                                 .neighbours_bear_it = false,
                                 .expects_the_worst = false});
    };
  }
  auto planner = MakePlanner(options.planner, interference);
  if (!planner) return std::unexpected(planner.error());
  return [shared = std::shared_ptr<Planner>(std::move(*planner))](const PlanInput& input) {
    return shared->Solve(input);
  };
}

// An error says how much each model lacks.
Expected<Plan> Solve(const GpuletOptions& options, const Asked& asked) {
  const PlanInput& input = asked.wanted;
  const auto solve = MakeSolver(options, asked);
  if (!solve) return std::unexpected(solve.error());
  auto plan = (*solve)(input);
  if (plan || plan.error().code != ErrorCode::kResourceExhausted) return plan;
  return Fail(plan.error().code, plan.error().message + "; " +
                                     DescribeShortage(input, LargestPart(input, *solve).part));
}

// The lane's share and the names of who is in it, in lines of that many columns; a name that is
// longer is cut, and shows that it was.
std::vector<std::string> Cell(const LanePlan& lane, const PlanInput& input, std::size_t width) {
  std::vector<std::string> words = {fmt::format("{:.4g} %", 100 * lane.spec.fraction)};
  for (std::size_t e = 0; e < lane.entries.size(); ++e) {
    words.push_back(input.models[lane.entries[e].model.value()].name +
                    (e + 1 < lane.entries.size() ? "," : ""));
  }
  std::vector<std::string> lines;
  for (std::string& word : words) {
    if (word.size() > width) word = fmt::format("{:.{}}..", word, width > 2 ? width - 2 : 0);
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

// Each device as a bar, its lanes as wide as their shares, as high as the names need.
std::string Drawing(const Plan& plan, const PlanInput& input) {
  constexpr double kWidth = 100;
  struct Bar {
    std::vector<std::size_t> widths;  // of cells
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    double used = 0;
  };
  std::vector<Bar> bars(static_cast<std::size_t>(input.devices));
  const auto add = [](Bar& bar, std::vector<std::string> cell, std::size_t width) {
    bar.height = std::max(bar.height, cell.size());
    bar.widths.push_back(width);
    bar.cells.push_back(std::move(cell));
  };
  for (const LanePlan& lane : plan.lanes) {
    Bar& bar = bars[lane.spec.device.value()];
    const auto width =
        static_cast<std::size_t>(std::max(2.0, std::round(kWidth * lane.spec.fraction) - 1));
    add(bar, Cell(lane, input, width), width);
    bar.used += lane.spec.fraction;
  }
  std::string drawing;
  for (std::size_t device = 0; device < bars.size(); ++device) {
    Bar& bar = bars[device];
    const double rest = std::round(kWidth * (1 - bar.used)) - 1;
    if (rest > 0) {
      const auto width = static_cast<std::size_t>(rest);
      add(bar, std::vector(bar.height, std::string(width, '.')), width);
    }
    for (std::size_t line = 0; line < bar.height; ++line) {
      drawing += line == 0 ? fmt::format("{:>3} |", device) : "    |";
      for (std::size_t c = 0; c < bar.cells.size(); ++c) {
        const auto& cell = bar.cells[c];
        drawing += fmt::format("{:<{}}|", line < cell.size() ? cell[line] : "", bar.widths[c]);
      }
      drawing += "\n";
    }
  }
  return drawing;
}

std::string ToTable(const Plan& plan, const PlanInput& input) {
  TextTable table;
  table.AddColumns(
      "model|device|share [%]|batch|runs for [ms]~3|of a cycle of [ms]~2|SLO [ms]~1|"
      "sustains [r/s]|violations [%]");
  const std::vector<ChanceViolations> violations = ViolationsByChance(plan, input).models;
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      const PlannedModel& model = input.models[entry.model.value()];
      table.Add({model.name, std::to_string(lane.spec.device.value()),
                 fmt::format("{:.4g}", 100 * lane.spec.fraction), std::to_string(entry.batch),
                 fmt::format("{:.2f}", ToMillis(entry.length)),
                 fmt::format("{:.2f}", ToMillis(lane.cycle)),
                 fmt::format("{:.4g}", ToMillis(model.slo)),
                 fmt::format("{:.1f}", entry.batch / ToSeconds(lane.cycle)),
                 model.expected_rps > 0
                     ? fmt::format("{:.1f}", 100 * violations[entry.model.value()].ratio)
                     : "-"});
    }
  }
  return table.Print();
}

Status Write(const GpuletOptions& options, const Asked& asked, const Plan& plan) {
  if (options.out.empty()) return {};
  const Scenario& scenario = asked.experiment.scenario;
  PlanFile file = MakePlanFile(plan, asked.question.input);
  file.planner = options.planner;
  file.scenario = scenario.name;
  file.profile = asked.experiment.profile.provenance;
  if (asked.measured.empty()) {
    file.shares = scenario.plan_shares;
    file.exponent = scenario.plan_exponent;
    file.utilization_base = scenario.plan_utilization_base;
  }
  file.on_share = asked.measured;
  return SavePlan(file, options.out);
}

// A line about neighbours that the plan does not know of.
std::string NeighboursText(const GpuletOptions& options, const Scenario& scenario) {
  const bool counted_on = !options.interference.empty() || !scenario.plan_interference.empty();
  if (scenario.capacity.empty() || (counted_on && !options.planner.starts_with("nexus"))) return "";
  return "interference: not counted on, but lanes of a device slow each other in this scenario "
         "([contention]): there will be more violations; --interference=0,0,0,0,1.2 counts on a "
         "fifth\n";
}

// Which of the loads can be planned for; each plan is checked.
Expected<std::vector<bool>> WhichPlanned(const GpuletOptions& options, Asked& asked) {
  auto loads = ReadLoads(options.loads, asked.question.input);
  if (!loads) return std::unexpected(loads.error());
  for (PlannedModel& model : asked.wanted.models) model.rate_rps = model.expected_rps = 0;
  for (PlanInput& load : *loads) {
    load = ToBePlannedFor(load, asked.experiment.scenario);
    for (std::size_t m = 0; m < load.models.size(); ++m) {
      PlannedModel& most = asked.wanted.models[m];
      most.rate_rps = std::max(most.rate_rps, load.models[m].rate_rps);
      most.expected_rps = std::max(most.expected_rps, load.models[m].expected_rps);
    }
  }
  const auto solve = MakeSolver(options, asked);  // for the largest rates of all
  if (!solve) return std::unexpected(solve.error());
  std::vector<bool> planned;
  for (const PlanInput& load : *loads) {
    const auto plan = (*solve)(load);
    if (!plan && plan.error().code != ErrorCode::kResourceExhausted) {
      return std::unexpected(plan.error());
    }
    if (plan) {
      if (auto valid = Validate(*plan, load); !valid) return std::unexpected(valid.error());
    }
    planned.push_back(plan.has_value());
  }
  return planned;
}

Status WriteJson(const GpuletOptions& options, const Asked& asked,
                 const std::vector<bool>& planned) {
  if (options.json.empty()) return {};
  nlohmann::ordered_json json = {
      {"scenario", asked.experiment.scenario.name},
      {"profile", asked.experiment.profile.provenance},
      {"planner", options.planner},
      {"devices", asked.question.input.devices},
      {"models", nlohmann::ordered_json::parse(OnSharesJson(asked.question.input))}};
  if (!options.loads.empty()) json["loads_planned"] = planned;
  const std::string text =
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return WriteFileText(text, options.json, "report");
}

int RunLoads(const GpuletOptions& options, Asked& asked) {
  const auto planned = WhichPlanned(options, asked);
  if (!planned) return ReportBadInput(planned.error());
  if (auto out = WriteJson(options, asked, *planned); !out) return ReportBadInput(out.error());
  fmt::print("{}: {} plans for {} of {} loads{} on {} devices\n", options.loads, options.planner,
             std::ranges::count(*planned, true), planned->size(),
             Headroom(asked.experiment.scenario), asked.question.input.devices);
  return 0;
}

int RunGpulet(const GpuletOptions& options) {
  auto asked = Ask(options);
  if (!asked) return ReportBadInput(asked.error());
  if (!options.loads.empty()) return RunLoads(options, *asked);
  const PlanInput& input = asked->wanted;
  const Scenario& scenario = asked->experiment.scenario;
  if (const auto doubt = MemoryDoubt(asked->experiment.scenario, asked->experiment.profile)) {
    PrintWarning(*doubt);
  }
  const auto plan = Solve(options, *asked);
  if (!plan) {
    // Else it is not of the load.
    const bool load = plan.error().code == ErrorCode::kResourceExhausted;
    const std::string rates = "no plan for these rates" + Headroom(scenario) + ": ";
    return ReportBadInput(
        {plan.error().code,
         fmt::format("{}: {}{}", options.scenario, load ? rates : "", plan.error().message)});
  }
  if (auto valid = Validate(*plan, input); !valid) return ReportBadInput(valid.error());
  if (auto out = Write(options, *asked, *plan); !out) return ReportBadInput(out.error());
  if (auto out = WriteJson(options, *asked, {}); !out) return ReportBadInput(out.error());
  double used = 0;
  double rate_rps = 0;
  for (const LanePlan& lane : plan->lanes) used += lane.spec.fraction;
  for (const PlannedModel& model : asked->question.input.models) rate_rps += model.rate_rps;
  fmt::print(
      "{}: {:.4g} requests/s of {} models on {} devices{}, planned by {}\nprofile: {}\n"
      "shares: {}\n{}\n{}\n{}\n{:.2f} of {} devices are in use\n",
      scenario.name, rate_rps, input.models.size(), input.devices, Headroom(scenario),
      options.planner, asked->experiment.profile.provenance, SharesText(asked->experiment),
      NeighboursText(options, scenario), Drawing(*plan, input), ToTable(*plan, input), used,
      input.devices);
  return 0;
}

// Ascending percentages below 100.
std::string WhyNoShare(const std::string& text) {
  const double percent = std::strtod(text.c_str(), nullptr);
  return percent > 0 && percent < 100 ? "" : text + ": a share is between 0 and 100 %";
}

}  // namespace

void AddPlanGpulet(CLI::App& plan, CommandContext& context) {
  auto options = std::make_shared<GpuletOptions>();
  CLI::App* command = plan.add_subcommand(
      "gpulet", "Split devices into shares (gpu-lets) and place the models on them");
  AddOption(*command, "scenario", options->scenario, ReadFile(),
            "Scenario file (TOML); its lanes are devices")
      ->required();
  std::vector<std::string> planners(PlannerNames().begin(), PlannerNames().end());
  for (const char* slow_or_plain : {"ideal", kPublished}) planners.emplace_back(slow_or_plain);
  AddOption(*command, "--planner", options->planner, CLI::IsMember(planners), "Planner to use")
      ->capture_default_str();
  AddOption(*command, "--shares", options->percent, CLI::Validator(WhyNoShare, "PERCENT"),
            "Shares of a device that a lane may have beside the whole, in percent, ascending; "
            "overrides the scenario's [plan] shares")
      ->delimiter(',');
  AddOption(*command, "--exponent", options->exponent, CLI::Range(0.0, 4.0),
            "How strongly a smaller share slows a batch: 0 not at all, 1 in proportion to what "
            "it could use; overrides the scenario's [plan] exponent");
  AddOption(*command, "--on-share", options->measured, ReadFile(),
            "Instead of --shares and --exponent: the profile that `tactus profile` measured on "
            "each share, 50=half.json, ascending to 100=whole.json")
      ->option_text("PERCENT=FILE ...")
      ->excludes("--shares")
      ->excludes("--exponent");
  AddOption(
      *command, "--interference", options->interference, CLI::Range(-100.0, 100.0),
      "Coefficients c1,c2,c3,c4,c5 of the paper's Section 4.4 (default: the scenario's [plan] "
      "interference, else lanes are assumed not to disturb each other)")
      ->delimiter(',')
      ->expected(5);
  auto* loads =
      AddOption(*command, "--loads", options->loads, ReadFile(),
                "Instead of the scenario's rates: plan for each row of this CSV file, whose header "
                "is the models' names, and say how many can be planned for; with --json, which");
  AddOption(*command, "--json", options->json, WritableFile(),
            "Write what each model does on each share of a device to this file, and which "
            "--loads can be planned for");
  AddOption(*command, "--out", options->out, WritableFile(),
            "Write the plan and the shares that it was made for to this file, for `tactus simulate "
            "--plan` and `tactus serve --plan`")
      ->excludes(loads);
  command->add_option("--set", options->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  command->callback([options, &context] { context.exit_code = RunGpulet(*options); });
}

}  // namespace tactus
