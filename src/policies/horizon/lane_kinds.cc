#include "policies/horizon/lane_kinds.h"

#include <algorithm>
#include <tuple>

#include "core/feasible.h"

namespace tactus {

namespace {

// So little, where no accuracy is known, that it only breaks ties: deeper is better.
constexpr double kUnknownAccuracy = 1e-3;

double SecondsOfEach(const Course& course, int exit) {
  return ToSeconds(course.costs[exit](course.max_batch())) / course.max_batch();
}

double Price(const Course& course, int from, int to) {
  return (course.accuracy[to] - course.accuracy[from]) /
         (SecondsOfEach(course, to) - SecondsOfEach(course, from));
}

std::vector<int> HullOf(const Course& course) {
  std::vector<int> hull = {0};
  for (int exit = 1; exit < static_cast<int>(course.costs.size()); ++exit) {
    if (course.accuracy[exit] <= course.accuracy[hull.back()]) continue;
    if (SecondsOfEach(course, exit) <= SecondsOfEach(course, hull.back())) {
      hull.back() = exit;  // better and no slower
      continue;
    }
    while (hull.size() >= 2 &&
           Price(course, hull[hull.size() - 2], hull.back()) <= Price(course, hull.back(), exit)) {
      hull.pop_back();
    }
    hull.push_back(exit);
  }
  return hull;
}

Course CourseOf(const View& view, ModelId m, LaneClass lane_class) {
  Course course;
  const Model& model = view.models[m.value()];
  std::vector<Duration> latency(LargestBatch(view, m));
  for (int e = 0; e < view.profile.exits(m); ++e) {
    const ExitId exit{static_cast<ExitId::rep>(e)};
    for (std::size_t b = 0; b < latency.size(); ++b) {
      latency[b] = view.profile.Latency(m, exit, static_cast<int>(b) + 1, lane_class);
    }
    course.costs.emplace_back(latency);
    const double known = e < model.exit_count() ? model.exits[e].accuracy : 0;
    course.accuracy.push_back(known > 0 ? known : kUnknownAccuracy * (e + 1));
  }
  course.hull = HullOf(course);
  return course;
}

void SortSteps(KindOfLane& kind) {
  std::sort(kind.steps.begin(), kind.steps.end(), [](const Step& a, const Step& b) {
    return std::tuple(-a.price, a.model, a.to) < std::tuple(-b.price, b.model, b.to);
  });
}

KindOfLane KindOf(const View& view, const Lane& lane) {
  KindOfLane kind{.lane_class = lane.lane_class, .serves = lane.serves};
  kind.courses.resize(view.models.size());
  for (std::size_t i = 0; i < view.models.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (!view.models[i].loaded || !lane.serves.contains(m)) continue;
    const Course& course = kind.courses[i] = CourseOf(view, m, lane.lane_class);
    for (int to = 1; to <= course.last_step(); ++to) {
      kind.steps.push_back({Price(course, course.hull[to - 1], course.hull[to]), m, to});
    }
  }
  SortSteps(kind);
  return kind;
}

}  // namespace

void LaneKinds::Prepare(const View& view) {
  kinds_.clear();
  kind_of_.clear();
  for (const Lane& lane : view.lanes) {
    auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&](const KindOfLane& known) {
      return known.lane_class == lane.lane_class && known.serves == lane.serves;
    });
    if (kind == kinds_.end()) kind = kinds_.insert(kinds_.end(), KindOf(view, lane));
    kind->lanes.push_back(lane.id);
    kind_of_.push_back(static_cast<std::uint32_t>(kind - kinds_.begin()));
  }
  quickest_.assign(view.models.size(), 0);
  least_.assign(view.models.size(), Duration::max());
  serving_.assign(view.models.size(), 0);
  for (ModelId::rep m = 0; m < view.models.size(); ++m) {
    FindQuickest(ModelId{m});
    for (const KindOfLane& kind : kinds_) {
      if (kind.courses[m].served()) serving_[m] += static_cast<double>(kind.lanes.size());
    }
  }
}

void LaneKinds::FindQuickest(ModelId m) {
  const std::size_t i = m.value();
  least_[i] = Duration::max();
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const Course& course = kinds_[k].courses[i];
    if (!course.served() || course.quickest()(1) >= least_[i]) continue;
    least_[i] = course.quickest()(1);
    quickest_[i] = k;
  }
}

// All exits of a model change by one factor, so its hull stays what it is.
void LaneKinds::Follow(const View& view, ModelId m) {
  for (KindOfLane& kind : kinds_) {
    Course& course = kind.courses[m.value()];
    if (!course.served()) continue;
    for (std::size_t e = 0; e < course.costs.size(); ++e) {
      const ExitId exit{static_cast<ExitId::rep>(e)};
      course.costs[e].Set(course.max_batch(), {},
                          [&](int b) { return view.profile.Latency(m, exit, b, kind.lane_class); });
    }
    for (Step& step : kind.steps) {
      if (step.model == m)
        step.price = Price(course, course.hull[step.to - 1], course.hull[step.to]);
    }
    SortSteps(kind);
  }
  FindQuickest(m);
}

double LaneKinds::ShareOf(std::uint32_t kind, ModelId m) const {
  return static_cast<double>(kinds_[kind].lanes.size()) / std::max(1.0, serving_[m.value()]);
}

}  // namespace tactus
