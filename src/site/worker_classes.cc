#include "site/worker_classes.h"

#include <algorithm>
#include <map>

namespace tactus {
namespace {

bool Alike(const WorkerModel& a, const WorkerModel& b) {
  return std::ranges::equal(a.rows.latency, b.rows.latency, [](Duration x, Duration y) {
    return static_cast<double>(std::max(x, y).count()) <=
           kAlike * static_cast<double>(std::min(x, y).count());
  });
}

enum class Likeness { kUnlike, kNothingShared, kAlike };

Likeness Compare(const WorkerIntroduction& a, const WorkerIntroduction& b) {
  Likeness likeness = Likeness::kNothingShared;
  for (const WorkerModel& its : a.models) {
    const auto other = std::ranges::find(b.models, its.model.name,
                                         [](const WorkerModel& model) { return model.model.name; });
    if (other == b.models.end()) continue;
    if (!Alike(its, *other)) return Likeness::kUnlike;
    likeness = Likeness::kAlike;
  }
  return likeness;
}

}  // namespace

LaneClass ClassFor(const WorkerIntroduction& worker, std::span<const ClassedWorker> others) {
  struct Class {
    bool unlike = false;
    bool shares = false;
  };
  std::map<LaneClass::rep, Class> classes;
  for (const ClassedWorker& other : others) {
    Class& its = classes[other.lane_class.value()];
    const Likeness likeness = Compare(worker, *other.worker);
    its.unlike = its.unlike || likeness == Likeness::kUnlike;
    its.shares = its.shares || likeness == Likeness::kAlike;
  }
  for (const auto& [id, its] : classes) {
    if (its.shares && !its.unlike) return LaneClass{id};
  }
  LaneClass::rep free = 0;
  while (classes.contains(free)) ++free;
  return LaneClass{free};
}

}  // namespace tactus
