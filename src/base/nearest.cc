#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace tactus {
namespace {

// Letters to insert, remove or replace (Levenshtein).
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kShortest = 3;  // below it every name is near
  constexpr std::size_t kLongest = 64;  // nobody mistypes one that long
  if (word.size() < kShortest || word.size() > kLongest) return "";
  const std::string* best = nullptr;
  std::size_t least = word.size() / 3 + 1;
  for (const std::string& name : known) {
    const std::size_t distance = Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    best = &name;
  }
  if (best == nullptr) {
    for (const std::string& name : known) {
      if (!name.starts_with(word)) continue;
      if (best == nullptr || name.size() < best->size()) best = &name;
    }
  }
  return best == nullptr ? "" : " (did you mean '" + *best + "'?)";
}

}  // namespace tactus
