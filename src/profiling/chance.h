// Whether an answer of chance is spread alike in two situations: a row alone, and among others.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tactus {

// The numbers of one row's answer, run by run.
using Series = std::vector<std::vector<double>>;

// Whether the two series, of as many runs each, may well be of one distribution, as far as the
// means and the spreads of their numbers tell. Nothing is assumed of the distribution: of the same
// runs dealt out to the two anew, a hundred times, none comes near the difference that is found.
// `allowed`: by number, how far the means may lie apart for another reason: kernels round.
bool SpreadAlike(const Series& a, const Series& b, std::span<const double> allowed);

}  // namespace tactus
