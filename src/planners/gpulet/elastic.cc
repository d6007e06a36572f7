#include "planners/gpulet/elastic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "core/chance.h"
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

// What gpu-let a model asks for.
enum class ShareRule {
  kKnee,      // the knee, or what sustains the rest of its rate if that is smaller: the paper's
  kBestRate,  // the same with the size that sustains most for each percent of it
  kRequired,  // what sustains the rest of its rate
  kWhole,     // a whole device
  kKneeOnly,  // guided self-tuning
};

// Whose interference is counted on before a neighbour is there.
enum class Expect { kNobody, kMildest, kWorst };

struct Rules {
  ShareRule share = ShareRule::kKnee;
  bool merge = true;
  bool top_up = false;  // what no free gpu-let can take goes to those in use
  Expect expect = Expect::kNobody;
};

struct Shortage {
  ModelId model;
  double rps = 0;
  std::string memory;  // that is in its way, if it is
};

using Order = std::vector<ModelId>;

// The most asked-for first.
Order ByRate(const PlanInput& input) {
  Order order;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) order.push_back(ModelId{m});
  std::ranges::stable_sort(order, std::greater{},
                           [&](ModelId m) { return input.models[m.value()].rate_rps; });
  return order;
}

// The size that sustains most for each percent of the device.
LaneClass BestRate(const PlanInput& input, ModelId m) {
  LaneClass best = input.whole();
  double most = 0;
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    const double rate_rps = MostRate(input, LaneClass{c}, m) / input.shares[c];
    if (rate_rps <= most * (1 + kNothing)) continue;
    most = rate_rps;
    best = LaneClass{c};
  }
  return best;
}

std::vector<ModelId> Neighbours(const PlanInput& input, const InterferenceModel* interference,
                                Expect expect) {
  std::vector<ModelId> models;
  if (interference == nullptr || expect == Expect::kNobody) return models;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    if (input.models[m].rate_rps > 0) models.push_back(ModelId{m});
  }
  if (expect == Expect::kWorst || models.empty()) return models;
  return {*std::ranges::min_element(models, {}, [&](ModelId m) {
    return interference->Weight(WorstUse(input, input.whole(), m));
  })};
}

class Elastic {
 public:
  // `empty`: nobody is placed.
  Elastic(const PlanInput& input, const Layout& empty, Rules rules)
      : input_(input), rules_(rules), layout_(empty) {}

  // Nothing: all are sustained.
  std::optional<Shortage> Place(const Order& order) {
    for (const ModelId m : order) {
      const double left = Place(m);
      if (left > 0) return Shortage{m, left, layout_.MemoryInTheWayOf(m)};
    }
    return std::nullopt;
  }
  Plan ToPlan(std::uint64_t epoch) const { return layout_.ToPlan(epoch); }

 private:
  // What is left of the rate.
  double Place(ModelId m) {
    const double nothing = kNothing * input_.models[m.value()].rate_rps;
    double left = input_.models[m.value()].rate_rps;
    const LaneClass efficient = Efficient(m);
    const bool fixed = rules_.share == ShareRule::kKneeOnly || rules_.share == ShareRule::kWhole;
    while (left > nothing) {
      const LaneClass ideal = fixed ? efficient : std::min(efficient, Required(m, left));
      double given = FindBestFit(m, ideal, left);
      if (given <= nothing && rules_.top_up) given = TopUp(m, left);
      if (given <= nothing) return left;
      left -= given;
    }
    return 0;
  }

  LaneClass Efficient(ModelId m) const {
    switch (rules_.share) {
      case ShareRule::kBestRate:
        return BestRate(input_, m);
      case ShareRule::kRequired:
      case ShareRule::kWhole:
        return input_.whole();
      case ShareRule::kKnee:
      case ShareRule::kKneeOnly:
        break;
    }
    return Knee(input_, m);
  }

  // The smallest share that sustains the rate alone; the whole device where none does.
  LaneClass Required(ModelId m, double rate_rps) const {
    for (LaneClass::rep c = 0; c < input_.shares.size(); ++c) {
      if (layout_.MostAlone(LaneClass{c}, m) >= rate_rps) return LaneClass{c};
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
    if (!rules_.merge) return false;
    for (int j = 0; j < static_cast<int>(layout_.gpulets().size()); ++j) {
      if (layout_.gpulets()[j].members.empty() || layout_.Most(j, m, rate_rps) < rate_rps) continue;
      layout_.Add(j, m, rate_rps);
      layout_.RevertSplit(i);
      return true;
    }
    return false;
  }

  double TopUp(ModelId m, double rate_rps) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < static_cast<int>(layout_.gpulets().size()); ++i) {
      if (layout_.gpulets()[i].members.empty()) continue;
      const double here = layout_.Most(i, m, rate_rps);
      if (here <= most) continue;
      most = here;
      best = i;
    }
    if (best >= 0) layout_.Add(best, m, most);
    return most;
  }

  const PlanInput& input_;
  const Rules rules_;
  Layout layout_;
};

// The paper's first.
std::vector<Rules> AllRules(bool interference) {
  std::vector<Rules> all;
  for (const ShareRule share : {ShareRule::kKnee, ShareRule::kRequired, ShareRule::kBestRate}) {
    if (interference) all.push_back({.share = share, .top_up = true, .expect = Expect::kWorst});
    all.push_back({.share = share, .top_up = true});
  }
  if (!interference) return all;
  all.push_back({.share = ShareRule::kRequired, .top_up = true, .expect = Expect::kMildest});
  // On whole devices nobody interferes.
  all.push_back({.share = ShareRule::kWhole, .top_up = true});
  return all;
}

std::unexpected<Error> NoPlaceFor(const PlanInput& input, const Shortage& shortage) {
  const std::string name = "'" + input.models[shortage.model.value()].name + "'";
  const std::string why = "not schedulable: no place for all requests of model " + name;
  if (shortage.memory.empty()) {
    return Fail(ErrorCode::kResourceExhausted,
                why + "; more devices, a longer SLO or less load may help");
  }
  return Fail(ErrorCode::kResourceExhausted,
              why + "; " + shortage.memory + "; more memory or devices may help");
}

std::unexpected<Error> NoRoomForChance(const PlanInput& input, ModelId m) {
  return Fail(ErrorCode::kResourceExhausted,
              "not schedulable: the requests of model '" + input.models[m.value()].name +
                  "' would fit if they came evenly; as they come by chance, there would be too "
                  "many violations; more devices, a longer SLO or less load may help");
}

// By one rule; whoever fell short is first in the next round. `least`: the shortage of the round
// that lacked least, if that is this one.
std::optional<Plan> PlanInRounds(const PlanInput& input, const ElasticRetryOptions& options,
                                 const Rules& rules, std::optional<Shortage>& least) {
  const Layout empty(input, options.interference,
                     Neighbours(input, options.interference, rules.expect));
  Order order = ByRate(input);
  for (int round = 0; round < options.rounds; ++round) {
    Elastic elastic(input, empty, rules);
    const auto shortage = elastic.Place(order);
    if (!shortage) return elastic.ToPlan(options.epoch);
    if (!least || shortage->rps < least->rps) least = shortage;
    const auto short_one = std::ranges::find(order, shortage->model);
    if (short_one == order.begin()) break;  // it has all devices to itself
    std::rotate(order.begin(), short_one, std::next(short_one));
  }
  return std::nullopt;
}

// The models with too many violations; where only all together have too many, the one with most.
std::vector<ModelId> ShortByChance(const PlanViolations& violations, const PlanInput& input) {
  std::vector<ModelId> short_models;
  std::vector<double> violations_rps;
  for (ModelId::rep m = 0; m < violations.models.size(); ++m) {
    if (TooMany(violations.models[m])) short_models.push_back(ModelId{m});
    violations_rps.push_back(violations.models[m].ratio * input.models[m].expected_rps);
  }
  if (short_models.empty() && TooMany(violations.all)) {
    const auto most = std::ranges::max_element(violations_rps) - violations_rps.begin();
    short_models.push_back(ModelId{static_cast<ModelId::rep>(most)});
  }
  return short_models;
}

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
  if (auto valid = CheckPlannable(input); !valid) return std::unexpected(valid.error());
  const Rules rules = {.share = options.self_tuning ? ShareRule::kKneeOnly : ShareRule::kKnee,
                       .merge = !options.self_tuning,
                       .expect = options.expects_the_worst ? Expect::kWorst : Expect::kNobody};
  Elastic elastic(
      input,
      Layout(input, options.interference, Neighbours(input, options.interference, rules.expect),
             options.neighbours_bear_it),
      rules);
  if (const auto shortage = elastic.Place(ByRate(input))) return NoPlaceFor(input, *shortage);
  return elastic.ToPlan(options.epoch);
}

Expected<Plan> PlanElasticRetrying(const PlanInput& input, const ElasticRetryOptions& options) {
  constexpr int kRaises = 6;
  constexpr double kRaise = 1.15;
  if (auto valid = CheckPlannable(input); !valid) return std::unexpected(valid.error());
  std::optional<Shortage> least;
  std::optional<ModelId> short_model;
  ChanceEstimator chance(input);
  for (const Rules& rules : AllRules(options.interference != nullptr)) {
    PlanInput raised = input;
    for (int raise = 0; raise <= kRaises; ++raise) {
      auto plan = PlanInRounds(raised, options, rules, least);
      if (!plan) break;
      const std::vector<ModelId> short_models = ShortByChance(chance.UntilRefused(*plan), input);
      if (short_models.empty()) return std::move(*plan);
      if (!short_model) short_model = short_models.front();
      for (const ModelId m : short_models) raised.models[m.value()].rate_rps *= kRaise;
    }
  }
  if (short_model) return NoRoomForChance(input, *short_model);
  CHECK(least, "at least one round is made");
  return NoPlaceFor(input, *least);
}

}  // namespace tactus
