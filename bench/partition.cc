// Which models share which sub-clusters: the local search beside the paper's random solver and, in
// a build with -DTACTUS_WITH_CBC=ON, the exact one, each for as long.
#include <chrono>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/source_path_for_test.h"
#include "planners/subcluster/partition_file.h"
#include "planners/subcluster/partition_search.h"
#include "program.h"
#ifdef TACTUS_WITH_CBC
#include "cbc/cbc_partition.h"
#endif

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_partition";

// What a solver made of the problem, as a row; its objective.
double Show(const char* solver, const FoundPartition& found, const std::string& remark) {
  fmt::print("{:<8} objective {:<10.4g} rate {:.3f} %, static memory {:.3f} %; {}\n", solver,
             found.score.objective, 100 * found.score.rate_imbalance,
             100 * found.score.memory_imbalance, remark);
  return found.score.objective;
}

Expected<Report> Compare(const std::string& file, double seconds) {
  const auto problem = LoadPartitionProblem(file);
  if (!problem) return std::unexpected(problem.error());
  const auto until = [&] {
    return [start = BenchClock::now(), seconds](const PartitionProgress&) {
      return NanosSince(start) >= 1e9 * seconds;
    };
  };
  // The search descends again and again until its time is over.
  const auto searched =
      SearchPartition(*problem, {.descents = std::numeric_limits<int>::max()}, until());
  if (!searched) return std::unexpected(searched.error());
  const double search = Show("search", *searched, fmt::format("{} trials", searched->trials));
  const auto drawn = DrawPartition(*problem, {}, until());
  if (!drawn) return std::unexpected(drawn.error());
  const double random = Show("random", *drawn, fmt::format("{} trials", drawn->trials));
  Report report;
  report.checks.push_back(
      AtMost("objective of the search over the random one's", search / random, 1));
#ifdef TACTUS_WITH_CBC
  const auto exact = SolvePartitionByCbc(*problem, seconds);
  if (!exact) {
    fmt::print("cbc      {}\n", exact.error().message);
    return report;
  }
  const double cbc = Show("cbc", exact->found, exact->optimal ? "proven" : "not proven");
  report.checks.push_back(AtMost("objective of the search over CBC's", search / cbc, 1.05));
#endif
  return report;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app("The local search for partitions beside the random and the exact solver");
  std::string file = tactus::SourcePath("scenarios/partition/zoo.toml");
  std::string json;
  double seconds = 10;
  app.add_option("file", file, "Cluster and models (TOML)")->capture_default_str();
  app.add_option("--seconds", seconds, "For each solver")->capture_default_str();
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  const auto report = tactus::Compare(file, seconds);
  if (!report) return tactus::CannotRun(tactus::kProgram, report.error());
  return tactus::Conclude(tactus::kProgram, *report, json);
}
