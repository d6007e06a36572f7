#include "planners/gpulet/elastic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "planners/gpulet/layout.h"

namespace tactus {
namespace {

constexpr double kNothing = 1e-6;  // of a model's rate: what is left after rounding

struct Point {
  double x = 0;
  double y = 0;
};

// Of the circle through three points (Menger); positive where the curve turns right, as one does
// whose gains diminish.
double Curvature(const Point& a, const Point& b, const Point& c) {
  const double twice_area = (b.y - a.y) * (c.x - a.x) - (b.x - a.x) * (c.y - a.y);
  const double ab = std::hypot(b.x - a.x, b.y - a.y);
  const double bc = std::hypot(c.x - b.x, c.y - b.y);
  const double ca = std::hypot(a.x - c.x, a.y - c.y);
  return 2 * twice_area / (ab * bc * ca);
}

class Elastic {
 public:
  Elastic(const PlanInput& input, const ElasticOptions& options)
      : input_(input), options_(options), layout_(input, options.interference) {}

  Expected<Plan> Solve() {
    std::vector<ModelId::rep> order(input_.models.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{},
                             [&](ModelId::rep m) { return input_.models[m].rate_rps; });
    for (const ModelId::rep m : order) {
      if (auto placed = Place(ModelId{m}); !placed) return std::unexpected(placed.error());
    }
    return layout_.ToPlan(options_.epoch);
  }

 private:
  Status Place(ModelId m) {
    const PlannedModel& model = input_.models[m.value()];
    double left = model.rate_rps;
    const LaneClass knee = Knee(input_, m);
    while (left > kNothing * model.rate_rps) {
      const LaneClass ideal = options_.self_tuning ? knee : std::min(knee, Required(m, left));
      const double given = FindBestFit(m, ideal, left);
      if (given <= kNothing * model.rate_rps) return Lacks(model, left);
      left -= given;
    }
    return {};
  }

  // The smallest share that carries the rate alone; the whole device where none does.
  LaneClass Required(ModelId m, double rate_rps) const {
    for (LaneClass::rep c = 0; c < input_.shares.size(); ++c) {
      if (MostRate(input_, LaneClass{c}, m) >= rate_rps) return LaneClass{c};
    }
    return input_.whole();
  }

  // What the model was given of the rate.
  double FindBestFit(ModelId m, LaneClass ideal, double rate_rps) {
    for (const int i : layout_.Free()) {
      if (layout_.gpulets()[i].lane_class < ideal) continue;
      if (layout_.IsWhole(i) && ideal < input_.whole()) layout_.Split(i, ideal);
      const double most = layout_.Most(i, m, rate_rps);
      if (most > kNothing * rate_rps) {
        if (Merge(i, m, most)) return most;
        layout_.Add(i, m, most);
        return most;
      }
      layout_.RevertSplit(i);
    }
    return 0;
  }

  // Into a gpu-let that serves already; gpu-let i then stays free.
  bool Merge(int i, ModelId m, double rate_rps) {
    if (options_.self_tuning) return false;
    for (int j = 0; j < static_cast<int>(layout_.gpulets().size()); ++j) {
      if (layout_.gpulets()[j].members.empty() || layout_.Most(j, m, rate_rps) < rate_rps) continue;
      layout_.Add(j, m, rate_rps);
      layout_.RevertSplit(i);
      return true;
    }
    return false;
  }

  static std::unexpected<Error> Lacks(const PlannedModel& model, double left) {
    return Fail(ErrorCode::kResourceExhausted,
                "not schedulable: model '" + model.name + "' lacks " +
                    std::to_string(std::llround(std::ceil(left))) + " of " +
                    std::to_string(std::llround(std::ceil(model.rate_rps))) +
                    " requests/s; more devices, a longer SLO or less load may help");
  }

  const PlanInput& input_;
  const ElasticOptions options_;
  Layout layout_;
};

}  // namespace

LaneClass Knee(const PlanInput& input, ModelId m) {
  constexpr double kStraight = 0.05;  // a curve that bends less than this is taken for a line
  std::vector<Point> curve = {{0, 0}};
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    curve.push_back({input.shares[c], MostRate(input, LaneClass{c}, m)});
  }
  const double most = std::ranges::max(curve, {}, &Point::y).y;
  if (most <= 0) return input.whole();
  for (Point& point : curve) point.y /= most;
  std::size_t knee = curve.size() - 1;
  double sharpest = kStraight;
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
    if (curve[i].y <= 0) continue;  // too small to serve it at all
    const double curvature = Curvature(curve[i - 1], curve[i], curve[i + 1]);
    if (curvature <= sharpest) continue;
    sharpest = curvature;
    knee = i;
  }
  return LaneClass{static_cast<LaneClass::rep>(knee - 1)};
}

Expected<Plan> PlanElastic(const PlanInput& input, const ElasticOptions& options) {
  if (auto valid = Validate(input); !valid) return std::unexpected(valid.error());
  return Elastic(input, options).Solve();
}

}  // namespace tactus
