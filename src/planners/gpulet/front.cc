#include "planners/gpulet/front.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tactus {
namespace {

double Sum(const FrontPoint& point) { return std::accumulate(point.begin(), point.end(), 0.0); }

}  // namespace

PointTree::PointTree(std::vector<Entry> entries) : entries_(std::move(entries)) {
  if (!entries_.empty()) Build(0, entries_.size());
}

// Halves along the dimension in which the points differ most.
std::size_t PointTree::Build(std::size_t begin, std::size_t end) {
  const std::size_t index = nodes_.size();
  Node node{.most = entries_[begin].point, .begin = begin, .end = end};
  FrontPoint least = node.most;
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t d = 0; d < kFrontDimensions; ++d) {
      node.most[d] = std::max(node.most[d], entries_[i].point[d]);
      least[d] = std::min(least[d], entries_[i].point[d]);
    }
  }
  nodes_.push_back(node);
  if (end - begin <= kLeaf) return index;
  std::size_t widest = 0;
  for (std::size_t d = 1; d < kFrontDimensions; ++d) {
    // In units of the dimension's own size: models' rates differ by orders of magnitude.
    const auto width = [&](std::size_t at) {
      return node.most[at] > 0 ? 1 - least[at] / node.most[at] : 0;
    };
    if (width(d) > width(widest)) widest = d;
  }
  const auto first = entries_.begin();
  const std::size_t middle = begin + (end - begin) / 2;
  std::nth_element(
      first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(middle),
      first + static_cast<std::ptrdiff_t>(end),
      [&](const Entry& a, const Entry& b) { return a.point[widest] > b.point[widest]; });
  Build(begin, middle);
  const std::size_t second_half = Build(middle, end);
  nodes_[index].second_half = second_half;
  return index;
}

void Front::Add(const FrontPoint& point) {
  fresh_.push_back({point, size_++});
  if (fresh_.size() < kFresh) return;
  std::vector<PointTree::Entry> merged = std::exchange(fresh_, {});
  std::size_t i = 0;
  for (; i < trees_.size() && !trees_[i].entries().empty(); ++i) {
    const auto& entries = trees_[i].entries();
    merged.insert(merged.end(), entries.begin(), entries.end());
    trees_[i] = PointTree();
  }
  if (i == trees_.size()) trees_.emplace_back();
  trees_[i] = PointTree(std::move(merged));
}

std::optional<std::size_t> Front::WhoBeats(const FrontPoint& point) const {
  std::optional<std::size_t> found;
  const auto enter = [&](const FrontPoint& most) { return Beats(most, point); };
  const auto at = [&](const PointTree::Entry& entry) {
    if (Beats(entry.point, point)) found = entry.number;
    return found.has_value();
  };
  // The largest tree has the first points.
  for (auto tree = trees_.rbegin(); tree != trees_.rend() && !found; ++tree) tree->Walk(enter, at);
  for (auto entry = fresh_.begin(); entry != fresh_.end() && !found; ++entry) at(*entry);
  return found;
}

std::vector<std::size_t> Unbeaten(std::span<const FrontPoint> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> sums;
  for (const FrontPoint& point : points) sums.push_back(Sum(point));
  // Nothing behind can beat what is before it.
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return sums[i]; });
  Front front;
  std::erase_if(order, [&](std::size_t i) {
    if (front.WhoBeats(points[i])) return true;
    front.Add(points[i]);
    return false;
  });
  return order;
}

}  // namespace tactus
