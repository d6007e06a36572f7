#include "dispatch/followed_profile.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tactus {
namespace {

// A correction begins three steps (6 %) from what was profiled, moves by two and ends one step
// away, so that tables are made anew rarely.
constexpr int kBegins = 3;
constexpr int kMoves = 2;
constexpr int kEnds = 1;

}  // namespace

FollowedProfile::FollowedProfile(const FollowOptions& options) : options_(options) {}

bool FollowedProfile::SameLatencies(const ProfileTable& profiled, ModelId m) const {
  if (m.value() >= profiled_.models() || profiled.lane_classes() != profiled_.lane_classes() ||
      profiled.exits(m) != profiled_.exits(m) || profiled.max_batch(m) != profiled_.max_batch(m)) {
    return false;
  }
  for (LaneClass::rep c = 0; c < static_cast<LaneClass::rep>(profiled.lane_classes()); ++c) {
    for (ExitId::rep e = 0; e < static_cast<ExitId::rep>(profiled.exits(m)); ++e) {
      for (int b = 1; b <= profiled.max_batch(m); ++b) {
        if (profiled.Latency(m, ExitId{e}, b, LaneClass{c}) !=
            profiled_.Latency(m, ExitId{e}, b, LaneClass{c})) {
          return false;
        }
      }
    }
  }
  return true;
}

void FollowedProfile::Configure(const ProfileTable& profiled) {
  const auto classes = static_cast<std::size_t>(profiled.lane_classes());
  const Cell fresh{.window = RatioWindow(RatioWindow::RuleOf(options_.percentile))};
  std::vector<Cell> cells(profiled.models() * classes, fresh);
  for (ModelId::rep m = 0; m < profiled.models(); ++m) {
    if (!SameLatencies(profiled, ModelId{m})) continue;
    std::copy_n(&cells_[m * classes], classes, &cells[m * classes]);
  }
  cells_ = std::move(cells);
  profiled_ = profiled;
  table_ = profiled;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].applied == RatioSteps::kOne) continue;
    table_.Follow(profiled_, ModelOf(i), ClassOf(i), RatioSteps::Ratio(cells_[i].applied),
                  options_.margin);
  }
}

bool FollowedProfile::Learn(ModelId m, LaneClass c, Duration expected, Duration took,
                            TimePoint now) {
  Cell& cell = cells_[Place(m, c)];
  cell.busy = true;
  cell.window.Push(RatioSteps::Of(took, expected - options_.margin));
  if (!Apply(cell)) return false;
  if (next_relax_ == kNever) next_relax_ = now + kRest;
  return true;
}

bool FollowedProfile::Rest(Cell& cell, TimePoint now) {
  const bool rests = !cell.busy;
  cell.busy = false;
  if (cell.applied == RatioSteps::kOne) return false;
  next_relax_ = now + kRest;
  if (!rests) return false;
  for (int i = 0; i < kRestBatches; ++i) cell.window.Push(RatioSteps::kOne);
  return Apply(cell);
}

bool FollowedProfile::Apply(Cell& cell) {
  int answer = cell.window.answer();
  // Too few batches exceed such a percentile to tell a quicker machine from a lucky minute.
  if (options_.percentile >= 99) answer = std::max(answer, RatioSteps::kOne);
  const int off = std::abs(answer - RatioSteps::kOne);
  if (cell.applied == RatioSteps::kOne) {
    if (off < kBegins || (answer > RatioSteps::kOne && !cell.window.slower())) return false;
  } else if (off <= kEnds) {
    answer = RatioSteps::kOne;
  } else if (std::abs(answer - cell.applied) < kMoves) {
    return false;
  }
  cell.applied = answer;
  const auto place = static_cast<std::size_t>(&cell - cells_.data());
  table_.Follow(profiled_, ModelOf(place), ClassOf(place), RatioSteps::Ratio(answer),
                options_.margin);
  return true;
}

}  // namespace tactus
