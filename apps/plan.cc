// tactus plan: slow decisions, made before anything runs. `plan partition` says which models share
// which backends; plan_lanes.cc, how many lanes a load needs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/written_file.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "planners/subcluster/partition_file.h"
#include "planners/subcluster/partition_search.h"

namespace tactus {
namespace {

struct PartitionOptions {
  std::string input;
  std::string previous;
  std::optional<double> most_moves;
  double time_limit_s = 10;
  bool timed = true;  // false: the number of trials alone ends the search
  std::string solver = "search";
  int descents = 0;  // 0: until time or trials are over
  PartitionSearchOptions search;
  std::string json;
};

// Ends a solver when its time is over, if it has a limit, and shows how far it is until then.
class Deadline {
 public:
  explicit Deadline(const PartitionOptions& options)
      : options_(options),
        total_(static_cast<std::size_t>(options.timed
                                            ? std::max(1.0, options.time_limit_s)
                                            : static_cast<double>(options.search.most_trials))),
        progress_(total_) {}

  bool Passed(const PartitionProgress& found) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    if (const auto second = static_cast<std::size_t>(spent.count()); second != shown_) {
      shown_ = second;
      const std::string at = options_.timed ? fmt::format("s, {} trials", found.trials) : "trials";
      progress_.Show(
          std::min(options_.timed ? second : static_cast<std::size_t>(found.trials), total_),
          found.within_limits ? fmt::format("{}, objective {:.4g}", at, found.objective)
                              : fmt::format("{}, nothing within the limits", at));
    }
    return options_.timed && spent.count() >= options_.time_limit_s;
  }

 private:
  const PartitionOptions& options_;
  const std::size_t total_;  // seconds, or trials
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t shown_ = 0;
  Progress progress_;
};

Expected<FoundPartition> Search(const PartitionOptions& options, const PartitionProblem& problem) {
  Deadline deadline(options);
  const StopPartition stop = [&](const PartitionProgress& at) { return deadline.Passed(at); };
  PartitionSearchOptions search = options.search;
  search.descents = options.descents > 0 ? options.descents : std::numeric_limits<int>::max();
  return options.solver == "random" ? DrawPartition(problem, search, stop)
                                    : SearchPartition(problem, search, stop);
}

std::string NamesIn(const PartitionProblem& problem, const Partition& partition, int sub_cluster) {
  std::string names;
  for (std::size_t i = 0; i < partition.size(); ++i) {
    if (partition[i] != sub_cluster) continue;
    const bool moved = !problem.previous.empty() && problem.previous[i] != sub_cluster;
    names +=
        fmt::format("{}{}{}", names.empty() ? "" : ", ", moved ? "+" : "", problem.models[i].name);
  }
  return names;
}

std::string ToTable(const PartitionProblem& problem, const FoundPartition& found) {
  TextTable table;
  table.AddColumns(
      "sub-cluster|models|rate [r/s]|of average [%]~1|static [MB]~3|of average [%]~2|"
      "dynamic [MB]~4|memory [MB]");
  const auto loads = LoadsOf(problem, found.partition);
  double rate = 0;
  double memory = 0;
  for (const SubClusterLoad& load : loads) {
    rate += load.rate_rps / static_cast<double>(loads.size());
    memory += load.static_mb / static_cast<double>(loads.size());
  }
  const auto share = [](double part, double average) {
    return average > 0 ? fmt::format("{:.1f}", 100 * part / average) : "-";
  };
  for (std::size_t j = 0; j < loads.size(); ++j) {
    const SubClusterLoad& load = loads[j];
    table.Add({std::to_string(j), std::to_string(load.models), fmt::format("{:.1f}", load.rate_rps),
               share(load.rate_rps, rate), fmt::format("{:.1f}", load.static_mb),
               share(load.static_mb, memory), fmt::format("{:.1f}", load.dynamic_mb),
               fmt::format("{:.1f}", load.memory_mb())});
  }
  return table.Print();
}

std::string ToText(const PartitionOptions& options, const PartitionProblem& problem,
                   const FoundPartition& found) {
  const PartitionScore& score = found.score;
  std::string text = fmt::format(
      "{}: {} models onto {} sub-clusters\n{}"
      "imbalance, (max - min) / avg: rate {:.3f} %, static memory {:.3f} %; objective {:.4g}\n",
      options.input, problem.models.size(), problem.sub_clusters, ToTable(problem, found),
      100 * score.rate_imbalance, 100 * score.memory_imbalance, score.objective);
  text += fmt::format("{} trials, seed {}\n", found.trials, options.search.seed);
  if (!problem.previous.empty()) {
    text += fmt::format("{} models moved, at a cost of {:.6g} (+: it was elsewhere, or is new)\n",
                        score.moved, score.cost);
  }
  for (int j = 0; j < problem.sub_clusters; ++j) {
    text += fmt::format("  {}: {}\n", j, NamesIn(problem, found.partition, j));
  }
  return text;
}

nlohmann::ordered_json ToJson(const PartitionOptions& options, const PartitionProblem& problem,
                              const FoundPartition& found) {
  nlohmann::ordered_json json;
  json["input"] = options.input;
  json["seed"] = options.search.seed;
  json["trials"] = found.trials;
  json["objective"] = found.score.objective;
  json["rate_imbalance"] = found.score.rate_imbalance;
  json["memory_imbalance"] = found.score.memory_imbalance;
  json["moved"] = found.score.moved;
  json["cost"] = found.score.cost;
  const auto loads = LoadsOf(problem, found.partition);
  for (std::size_t j = 0; j < loads.size(); ++j) {
    json["sub_clusters"].push_back({{"id", j},
                                    {"models", loads[j].models},
                                    {"rate_rps", loads[j].rate_rps},
                                    {"static_mb", loads[j].static_mb},
                                    {"dynamic_mb", loads[j].dynamic_mb}});
  }
  // What --previous reads.
  for (std::size_t i = 0; i < found.partition.size(); ++i) {
    json["models"][problem.models[i].name] = found.partition[i];
  }
  return json;
}

int RunPartition(const PartitionOptions& options) {
  auto problem = LoadPartitionProblem(options.input);
  if (!problem) return ReportBadInput(problem.error());
  if (!options.previous.empty()) {
    const auto read = LoadPreviousPartition(options.previous, *problem);
    if (!read) return ReportBadInput(read.error());
  }
  if (options.most_moves) problem->most_cost = *options.most_moves;
  const auto found = Search(options, *problem);
  if (!found) {
    return ReportBadInput({found.error().code, options.input + ": " + found.error().message});
  }
  fmt::print("{}", ToText(options, *problem, *found));
  if (options.json.empty()) return 0;
  const Status written =
      WriteFileText(ToJson(options, *problem, *found).dump(2) + "\n", options.json, "partition");
  return written ? 0 : ReportBadInput(written.error());
}

void AddPartition(CLI::App& plan, CommandContext& context) {
  auto options = std::make_shared<PartitionOptions>();
  CLI::App* command = plan.add_subcommand(
      "partition", "Divide models among the backends of sub-clusters, evenly and within memory");
  AddOption(*command, "input", options->input, ReadFile(), "Cluster and models (TOML)")->required();
  auto* previous =
      AddOption(*command, "--previous", options->previous, ReadFile(),
                "An earlier partition (of --json); models stay where it put them if they can");
  AddOption(*command, "--max-moves", options->most_moves, CLI::Range(0.0, 1e12),
            "Most models that may move, or their move_cost in all")
      ->needs(previous);
  auto* limit = command->add_option(
      "--time-limit", options->time_limit_s,
      "Most seconds that the search may take; with --trials there is no limit by default");
  limit->check(CLI::Range(0.001, 86'400.0))->capture_default_str();
  auto* trials = command->add_option(
      "--trials", options->search.most_trials,
      "End after this many trials, so that the answer is the same on any machine");
  trials->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
  AddOption(*command, "--solver", options->solver, CLI::IsMember({"search", "random"}),
            "Local search, or the best of partitions drawn at random to compare it with")
      ->capture_default_str();
  AddOption(*command, "--descents", options->descents, CLI::Range(1, 1'000'000),
            "End the local search after so many descents, each from the best so far "
            "(default: when time or trials are over)");
  command->add_option("--seed", options->search.seed, "Seed of the search")->capture_default_str();
  AddOption(*command, "--json", options->json, WritableFile(), "Write the partition to this file");
  command->callback([options, limit, trials, &context] {
    options->timed = limit->count() > 0 || trials->count() == 0;
    context.exit_code = RunPartition(*options);
  });
}

}  // namespace

void AddPlan(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("plan", "Plan ahead: how many lanes, which models go where");
  command->require_subcommand(1);
  AddPlanGpulet(*command, context);
  AddPlanLanes(*command, context);
  AddPlanFleet(*command, context);
  AddPartition(*command, context);
}

}  // namespace tactus
