// The synthetic workloads of Symphony's Section 3.4.2 (Table 1 and Figure 7), and a quick search
// for the peak goodput of one. Thousands of searches stand behind that figure, so each is as short
// as two percent of precision allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/search/peak_goodput.h"

namespace tactus {

// Every model of a workload is equally popular, and its gaps follow a Gamma distribution.
struct GridCell {
  std::string model;           // of Table 3; "mixed": each of its models once, at their own SLOs
  int models = 0;              // copies of it
  double lanes_per_model = 0;  // the paper's #GPUs : #Models
  Duration slo{};              // 0 for mixed
  double shape = 1;            // of the gaps: 1 is Poisson, less is burstier

  int lanes() const;
  // "DenseNet121,8,12,30,0.1": model, models, lanes, SLO in ms, shape.
  std::string Name() const;
};

inline constexpr const char* kMixed = "mixed";

// All combinations of Table 1's options, 7,560, and the 42 of the mixed zoo of `zoo_models`. The
// paper speaks of 5,880 workloads and does not say which of them it left out.
std::vector<GridCell> WorkloadGrid(int zoo_models);

// How long a probe is. Copies of one model are alike, so their violation ratio is taken over all of
// them together, which needs far fewer requests than the worst of each would.
struct GridEffort {
  double warmup_s = 0.5;           // fills the window from which Symphony knows its rates
  double least_s = 1;              // counted after it, and ...
  double least_requests = 20'000;  // ... as long as this many take at the fluid limit
  double zoo_requests = 70'000;    // in place of least_requests for mixed: 2,000 a model
  double precision = 0.02;
  std::uint64_t seed = 1;
};

// The workload as a scenario, at the fluid limit. An error when the profile lacks the model.
Expected<Scenario> MakeWorkload(const GridCell& cell, const ProfileFile& zoo,
                                const GridEffort& effort);

// The highest rate that passes, all models together, in requests per second; 0 when none does. The
// search begins at `guess_rps`: the closer, the fewer probes.
Expected<double> QuickPeak(const GridCell& cell, const ProfileFile& zoo,
                           const PolicyFactory& make_policy, double guess_rps,
                           const GridEffort& effort);

}  // namespace tactus
