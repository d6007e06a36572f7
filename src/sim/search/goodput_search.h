// The peak goodput of a system: the highest offered rate at which every model's violation ratio
// stays at or under a limit (1 % in Symphony, Section 5). The search knows nothing of simulation:
// it is given a function from a rate to the models' violation ratios.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// The violation ratio of each model when `rate_rps` is offered in all, in the models' proportions.
// NaN: no request of the model was counted, which shows nothing about it, so the rate does not
// pass. kResourceExhausted: there is no way to sustain this rate (no plan for it, say), nothing
// ran, and it does not pass; every other error ends the search.
using BadRatios = std::function<Expected<std::vector<double>>(double rate_rps)>;

struct GoodputSearchOptions {
  // Where to begin; a good guess (the fluid limit) saves probes, a bad one is mended by doubling or
  // halving.
  double start_rps = 1000;
  // A rate passes when no model's violation ratio exceeds this.
  double bad_limit = 0.01;
  // The search ends when the highest rate that passed and the lowest that did not differ by no more
  // than this part of the first.
  double precision = 0.005;
  // How often the start is doubled or halved in search of a rate that fails, or passes.
  int most_doublings = 20;
  // The search goes no lower: below, too few requests come to judge a rate by. It starts here where
  // start_rps is less.
  double least_rps = 0;
  // The factor of the first such step; the next is its square, and so on up to 2. Near 1 it saves
  // probes where the start is a good guess. In (1, 2].
  double first_step = 2;
};

struct GoodputProbe {
  double rate_rps = 0;
  double worst = 0;  // the largest violation ratio ...
  std::size_t worst_model = 0;
  bool judged = true;  // false: nothing of worst_model was counted, and no other model failed
  bool passed = false;
  std::string refused;  // why nothing ran at this rate; then it is not judged, and worst is 0
};

struct GoodputPeak {
  double rate_rps = 0;               // the highest that passed; 0 when none did
  double failed_rps = 0;             // the lowest that did not, above the peak; 0 when all passed
  std::size_t limiting_model = 0;    // the worst at failed_rps
  std::string refused;               // why nothing ran at failed_rps: then no model is the worst
  std::vector<GoodputProbe> probes;  // in the order in which they were taken
};

// Doubles or halves (or takes smaller steps first: first_step) from the start until the peak is
// between two rates, then bisects. It takes the violation ratio to rise with the rate: where it
// does not, the peak is one of the crossings. With one seed for all rates (arrivals are then the
// same dice on another scale) it nearly does. The error of `bad_ratios`, or kInvalidArgument for
// options that make no sense.
Expected<GoodputPeak> FindPeak(const BadRatios& bad_ratios, const GoodputSearchOptions& options);

// The judged probe whose worst model was the best off, the first of several; null where none was
// judged. With the rate that it was at, it says more about a search in vain than its last probe
// does.
const GoodputProbe* BestProbe(const GoodputPeak& peak);

// A mean and half the width of its 95 % confidence interval by Student's t; the half width is 0 for
// a single value, of which nothing is known.
struct ConfidentMean {
  double mean = 0;
  double half_width = 0;
};
ConfidentMean MeanWithConfidence(std::span<const double> values);

}  // namespace tactus
