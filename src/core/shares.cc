#include "core/shares.h"

#include "base/number_text.h"

namespace tactus {
namespace {

constexpr double kSame = 1e-6;  // what arithmetic makes of equal shares
constexpr double kRoundedBelow =
    0.005;  // how far a share that people wrote may be below what is meant

}  // namespace

std::optional<std::size_t> ComplementOf(std::span<const double> shares, double part) {
  const double complement = 1 - part;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    // More than the complement would be more than the device.
    if (shares[i] > complement + kSame || shares[i] < complement - kRoundedBelow) continue;
    if (!best || shares[i] > shares[*best]) best = i;
  }
  return best;
}

std::optional<std::string> ExplainUnusableShare(std::span<const double> shares) {
  for (const double share : shares) {
    if (share >= 1 - kSame || ComplementOf(shares, share)) continue;
    return "no share is the complement of " + PercentText(share) +
           ", so no device will ever be split there; add " + PercentText(1 - share) +
           ", or leave it out";
  }
  return std::nullopt;
}

}  // namespace tactus
