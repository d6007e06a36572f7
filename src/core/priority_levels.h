// The levels that the served models' priorities make. Priorities are an order, not a distance:
// models of priorities 1 and 200 are two levels as much as models of priorities 1 and 2 are.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/model.h"

namespace tactus {

class PriorityLevels {
 public:
  PriorityLevels() = default;
  explicit PriorityLevels(std::span<const Model> models) { Prepare(models); }

  void Prepare(std::span<const Model> models) {
    priorities_.clear();
    for (const Model& model : models) {
      if (model.loaded) priorities_.push_back(model.priority);
    }
    std::sort(priorities_.begin(), priorities_.end());
    priorities_.erase(std::unique(priorities_.begin(), priorities_.end()), priorities_.end());
  }

  // The priorities of the levels, the highest first.
  std::span<const int> priorities() const { return priorities_; }

  // 0 is the highest level that any model has. Of a priority: the level of the models which have it
  // or the next lower one, and one below all of them beyond that.
  int LevelOf(int priority) const {
    const auto at = std::lower_bound(priorities_.begin(), priorities_.end(), priority);
    return static_cast<int>(at - priorities_.begin());
  }

 private:
  std::vector<int> priorities_;  // those that models have, in order
};

}  // namespace tactus
