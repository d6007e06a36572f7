// The rectangle of least area about points: the turned box of a line of text.
#pragma once

#include <array>
#include <vector>

namespace tactus::op {

struct Point {
  double x = 0;
  double y = 0;
};

// Along the unit vector `u` it reaches from a0 to a1, along (-u.y, u.x) from b0 to b1.
struct TurnedRectangle {
  Point u{1, 0};
  double a0 = 0;
  double a1 = 0;
  double b0 = 0;
  double b1 = 0;

  double along(Point p) const { return p.x * u.x + p.y * u.y; }
  double across(Point p) const { return p.y * u.x - p.x * u.y; }
  double length() const { return a1 - a0; }
  double breadth() const { return b1 - b0; }
  bool Contains(Point p, double slack) const;
  TurnedRectangle GrownBy(double distance) const;
  std::array<Point, 4> corners() const;  // in order around it
};

// One side lies along a side of the points' hull (Freeman and Shapira, 1975). `points` is not
// empty.
TurnedRectangle LeastRectangle(std::vector<Point> points);

// From the one at the top left, clockwise.
std::array<Point, 4> Clockwise(std::array<Point, 4> corners);

}  // namespace tactus::op
