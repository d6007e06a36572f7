// How much any scheduler could serve: the compass of every goodput experiment.
//
// Latencies are affine, l(b) = alpha b + beta, in milliseconds; rates are requests per second.
#pragma once

#include <span>

namespace tactus {

struct AffineModel {
  double alpha_ms = 0;
  double beta_ms = 0;
  double slo_ms = 0;
  double rate_rps = 0;  // only the proportions between models matter to FluidPeak
};

// The most that one model gets from `lanes` lanes in staggered execution, by whole batches: the
// largest b with (1 + 1/lanes) l(b) <= SLO, served back to back (Symphony, Eq. 1 and 2). 0 when not
// even b = 1 meets the SLO.
double StaggeredBound(const AffineModel& model, int lanes);

// Lanes that the models keep busy at the least, at their rates: no policy that drops nothing needs
// fewer, because within its SLO a model can gather no more than
//   b = max(1, R (SLO - beta) / (1 + R alpha))
// requests, and so pays at least alpha + beta / b for each.
double FluidLanes(std::span<const AffineModel> models);

// The total rate, in the models' proportions, at which FluidLanes reaches `lanes`.
//
// Of lanes that differ: models as they are on the quickest, `lanes` in units of it (2 lanes, one of
// them half as quick: 1.5). Then nothing is beaten either, for a batch gathers the most where it
// runs the quickest.
double FluidPeak(std::span<const AffineModel> models, double lanes);

}  // namespace tactus
