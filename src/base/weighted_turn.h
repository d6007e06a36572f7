// Shares turns by weight, as evenly as possible.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tactus {

// Each earns its weight, the richest pays for all (smooth weighted round robin); of equals the
// first. `credit`: what each has, 0 at first. `weight_of(i)`: nothing where i takes no part.
// credit.size() where nobody does. O(n).
template <class WeightOf>
std::size_t TakeTurn(std::span<double> credit, WeightOf weight_of) {
  double all = 0;
  std::size_t richest = credit.size();
  for (std::size_t i = 0; i < credit.size(); ++i) {
    const std::optional<double> weight = weight_of(i);
    if (!weight) continue;
    credit[i] += *weight;
    all += *weight;
    if (richest == credit.size() || credit[i] > credit[richest]) richest = i;
  }
  if (richest < credit.size()) credit[richest] -= all;
  return richest;
}

}  // namespace tactus
