// Every policy over a fixed suite (policy_suite.h), in virtual time and with the same arrivals, and
// what its decisions cost: one table, a row for each policy, and the bars that the default policy
// is held to. The cells are means over the workloads of a part; --json has every run.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/source_path_for_test.h"
#include "metrics/report.h"
#include "metrics/text_table.h"
#include "policies/registry.h"
#include "policy_results.h"
#include "policy_suite.h"
#include "program.h"
#include "sim/search/peak_goodput.h"
#include "sim/simulation.h"
#include "workload/accuracy_limit.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_policies";
constexpr const char* kOurs = "horizon";
constexpr const char* kPublished = "symphony:published";

struct Options {
  std::uint64_t seed = 1;
  double requests = 40'000;
  std::vector<std::string> parts = {"edgeserving", "combination", "symphony", "strait", "zoos"};
  // ';' between them: a policy's options have commas.
  std::string policies =
      "horizon;edgeserving;early-exit-edf;early-exit-lqf;all-final;all-early;symphony;"
      "symphony:published;symphony:gather=window,aim=0.8,lead=0.1;clockwork;shepherd:preempt=0;"
      "timeout:fill=0.65,share=0.35;nexus;strait;temporal;static-spatial;reactive-spatial;"
      "preemptive-priority";
  std::vector<std::string> rivals;
  std::string json;
};

struct Cost {
  double few = 0;   // ns of a decision with 3 models of 4 exits
  double many = 0;  // with 300 models on 64 lanes
};

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Status RunAt(const Workload& workload, const std::string& name, double rate, Report& report) {
  Scenario scenario = workload.scenario;
  scenario.policy = name;
  SetTotalRate(scenario, rate);
  auto policy = MakePolicy(name);
  if (!policy) return std::unexpected(policy.error());
  const auto run = Simulate(scenario, workload.profile, **policy);
  if (!run) return std::unexpected(run.error());
  report.runs.push_back(MakeReport(scenario, workload.profile, *run));
  MarkRun(report.runs.back(), workload, rate);
  return {};
}

Status FindPeak(const Workload& workload, const std::string& name, Report& report) {
  PeakOptions options;
  options.seeds = {workload.scenario.seed};
  options.multiples = workload.multiples;
  Scenario scenario = workload.scenario;
  scenario.policy = name;
  const auto found = FindPeakGoodput(
      scenario, workload.profile, [&] { return MakePolicy(name); }, options);
  if (!found) return std::unexpected(found.error());
  const auto keep = [&](const LoadedRuns& loaded) {
    for (const RunReport& run : loaded.runs) {
      report.runs.push_back(run);
      MarkPeakRun(report.runs.back(), workload, loaded.multiple);
    }
  };
  keep(found->at_peak);
  for (const LoadedRuns& loaded : found->beside) keep(loaded);
  return {};
}

// But for what the report has already.
void RunSuite(const std::vector<Workload>& suite, const std::vector<std::string>& policies,
              Report& report) {
  const Results there = ResultsOf(report, suite);
  const auto has = [&](const std::string& policy, std::size_t workload) {
    return std::ranges::any_of(there, [&](const Result& result) {
      return result.policy == policy && result.workload == workload;
    });
  };
  for (std::size_t w = 0; w < suite.size(); ++w) {
    const Workload& workload = suite[w];
    fmt::print(stderr, "{}\n", workload.name);
    for (const std::string& policy : policies) {
      if (has(policy, w)) continue;
      const auto keep = [&](const Status& done) {
        if (done) return;
        report.failed.push_back({policy, workload.name + ": " + done.error().message});
      };
      if (workload.measure == Measure::kPeak) keep(FindPeak(workload, policy, report));
      for (const double rate : workload.rates) keep(RunAt(workload, policy, rate, report));
    }
  }
}

// ns for each batch launched, all of the policy's work included: the difference to a run of the
// same decisions would be finer, but needs a journal. The least of three runs.
double DecisionCostOf(const Scenario& scenario, const ProfileFile& profile,
                      const std::string& name) {
  double least = 0;
  for (int i = 0; i < 3; ++i) {
    const auto policy = MakePolicy(name);
    const auto start = BenchClock::now();
    const auto run = Simulate(scenario, profile, **policy);
    const double took = NanosSince(start);
    if (!run || run->records.empty()) return 0;
    const double each = took / static_cast<double>(run->records.size());
    least = i == 0 ? each : std::min(least, each);
  }
  return least;
}

Cost CostOf(const std::string& name, const std::string& source_dir) {
  Cost cost;
  const auto few = LoadScenario(source_dir + "/scenarios/edgeserving/fig04.toml");
  const auto many = LoadScenario(source_dir + "/scenarios/symphony/zoo-1080ti-all.toml");
  if (!few || !many) return cost;
  Scenario three = *few;
  three.duration_s = 10;
  Scenario zoo = *many;
  zoo.duration_s = 5;
  const std::vector<ScenarioModel> models = zoo.models;
  zoo.models.clear();
  for (int i = 0; i < 300; ++i) {
    zoo.models.push_back(models[i % models.size()]);
    zoo.models.back().profile_as = models[i % models.size()].name;
    zoo.models.back().name += fmt::format(".{}", i);
  }
  if (const auto profile = LoadProfile(three.profile)) {
    cost.few = DecisionCostOf(three, *profile, name);
  }
  if (const auto profile = LoadProfile(zoo.profile)) {
    cost.many = DecisionCostOf(zoo, *profile, name);
  }
  return cost;
}

using Figure = std::function<double(const Result&)>;

std::vector<double> Of(const Results& results, const std::vector<Workload>& suite,
                       const std::string& part, const std::string& policy, const Figure& figure) {
  std::vector<double> figures;
  for (const Result& result : results) {
    if (suite[result.workload].part == part && result.policy == policy) {
      figures.push_back(figure(result));
    }
  }
  return figures;
}

double Mean(const std::vector<double>& figures) {
  double sum = 0;
  for (const double figure : figures) sum += figure;
  return figures.empty() ? 0 : sum / static_cast<double>(figures.size());
}

double Beside(const Result& r, double multiple) {
  const auto found = r.beside.find(multiple);
  return found == r.beside.end() ? 0 : found->second;
}

double LanesAt(const Result& r, double multiple) {
  const auto found = r.lanes.find(multiple);
  return found == r.lanes.end() ? 0 : found->second;
}

std::string Table(const Results& results, const std::vector<Workload>& suite,
                  const std::vector<std::string>& policies,
                  const std::map<std::string, Cost>& costs) {
  TextTable table;
  table.AddColumn("policy", "");
  const struct {
    const char* what;
    const char* unit;
    const char* part;
    Figure figure;
    double scale;
    bool least;
  } columns[] = {
      {"fig. 4", "acc.", "edgeserving", &Result::accuracy, 100, false},
      {"", "violations %", "edgeserving", &Result::bad, 100, false},
      {"combin.", "value", "combination", &Result::value, 100, false},
      {"", "high %", "combination", &Result::bad_high, 100, false},
      {"", "low %", "combination", &Result::bad_low, 100, false},
      {"symph.", "fluid", "symphony", &Result::of_fluid, 1, false},
      {"", "1.5x", "symphony", [](const Result& r) { return Beside(r, 1.5); }, 1, true},
      {"", "lanes", "symphony", [](const Result& r) { return LanesAt(r, 0.25); }, 1, false},
      {"strait", "high %", "strait", &Result::bad_high, 100, false},
      {"", "low %", "strait", &Result::bad_low, 100, false},
      {"zoos", "fluid", "zoos", &Result::of_fluid, 1, false},
      {"", "1.5x", "zoos", [](const Result& r) { return Beside(r, 1.5); }, 1, true},
  };
  for (const auto& column : columns) table.AddColumn(column.what, column.unit);
  table.AddColumn("us", "few");
  table.AddColumn("us", "many");
  for (const std::string& policy : policies) {
    std::vector<std::string> cells = {policy};
    for (const auto& column : columns) {
      const auto figures = Of(results, suite, column.part, policy, column.figure);
      if (figures.empty()) {
        cells.emplace_back("-");
        continue;
      }
      const double figure = column.least ? *std::ranges::min_element(figures) : Mean(figures);
      cells.push_back(fmt::format("{:.2f}", column.scale * figure));
    }
    const Cost& cost = costs.at(policy);
    cells.push_back(fmt::format("{:.2f}", cost.few / 1000));
    cells.push_back(fmt::format("{:.2f}", cost.many / 1000));
    table.Add(std::move(cells));
  }
  return table.Print();
}

// Our policy's results on a workload and load, and those of all others there.
void ForEachRun(const Results& results,
                const std::function<void(const Result&, const Results&)>& look) {
  for (const Result& own : results) {
    if (own.policy != kOurs) continue;
    Results others;
    for (const Result& other : results) {
      const bool same_load = own.of_fluid > 0 || own.rate == other.rate;
      if (other.policy != kOurs && other.workload == own.workload && same_load) {
        others.push_back(other);
      }
    }
    if (!others.empty()) look(own, others);
  }
}

double Most(const Results& results, const Figure& figure) {
  double most = figure(results.front());
  for (const Result& result : results) most = std::max(most, figure(result));
  return most;
}
double Least(const Results& results, const Figure& figure) {
  return -Most(results, [&](const Result& result) { return -figure(result); });
}

const Result* Find(const Results& results, const std::string& policy) {
  const auto found = std::ranges::find(results, policy, &Result::policy);
  return found == results.end() ? nullptr : &*found;
}

void CheckRun(const Workload& workload, const Result& own, const Results& others,
              std::vector<Check>& checks) {
  const std::string at = workload.measure == Measure::kPeak
                             ? workload.name
                             : fmt::format("{} at {:.0f}/s", workload.name, own.rate);
  if (workload.part == "edgeserving") {
    checks.push_back(AtMost(at + ": violation ratio", own.bad, 0.005));
    if (const Result* rival = Find(others, "edgeserving")) {
      checks.push_back(
          AtLeast(at + ": accuracy over EdgeServing's", own.accuracy - rival->accuracy, 0));
    }
  } else if (workload.part == "combination") {
    const double value = Most(others, &Result::value);
    checks.push_back(AtLeast(at + ": value over the best rival's", own.value / value, 0.99));
    checks.push_back(AtMost(at + ": violation ratio of high priority over the least",
                            own.bad_high - Least(others, &Result::bad_high), 0.01));
    checks.push_back(AtMost(at + ": violation ratio over the least",
                            own.bad - Least(others, &Result::bad), 0.01));
  } else if (workload.part == "strait") {
    checks.push_back(AtMost(at + ": violation ratio of high priority over the least",
                            own.bad_high - Least(others, &Result::bad_high), 0.0005));
    if (const Result* rival = Find(others, "strait")) {
      checks.push_back(AtMost(at + ": violation ratio of low priority over Strait's",
                              own.bad_low - rival->bad_low, 0));
    }
  } else {
    const bool zoo = workload.part == "zoos";
    checks.push_back(AtLeast(at + ": peak over the best rival's",
                             own.of_fluid / Most(others, &Result::of_fluid), zoo ? 0.98 : 0.99));
    checks.push_back(
        AtLeast(at + ": goodput at 1.5 times the peak", Beside(own, 1.5), zoo ? 0.95 : 0.98));
    const Result* published = Find(others, kPublished);
    if (zoo || published == nullptr) return;
    for (const double part : {0.1, 0.25}) {
      checks.push_back(AtMost(fmt::format("{}: lanes touched at {:g} of the peak over published "
                                          "Symphony's",
                                          at, part),
                              LanesAt(own, part) / std::max(1.0, LanesAt(*published, part)), 1.1));
    }
  }
}

std::vector<Check> Checks(const Results& results, const std::vector<Workload>& suite,
                          const std::vector<std::string>& policies,
                          const std::map<std::string, Cost>& costs) {
  std::vector<Check> checks;
  ForEachRun(results, [&](const Result& own, const Results& others) {
    CheckRun(suite[own.workload], own, others, checks);
  });
  const auto of = [&](const char* part, const std::string& policy, const Figure& figure) {
    return Mean(Of(results, suite, part, policy, figure));
  };
  if (!Of(results, suite, "edgeserving", kOurs, &Result::bad).empty()) {
    checks.push_back(
        AtMost("Figure 4: mean violation ratio", of("edgeserving", kOurs, &Result::bad), 0.0005));
    checks.push_back(AtLeast("Figure 4: mean accuracy over EdgeServing's",
                             of("edgeserving", kOurs, &Result::accuracy) -
                                 of("edgeserving", "edgeserving", &Result::accuracy),
                             0.013));
  }
  if (!Of(results, suite, "zoos", kOurs, &Result::of_fluid).empty()) {
    double best = 0;
    for (const std::string& policy : policies) {
      if (policy != kOurs) best = std::max(best, of("zoos", policy, &Result::of_fluid));
    }
    if (best > 0) {
      checks.push_back(AtLeast("zoos: mean peak over the best single rival's",
                               of("zoos", kOurs, &Result::of_fluid) / best, 1.05));
    }
  }
  if (costs.contains(kOurs) && costs.contains(kPublished)) {
    checks.push_back(AtMost("time of a request with 300 models on 64 lanes over Symphony's",
                            costs.at(kOurs).many / costs.at(kPublished).many, 2));
  }
  return checks;
}

// What any schedule could be worth that loses no more than so much, of workloads with exits and
// several priorities (workload/accuracy_limit.h: an upper bound, in the batches that the rates
// fill).
std::string Frontier(const std::vector<Workload>& suite) {
  constexpr double kLost[] = {0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5};
  TextTable table;
  table.AddColumn("most value", "at requests/s");
  for (const double lost : kLost) table.AddColumn(fmt::format("{:g} %", 100 * lost), "lost");
  bool any = false;
  for (const Workload& workload : suite) {
    if (workload.part != "combination") continue;
    for (const double rate : workload.rates) {
      Scenario scenario = workload.scenario;
      SetTotalRate(scenario, rate);
      std::vector<std::string> cells = {fmt::format("{}, {:.0f}", workload.name, rate)};
      for (const double lost : kLost) {
        const auto limits = ValueLimit(scenario, workload.profile, lost);
        if (!limits || !*limits) return "";
        cells.push_back(fmt::format("{:.1f}", 100 * (*limits)->by_rate));
      }
      table.Add(std::move(cells));
      any = true;
    }
  }
  return any ? table.Print() + "\n" : "";
}

int Main(int argc, char** argv) {
  CLI::App app("Every policy over a fixed suite, in virtual time");
  Options options;
  app.add_option("--seed", options.seed, "Of arrivals and of the twelve mixed zoos");
  app.add_option("--requests", options.requests, "About so many in each run (40000)");
  app.add_option("--parts", options.parts,
                 "Of the suite: edgeserving,combination,symphony,strait,zoos")
      ->delimiter(',');
  app.add_option("--policies", options.policies, "Separated by ';'");
  app.add_option("--rivals", options.rivals,
                 "Take the other policies' runs from this file of an earlier --json, instead of "
                 "running them again");
  app.add_option("--json", options.json, "Write every run and the checks to this file");
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::string> policies = Split(options.policies, ';');
  for (const std::string& policy : policies) {
    if (const auto made = MakePolicy(policy); !made) return CannotRun(kProgram, made.error());
  }
  auto suite = MakeSuite(kSourceDir, options.seed, options.requests);
  if (!suite) return CannotRun(kProgram, suite.error());
  std::erase_if(*suite, [&](const Workload& workload) {
    return std::ranges::find(options.parts, workload.part) == options.parts.end();
  });
  Report report;
  for (const std::string& path : options.rivals) {
    auto runs = ReadRuns(path, *suite, kOurs);
    if (!runs) return CannotRun(kProgram, runs.error());
    fmt::print("{} runs of {} at {}\n", runs->runs.size(), path,
               runs->runs.empty() ? "no commit" : runs->runs[0].commit);
    std::ranges::move(runs->runs, std::back_inserter(report.runs));
    std::ranges::move(runs->failed, std::back_inserter(report.failed));
  }
  const auto taken = static_cast<std::ptrdiff_t>(report.runs.size());
  RunSuite(*suite, policies, report);
  const Results results = ResultsOf(report, *suite);
  std::map<std::string, Cost> costs;
  for (const std::string& policy : policies) {
    const bool asked = options.rivals.empty() || policy == kOurs || policy == kPublished;
    costs[policy] = asked ? CostOf(policy, kSourceDir) : Cost{};
  }
  report.checks = Checks(results, *suite, policies, costs);
  fmt::print(
      "{}\nvalue: accuracy of what was in time, over all requests; fluid: peak over the "
      "fluid limit; 1.5x: the least goodput there over the peak's; lanes: touched at a "
      "quarter of the peak; us: of simulation for each request, 3 models with exits and 300 "
      "models on 64 lanes\n",
      Table(results, *suite, policies, costs));
  fmt::print("{}", Frontier(*suite));
  for (const FailedPolicy& failed : report.failed) {
    fmt::print("{}: {}\n", failed.policy, failed.why);
  }
  // Those that were read stand in their files as they were.
  report.runs.erase(report.runs.begin(), report.runs.begin() + taken);
  const int code = Conclude(kProgram, report, options.json);
  for (const std::string& path : options.rivals) {
    if (options.json.empty()) break;
    const Status appended = AppendRuns(options.json, path, kOurs);
    if (!appended) return CannotRun(kProgram, appended.error());
  }
  return code;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) { return tactus::Main(argc, argv); }
