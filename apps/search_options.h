// What `tactus goodput` and `tactus plan lanes` share: which policies and seeds a search is made
// with, what may be violations, and when its answer is coarse.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/expected.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "metrics/report.h"
#include "policies/registry.h"
#include "workload/scenario.h"

namespace tactus {

struct SearchOptions {
  std::string scenario;
  std::vector<std::string> policies;  // as they were written; empty: the scenario's
  int seeds = 3;
  std::uint64_t first_seed = 1;
  double bad_percent = 1;  // of any model or pipeline, at most
  std::vector<std::string> settings;
  bool together = false;  // all models' requests are judged as one's
};

// `seeds`: what the help says of their number.
void Declare(SearchOptions& options, CLI::App& command, const std::string& seeds);

std::vector<std::string> PoliciesOf(const SearchOptions& options, const Scenario& scenario);
std::vector<std::uint64_t> SeedsOf(const SearchOptions& options);

// Where every policy failed on the scenario there is nothing to report: why each did, and only why
// where all did alike.
Error NoneFound(std::span<const FailedPolicy> failed);
// Where some did, a line for each.
std::string FailuresOf(std::span<const FailedPolicy> failed);

// What a search found for each policy, and which failed.
template <class Result>
struct Searched {
  struct Row {
    std::string policy;
    Result result;
  };
  std::vector<Row> rows;
  std::vector<FailedPolicy> failed;
};

// `find` searches for each policy: it takes the experiment with that policy, how to make one, and
// whom to tell how many of some `probes` are done and what is next. An error only where all fail.
template <class Result>
Expected<Searched<Result>> SearchEach(const SearchOptions& options, const Experiment& experiment,
                                      std::size_t probes, auto find) {
  const std::vector<std::string> policies = PoliciesOf(options, experiment.scenario);
  if (auto checked = CheckPolicies(policies); !checked) return std::unexpected(checked.error());
  Progress progress(policies.size() * probes);
  Searched<Result> found;
  for (const std::string& policy : policies) {
    Experiment named = experiment;
    named.scenario.policy = policy;
    const std::size_t before = (found.rows.size() + found.failed.size()) * probes;
    Expected<Result> result = find(
        named, [&] { return MakePolicy(policy); },
        [&](std::size_t done, const std::string& what) {
          progress.Show(before + std::min(done, probes - 1), policy + what);
        });
    if (result) {
      found.rows.push_back({policy, *std::move(result)});
    } else {
      found.failed.push_back({policy, result.error().message});
    }
  }
  if (found.rows.empty()) return std::unexpected(NoneFound(found.failed));
  return found;
}

// What a run is judged by: pipelines, and models whose requests are not pipelines'; or all of them.
struct Judged {
  const char* what;  // "requests of model" or "requests to pipeline"
  std::string name;
  std::int64_t counted = 0;
  double bad_ratio = 0;
};
std::vector<Judged> JudgedOf(const RunReport& run, const SearchOptions& options);

// A line that names the first model or pipeline of which too few requests counted in a run: so few
// that one of them moves its violation ratio by a tenth of the limit or more. Empty where there is
// none.
std::string CoarseRuns(const SearchOptions& options, const std::string& policy,
                       std::span<const RunReport> runs);

}  // namespace tactus
