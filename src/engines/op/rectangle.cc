#include "engines/op/rectangle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <tuple>

namespace tactus::op {
namespace {

double Turn(Point a, Point b, Point c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

// Adds one half of the hull, without its last corner, of points that are in order.
template <class Run>
void AddHalf(const Run& run, std::vector<Point>& hull) {
  const std::size_t first = hull.size();
  for (const Point& p : run) {
    while (hull.size() > first + 1 && Turn(hull[hull.size() - 2], hull.back(), p) <= 0) {
      hull.pop_back();
    }
    hull.push_back(p);
  }
  hull.pop_back();
}

std::vector<Point> Hull(std::vector<Point> points) {
  const auto key = [](const Point& p) { return std::tuple(p.x, p.y); };
  std::ranges::sort(points, {}, key);
  const auto same = std::ranges::unique(points, {}, key);
  points.erase(same.begin(), same.end());
  if (points.size() < 3) return points;
  std::vector<Point> hull;
  AddHalf(points, hull);
  std::ranges::reverse(points);
  AddHalf(points, hull);
  return hull;
}

}  // namespace

bool TurnedRectangle::Contains(Point p, double slack) const {
  const double a = along(p);
  const double b = across(p);
  return a >= a0 - slack && a <= a1 + slack && b >= b0 - slack && b <= b1 + slack;
}

TurnedRectangle TurnedRectangle::GrownBy(double distance) const {
  return {u, a0 - distance, a1 + distance, b0 - distance, b1 + distance};
}

std::array<Point, 4> TurnedRectangle::corners() const {
  const auto at = [this](double a, double b) {
    return Point{a * u.x - b * u.y, a * u.y + b * u.x};
  };
  return {at(a0, b0), at(a1, b0), at(a1, b1), at(a0, b1)};
}

TurnedRectangle LeastRectangle(std::vector<Point> points) {
  const std::vector<Point> hull = Hull(std::move(points));
  TurnedRectangle best;
  double least = -1;
  for (std::size_t i = 0; i < hull.size(); ++i) {
    const Point& from = hull[i];
    const Point& to = hull[(i + 1) % hull.size()];
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    TurnedRectangle box;
    if (length > 0) box.u = {(to.x - from.x) / length, (to.y - from.y) / length};
    box.a0 = box.a1 = box.along(hull[0]);
    box.b0 = box.b1 = box.across(hull[0]);
    for (const Point& p : hull) {
      box.a0 = std::min(box.a0, box.along(p));
      box.a1 = std::max(box.a1, box.along(p));
      box.b0 = std::min(box.b0, box.across(p));
      box.b1 = std::max(box.b1, box.across(p));
    }
    const double area = box.length() * box.breadth();
    // Of two that are as small, the first: rounding must not choose.
    if (least >= 0 && area >= least - 1e-9) continue;
    least = area;
    best = box;
  }
  return best;
}

std::array<Point, 4> Clockwise(std::array<Point, 4> corners) {
  std::ranges::sort(corners, {}, [](const Point& p) { return std::tuple(p.x, p.y); });
  if (corners[0].y > corners[1].y) std::swap(corners[0], corners[1]);
  if (corners[2].y > corners[3].y) std::swap(corners[2], corners[3]);
  return {corners[0], corners[2], corners[3], corners[1]};
}

}  // namespace tactus::op
