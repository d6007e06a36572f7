// What the models cost and are worth on lanes that are alike: the same latencies, the same models.
#pragma once

#include <cstdint>
#include <vector>

#include "core/view.h"
#include "policies/batch_costs.h"

namespace tactus {

// One model on one kind of lane.
struct Course {
  std::vector<BatchCosts> costs;  // by exit; empty where the lanes do not serve the model
  std::vector<double> accuracy;   // by exit; where nobody knows it, a little more for each
  // The exits on the upper concave hull of accuracy over time, the quickest first: between two of
  // them no mixture of others gives more accuracy for the same time.
  std::vector<int> hull;

  bool served() const { return !costs.empty(); }
  int max_batch() const { return costs.front().max_batch(); }
  const BatchCosts& quickest() const { return costs[hull.front()]; }
  const BatchCosts& at(int step) const { return costs[hull[step]]; }
  int last_step() const { return static_cast<int>(hull.size()) - 1; }
};

// From one exit of a model's hull to the next.
struct Step {
  double price = 0;  // accuracy gained per second, in the largest batch
  ModelId model;
  int to = 1;  // place in the hull
};

struct KindOfLane {
  LaneClass lane_class;
  ModelSet serves;
  std::vector<LaneId> lanes;
  std::vector<Course> courses;  // by ModelId
  std::vector<Step> steps;      // the most accuracy for a second first
};

class LaneKinds {
 public:
  // Kinds are counted in the order of their first lanes.
  void Prepare(const View& view);
  // The latencies of m have changed. Allocates nothing.
  void Follow(const View& view, ModelId m);

  std::size_t size() const { return kinds_.size(); }
  const KindOfLane& operator[](std::size_t kind) const { return kinds_[kind]; }
  std::uint32_t Of(LaneId lane) const { return kind_of_[lane.value()]; }
  const std::vector<std::uint32_t>& kind_of_lane() const { return kind_of_; }
  // Where a request of m alone is answered the soonest; the first of several.
  std::uint32_t QuickestFor(ModelId m) const { return quickest_[m.value()]; }
  // What it takes there at the quickest exit; Duration::max() where no lane serves m.
  Duration Least(ModelId m) const { return least_[m.value()]; }
  // The part that this kind has in the lanes that serve m.
  double ShareOf(std::uint32_t kind, ModelId m) const;

 private:
  void FindQuickest(ModelId m);

  std::vector<KindOfLane> kinds_;
  std::vector<std::uint32_t> kind_of_;   // by LaneId
  std::vector<std::uint32_t> quickest_;  // by ModelId
  std::vector<Duration> least_;          // by ModelId
  std::vector<double> serving_;          // by ModelId: lanes that serve it
};

}  // namespace tactus
