// The profile as the machine is now: the table that policies count on, corrected by what batches
// take (docs/reference/following.md). For each model and lane class it holds the ratio of measured
// to profiled time; where a ratio moves, the model's latencies there move with it.
//
// It belongs to the dispatcher and is driven by its events alone, so a replay of the journal learns
// the same. After Configure nothing allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/serving_time.h"
#include "core/profile_table.h"
#include "dispatch/ratio_window.h"
#include "dispatch/stall_watch.h"

namespace tactus {

struct FollowOptions {
  bool on = false;
  // The percentile that the table holds and follows: 50, 95, 99, 100 (maximum) or 0 (mean).
  double percentile = 95;
  // Also keeps a reserve for stalls (StallWatch), which costs accuracy or the size of batches.
  bool stalls = false;
  // In every latency of the table, on top of what was measured; it stays what it is.
  Duration margin{};
};

class FollowedProfile {
 public:
  explicit FollowedProfile(const FollowOptions& options);

  // `profiled` is served from here on. What was learnt of a model is kept where its latencies are
  // what they were.
  void Configure(const ProfileTable& profiled);

  // Has the address and the shape that it has until the next Configure.
  const ProfileTable& table() const { return table_; }
  double ratio(ModelId m, LaneClass c) const {
    return RatioSteps::Ratio(cells_[Place(m, c)].applied);
  }

  // A batch of m, of which the profile expected so much, took so long on a lane of class c, where
  // it was alone. True where the table is another now.
  bool Learn(ModelId m, LaneClass c, Duration expected, Duration took, TimePoint now);

  // Likewise of a batch that was now expected to take so long; True where there is a new reserve.
  bool LearnStall(Duration expected, Duration took, TimePoint now) {
    return options_.stalls && stalls_.Learn(expected, took, now);
  }
  Duration reserve() const { return stalls_.reserve(); }
  void SetReserve(ModelId m, Duration reserve) { table_.SetReserve(m, reserve); }

  // When to call Relax; kNever while all is as profiled.
  TimePoint next_relax() const { return next_relax_; }
  // Every kRest in which no batch of a model ended on a class counts as several that took what was
  // profiled, so a ratio by which everything is refused is tried again. Calls `changed(m, c)` where
  // the table is another now.
  void Relax(TimePoint now, auto changed) {
    if (now < next_relax_) return;
    next_relax_ = kNever;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (Rest(cells_[i], now)) changed(ModelOf(i), ClassOf(i));
    }
  }

  static constexpr Duration kRest = Seconds(1);
  static constexpr int kRestBatches = 8;

 private:
  struct Cell {
    RatioWindow window;
    int applied = RatioSteps::kOne;
    bool busy = false;  // a batch has ended since the last Relax
  };

  std::size_t Place(ModelId m, LaneClass c) const {
    return m.value() * static_cast<std::size_t>(table_.lane_classes()) + c.value();
  }
  ModelId ModelOf(std::size_t place) const {
    return ModelId{static_cast<ModelId::rep>(place / table_.lane_classes())};
  }
  LaneClass ClassOf(std::size_t place) const {
    return LaneClass{static_cast<LaneClass::rep>(place % table_.lane_classes())};
  }
  bool Rest(Cell& cell, TimePoint now);
  bool Apply(Cell& cell);
  bool SameLatencies(const ProfileTable& profiled, ModelId m) const;

  const FollowOptions options_;
  ProfileTable profiled_;
  ProfileTable table_;
  std::vector<Cell> cells_;  // by model, then lane class
  TimePoint next_relax_ = kNever;
  StallWatch stalls_;
};

}  // namespace tactus
