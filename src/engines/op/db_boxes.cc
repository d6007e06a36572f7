#include "engines/op/db_boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "engines/op/rectangle.h"

namespace tactus::op {
namespace {

constexpr double kOneLine = 10;  // pixels of the source
constexpr double kSlack = 1e-6;  // so that rounding leaves no corner out
constexpr double kGrowth = 2;    // by how much more than `least` a grown box must be

struct Found {
  std::array<Point, 4> quad;
  double score = 0;
};

class Finder {
 public:
  Finder(std::span<const float> map, int height, int width, const DbOptions& options)
      : map_(map),
        height_(height),
        width_(width),
        options_(options),
        text_(map.size()),
        reach_(static_cast<std::size_t>(height), {width, -1}) {
    for (std::size_t i = 0; i < map.size(); ++i) {
      text_[i] = map[i] > static_cast<float>(options.threshold);
    }
  }

  // Areas of pixels that touch, also at their corners; in the order of their first pixel.
  std::vector<Found> Find(const Frame& frame) {
    std::vector<Found> found;
    int areas = 0;
    for (std::size_t i = 0; i < text_.size() && areas < options_.candidates; ++i) {
      if (!text_[i]) continue;
      ++areas;
      if (auto box = BoxOf(TakeArea(i), frame)) found.push_back(*box);
    }
    return found;
  }

 private:
  // The outermost pixels of each row, which are all that a hull needs; the area's pixels are no
  // longer text.
  std::vector<Point> TakeArea(std::size_t first) {
    const std::size_t top = first / static_cast<std::size_t>(width_);
    std::size_t bottom = top;
    stack_.assign(1, first);
    text_[first] = 0;
    while (!stack_.empty()) {
      const std::size_t at = stack_.back();
      stack_.pop_back();
      const int x = static_cast<int>(at % static_cast<std::size_t>(width_));
      const int y = static_cast<int>(at / static_cast<std::size_t>(width_));
      bottom = std::max(bottom, static_cast<std::size_t>(y));
      auto& [left, right] = reach_[static_cast<std::size_t>(y)];
      left = std::min(left, x);
      right = std::max(right, x);
      for (int ny = std::max(0, y - 1); ny <= std::min(height_ - 1, y + 1); ++ny) {
        for (int nx = std::max(0, x - 1); nx <= std::min(width_ - 1, x + 1); ++nx) {
          const std::size_t next = Index(nx, ny);
          if (!text_[next]) continue;
          text_[next] = 0;
          stack_.push_back(next);
        }
      }
    }
    std::vector<Point> points;
    // The first pixel of an area that is found row by row is in its top row.
    for (std::size_t y = top; y <= bottom; ++y) {
      points.push_back({static_cast<double>(reach_[y].first), static_cast<double>(y)});
      points.push_back({static_cast<double>(reach_[y].second), static_cast<double>(y)});
      reach_[y] = {width_, -1};
    }
    return points;
  }

  std::optional<Found> BoxOf(std::vector<Point> points, const Frame& frame) const {
    const TurnedRectangle box = LeastRectangle(std::move(points));
    if (std::min(box.length(), box.breadth()) < options_.least) return std::nullopt;
    const double score = MeanIn(box);
    if (!(score >= options_.box_threshold)) return std::nullopt;
    const double area = box.length() * box.breadth();
    const double circumference = 2 * (box.length() + box.breadth());
    const TurnedRectangle grown = box.GrownBy(area * options_.unclip / circumference);
    if (std::min(grown.length(), grown.breadth()) < options_.least + kGrowth) return std::nullopt;
    std::array<Point, 4> quad = grown.corners();
    for (Point& p : quad) {
      p.x = std::clamp(p.x + 0.5, 0.0, static_cast<double>(width_)) / frame.scale_x + frame.left;
      p.y = std::clamp(p.y + 0.5, 0.0, static_cast<double>(height_)) / frame.scale_y + frame.top;
    }
    return Found{Clockwise(quad), score};
  }

  double MeanIn(const TurnedRectangle& box) const {
    double x0 = width_, x1 = 0, y0 = height_, y1 = 0;
    for (const Point& p : box.corners()) {
      x0 = std::min(x0, p.x);
      x1 = std::max(x1, p.x);
      y0 = std::min(y0, p.y);
      y1 = std::max(y1, p.y);
    }
    double sum = 0;
    std::int64_t count = 0;
    const int bottom = ToWhole(std::ceil(y1), 0, height_ - 1);
    const int right = ToWhole(std::ceil(x1), 0, width_ - 1);
    for (int y = ToWhole(std::floor(y0), 0, height_ - 1); y <= bottom; ++y) {
      for (int x = ToWhole(std::floor(x0), 0, width_ - 1); x <= right; ++x) {
        if (!box.Contains({static_cast<double>(x), static_cast<double>(y)}, kSlack)) continue;
        sum += map_[Index(x, y)];
        ++count;
      }
    }
    return count > 0 ? sum / static_cast<double>(count) : 0;
  }

  std::size_t Index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }

  std::span<const float> map_;
  const int height_;
  const int width_;
  const DbOptions& options_;
  std::vector<std::uint8_t> text_;
  // By row: the leftmost and the rightmost pixel of the area at hand; empty between two areas, so
  // that many small areas of a high map cost no more than they hold.
  std::vector<std::pair<int, int>> reach_;
  std::vector<std::size_t> stack_;
};

void SortToRead(std::vector<Found>& found) {
  std::ranges::sort(found, {}, [](const Found& f) { return std::pair(f.quad[0].y, f.quad[0].x); });
  for (std::size_t i = 1; i < found.size(); ++i) {
    for (std::size_t j = i; j > 0; --j) {
      const Point& before = found[j - 1].quad[0];
      const Point& here = found[j].quad[0];
      if (std::abs(here.y - before.y) >= kOneLine || here.x >= before.x) break;
      std::swap(found[j - 1], found[j]);
    }
  }
}

}  // namespace

TextBoxes FindTextBoxes(std::span<const float> map, int height, int width, const Frame& frame,
                        const DbOptions& options) {
  std::vector<Found> found = Finder(map, height, width, options).Find(frame);
  std::ranges::stable_sort(found, std::ranges::greater(), &Found::score);
  if (found.size() > static_cast<std::size_t>(options.most)) {
    found.resize(static_cast<std::size_t>(options.most));
  }
  SortToRead(found);
  TextBoxes boxes;
  for (const Found& one : found) {
    for (const Point& p : one.quad) {
      boxes.quads.push_back(static_cast<float>(p.x));
      boxes.quads.push_back(static_cast<float>(p.y));
    }
    boxes.scores.push_back(static_cast<float>(one.score));
  }
  return boxes;
}

}  // namespace tactus::op
