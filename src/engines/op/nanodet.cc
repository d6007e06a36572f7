#include "engines/op/nanodet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace tactus::op {
namespace {

struct Candidate {
  std::array<double, 4> box{};  // x1 y1 x2 y2 in the network's input
  double score = 0;
  int kind = 0;

  double area() const { return (box[2] - box[0]) * (box[3] - box[1]); }
};

// The mean of the distribution whose logits lie `step` apart.
double MeanOf(const float* logits, int bins, std::size_t step) {
  double highest = logits[0];
  for (int b = 1; b < bins; ++b) {
    highest = std::max(highest, double{logits[static_cast<std::size_t>(b) * step]});
  }
  double sum = 0;
  double weighted = 0;
  for (int b = 0; b < bins; ++b) {
    const double p = std::exp(double{logits[static_cast<std::size_t>(b) * step]} - highest);
    sum += p;
    weighted += p * b;
  }
  return weighted / sum;
}

void FindCandidates(const NanodetMap& map, const NanodetOptions& options,
                    std::vector<Candidate>& found) {
  const std::size_t cells =
      static_cast<std::size_t>(map.height) * static_cast<std::size_t>(map.width);
  const int bins = (map.channels - options.classes) / 4;
  std::vector<float> best(map.logits.begin(),
                          map.logits.begin() + static_cast<std::ptrdiff_t>(cells));
  std::vector<int> kinds(cells, 0);
  for (int k = 1; k < options.classes; ++k) {
    const float* scores = map.logits.data() + static_cast<std::size_t>(k) * cells;
    for (std::size_t i = 0; i < cells; ++i) {
      if (!(scores[i] > best[i])) continue;
      best[i] = scores[i];
      kinds[i] = k;
    }
  }
  const double width = static_cast<double>(map.width) * map.stride;
  const double height = static_cast<double>(map.height) * map.stride;
  for (std::size_t i = 0; i < cells; ++i) {
    const double score = 1 / (1 + std::exp(-double{best[i]}));
    if (!(score > options.threshold)) continue;
    if (!options.keep.empty() && !std::ranges::count(options.keep, kinds[i])) continue;
    const double cx =
        (static_cast<double>(i % static_cast<std::size_t>(map.width)) + 0.5) * map.stride;
    const double cy =
        (static_cast<double>(i / static_cast<std::size_t>(map.width)) + 0.5) * map.stride;
    std::array<double, 4> away{};
    for (std::size_t side = 0; side < 4; ++side) {
      const std::size_t channel =
          static_cast<std::size_t>(options.classes) + side * static_cast<std::size_t>(bins);
      away[side] = MeanOf(map.logits.data() + channel * cells + i, bins, cells) * map.stride;
      if (!std::isfinite(away[side])) away[side] = 0;
    }
    found.push_back({{std::clamp(cx - away[0], 0.0, width), std::clamp(cy - away[1], 0.0, height),
                      std::clamp(cx + away[2], 0.0, width), std::clamp(cy + away[3], 0.0, height)},
                     score,
                     kinds[i]});
  }
}

bool SameObject(const Candidate& a, const Candidate& b, double iou) {
  if (a.kind != b.kind) return false;
  const double w = std::min(a.box[2], b.box[2]) - std::max(a.box[0], b.box[0]);
  const double h = std::min(a.box[3], b.box[3]) - std::max(a.box[1], b.box[1]);
  const double shared = std::max(w, 0.0) * std::max(h, 0.0);
  return shared > iou * (a.area() + b.area() - shared);
}

// The best of each heap of boxes of one object, best first.
std::vector<Candidate> Suppress(std::vector<Candidate> found, const NanodetOptions& options) {
  std::ranges::stable_sort(found, std::ranges::greater(), &Candidate::score);
  if (found.size() > static_cast<std::size_t>(options.candidates)) {
    found.resize(static_cast<std::size_t>(options.candidates));
  }
  std::vector<Candidate> kept;
  for (const Candidate& one : found) {
    if (kept.size() == static_cast<std::size_t>(options.most)) break;
    const bool known = std::ranges::any_of(
        kept, [&](const Candidate& better) { return SameObject(one, better, options.iou); });
    if (!known) kept.push_back(one);
  }
  return kept;
}

}  // namespace

Expected<Detections> DecodeNanodet(std::span<const NanodetMap> maps, const Frame& frame,
                                   const NanodetOptions& options) {
  std::vector<Candidate> found;
  for (const NanodetMap& map : maps) {
    const int rest = map.channels - options.classes;
    if (rest < 8 || rest % 4 != 0) {
      return InvalidArgument(fmt::format(
          "a map has {} channels, which are not {} classes and four distributions of equal length",
          map.channels, options.classes));
    }
    FindCandidates(map, options, found);
  }
  Detections detections;
  for (const Candidate& one : Suppress(std::move(found), options)) {
    for (std::size_t side = 0; side < 4; ++side) {
      const double scale = side % 2 == 0 ? frame.scale_x : frame.scale_y;
      const double from = side % 2 == 0 ? frame.left : frame.top;
      detections.boxes.push_back(static_cast<float>(one.box[side] / scale + from));
    }
    detections.scores.push_back(static_cast<float>(one.score));
    detections.classes.push_back(one.kind);
  }
  return detections;
}

}  // namespace tactus::op
