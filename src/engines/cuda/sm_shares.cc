#include "engines/cuda/sm_shares.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tactus {
namespace {

// Shares may be written rounded, 33.3 % three times.
constexpr double kSlack = 0.005;

}  // namespace

SmGrain GrainOf(int capability) {
  if (capability >= 90) return {8, 8};
  if (capability >= 80) return {4, 2};
  return {2, 2};
}

Expected<SmPart> PartOf(double offset, double fraction, int groups) {
  if (!(fraction > 0) || !(offset >= 0) || offset + fraction > 1 + kSlack) {
    return InvalidArgument(
        fmt::format("a lane with {:g} % of the device behind {:g} %: shares are above 0 and 100 % "
                    "together",
                    100 * fraction, 100 * offset));
  }
  const auto at = [&](double share) { return static_cast<int>(std::lround(share * groups)); };
  const SmPart part{at(offset), std::min(at(offset + fraction), groups) - at(offset)};
  if (part.count >= 1) return part;
  return InvalidArgument(
      fmt::format("a lane with {:g} % of the device gets none of its {} groups of SMs; {:.1f} % is "
                  "the smallest share",
                  100 * fraction, groups, groups > 0 ? 100.0 / groups : 100.0));
}

Expected<std::vector<SmPart>> Divide(std::span<const double> fractions, int groups) {
  std::vector<SmPart> parts;
  double offset = 0;
  for (const double fraction : fractions) {
    auto part = PartOf(offset, fraction, groups);
    if (!part) {
      return InvalidArgument(fmt::format("lane {}: {}", parts.size(), part.error().message));
    }
    parts.push_back(*part);
    offset += fraction;
  }
  return parts;
}

}  // namespace tactus
