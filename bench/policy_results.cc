#include "policy_results.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workload/json_reader.h"

namespace tactus {
namespace {

constexpr const char* kWorkload = "workload";
constexpr const char* kRate = "rate_rps";
constexpr const char* kOfPeak = "of_peak";
constexpr const char* kRemedy = "give a file of `./run bench policies --json`";

std::optional<std::size_t> PlaceOf(const std::vector<Workload>& suite, const RunReport& run) {
  const auto named = run.settings.find(kWorkload);
  if (named == run.settings.end()) return std::nullopt;
  const auto at = std::ranges::find(suite, named->second, &Workload::name);
  if (at == suite.end()) return std::nullopt;
  return static_cast<std::size_t>(at - suite.begin());
}

double NumberOf(const RunReport& run, const char* setting) {
  const auto found = run.settings.find(setting);
  return found == run.settings.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

Result AtLoad(const RunReport& run) {
  const double value = run.all.accuracy * (1 - run.all.bad_ratio);
  Result result{.policy = run.policy,
                .rate = NumberOf(run, kRate),
                .accuracy = run.all.accuracy,
                .value = value,
                .bad = run.all.bad_ratio,
                .bad_high = run.all.bad_ratio,
                .bad_low = run.all.bad_ratio};
  if (!run.priorities.empty()) {
    result.bad_high = run.priorities.front().figures.bad_ratio;
    result.bad_low = run.priorities.back().figures.bad_ratio;
  }
  return result;
}

Result AtPeak(const RunReport& run) {
  Result result{.policy = run.policy};
  if (!run.peak) return result;
  result.rate = run.peak->rate_rps;
  result.of_fluid = run.peak->rate_rps / run.peak->fluid_limit_rps;
  return result;
}

Expected<nlohmann::json> Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(ErrorCode::kNotFound, path + " cannot be read; " + kRemedy);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return ParseJson(text, path, kRemedy);
}

RunReport RunOf(const nlohmann::json& json) {
  RunReport run{.policy = json.at("policy"),
                .seed = json.at("seed"),
                .commit = json.at("commit"),
                .settings = json.at("settings"),
                .duration_s = json.at("duration_s")};
  run.all.goodput_rps = json.at("goodput_rps");
  run.all.accuracy = json.at("accuracy");
  run.all.bad_ratio = json.at("bad_ratio");
  run.lanes_touched = json.at("lanes_touched");
  for (const nlohmann::json& level : json.value("priorities", nlohmann::json::array())) {
    run.priorities.push_back({.priority = level.at("priority")});
    run.priorities.back().figures.bad_ratio = level.at("bad_ratio");
  }
  if (json.contains("peak")) {
    run.peak = PeakGoodput{.rate_rps = json["peak"].at("rate_rps"),
                           .fluid_limit_rps = json["peak"].at("fluid_limit_rps")};
  }
  return run;
}

// Nothing where the run is of this workload as it is now.
std::string WhyOther(const RunReport& run, const Scenario& scenario) {
  constexpr double kRounding = 1e-6;
  const double lasts = scenario.duration_s - scenario.warmup_s;
  if (run.seed != scenario.seed) {
    return fmt::format("seed {}, not {}", run.seed, scenario.seed);
  }
  if (std::abs(run.duration_s - lasts) > kRounding) {
    return fmt::format("{:g} s, not {:g}", run.duration_s, lasts);
  }
  return "";
}

bool Failed(const Report& report, const std::string& policy, const Workload& workload) {
  return std::ranges::any_of(report.failed, [&](const FailedPolicy& failed) {
    return failed.policy == policy && failed.why.starts_with(workload.name + ":");
  });
}

}  // namespace

void MarkRun(RunReport& run, const Workload& workload, double rate) {
  run.settings[kWorkload] = workload.name;
  run.settings[kRate] = fmt::format("{}", rate);
}

void MarkPeakRun(RunReport& run, const Workload& workload, double multiple) {
  run.settings[kWorkload] = workload.name;
  run.settings[kOfPeak] = fmt::format("{:g}", multiple);
}

Results ResultsOf(const Report& report, const std::vector<Workload>& suite) {
  Results results;
  const auto find = [&](const std::string& policy, std::size_t workload) {
    return std::ranges::find_if(results, [&](const Result& result) {
      return result.policy == policy && result.workload == workload;
    });
  };
  std::map<std::pair<std::string, std::size_t>, double> peaks;
  for (const RunReport& run : report.runs) {
    const auto workload = PlaceOf(suite, run);
    if (!workload) continue;
    if (!run.settings.contains(kOfPeak)) {
      results.push_back(AtLoad(run));
      results.back().workload = *workload;
      continue;
    }
    double& peak = peaks[{run.policy, *workload}];
    const double multiple = NumberOf(run, kOfPeak);
    if (multiple == 1) {
      peak = run.all.goodput_rps;
      results.push_back(AtPeak(run));
      results.back().workload = *workload;
    } else if (const auto own = find(run.policy, *workload); own != results.end() && peak > 0) {
      own->beside[multiple] = run.all.goodput_rps / peak;
      own->lanes[multiple] = run.lanes_touched;
    }
  }
  std::set<std::string> policies;
  for (const RunReport& run : report.runs) policies.insert(run.policy);
  for (const std::string& policy : policies) {
    for (std::size_t w = 0; w < suite.size(); ++w) {
      if (suite[w].measure != Measure::kPeak || find(policy, w) != results.end()) continue;
      if (!Failed(report, policy, suite[w])) results.push_back({.policy = policy, .workload = w});
    }
  }
  return results;
}

Expected<Report> ReadRuns(const std::string& path, const std::vector<Workload>& suite,
                          const std::string& but) {
  const auto json = Read(path);
  if (!json) return std::unexpected(json.error());
  Report report;
  try {
    for (const nlohmann::json& each : json->at("runs")) {
      RunReport run = RunOf(each);
      const auto workload = PlaceOf(suite, run);
      if (!workload || run.policy == but) continue;
      const std::string other = WhyOther(run, suite[*workload].scenario);
      if (!other.empty()) {
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: '{}' is of other runs: {}; {} of the same seed and --requests",
                                path, suite[*workload].name, other, kRemedy));
      }
      report.runs.push_back(std::move(run));
    }
    for (const nlohmann::json& each : json->value("failed", nlohmann::json::array())) {
      if (each.at("policy") != but) report.failed.push_back({each["policy"], each.at("why")});
    }
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, path + ": " + error.what() + "; " + kRemedy);
  }
  return report;
}

Status AppendRuns(const std::string& json, const std::string& path, const std::string& but) {
  auto own = Read(json);
  if (!own) return std::unexpected(own.error());
  const auto other = Read(path);
  if (!other) return std::unexpected(other.error());
  for (const nlohmann::json& run : (*other)["runs"]) {
    if (run["policy"] != but) (*own)["runs"].push_back(run);
  }
  std::ofstream file(json);
  file << own->dump(1) << '\n';
  if (!file) return Fail(ErrorCode::kInternal, json + " cannot be written");
  return {};
}

}  // namespace tactus
