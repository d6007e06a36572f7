// How often each stage of a pipeline runs: a stage whose answer has rows opens a level, of one item
// for each row, and the stages after it run once per item.
//
//   detect (demultiply) -> crop -> read -> join (gather = detect)
//   level 0: detect, join          once per request
//   level 1, opened by detect:     crop, read: once per row of detect's answer
//
// Stages join within a level, or with what an outer level answered (which all its items then
// share). The only way out of a level is to gather it. A stage with a count has a level of its own,
// of so many items, which whoever is after it gathers without saying so.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.h"
#include "pipeline/graph.h"

namespace tactus {

// 0 is the request itself. A level comes after the one that it lies in.
using LevelId = Id<struct LevelTag>;

class PipelineLevels {
 public:
  static constexpr LevelId kRoot{0};
  // Items of one level in one request, at most.
  static constexpr std::int64_t kMostItems = 1 << 16;

  // kInvalidArgument with the stage and the remedy: a join of levels that have nothing to do with
  // each other, `gather` of what is no level around the stage, a count together with rows, more
  // items than kMostItems.
  static Expected<PipelineLevels> Make(const PipelineGraph& graph,
                                       std::span<const StageDeclaration> stages);

  std::size_t size() const { return levels_.size(); }
  LevelId of(StageId stage) const { return of_[stage.value()]; }
  // The level whose items are the rows of its answer; invalid: it does not demultiply.
  LevelId opened_by(StageId stage) const { return opened_by_[stage.value()]; }
  // Whether it runs once for each row of some stage's answer.
  bool IsOfRows(StageId stage) const;
  // The deepest that both stages lie in.
  LevelId Meeting(StageId a, StageId b) const;

  // From level 0 to the level itself: as long as it is deep, and one.
  std::span<const LevelId> path(LevelId level) const { return levels_[level.value()].path; }
  std::size_t depth(LevelId level) const { return path(level).size() - 1; }
  // The levels directly in it.
  std::span<const LevelId> inner(LevelId level) const { return levels_[level.value()].inner; }
  // The stages that run once per item of it; and those together with the stages of all levels
  // inside.
  std::span<const StageId> stages(LevelId level) const { return levels_[level.value()].stages; }
  std::span<const StageId> beneath(LevelId level) const { return levels_[level.value()].beneath; }
  // Items per item of the level around it; 0: as many as its opener's answer has rows.
  int fixed(LevelId level) const { return levels_[level.value()].fixed; }
  // The most of them.
  int most(LevelId level) const { return levels_[level.value()].most; }
  // The stage whose rows they are; invalid where their number is fixed.
  StageId opener(LevelId level) const { return levels_[level.value()].opener; }

 private:
  struct Level {
    StageId opener;
    int fixed = 0;
    int most = 1;
    std::int64_t items = 1;  // of one request, at most
    std::vector<LevelId> path = {};
    std::vector<LevelId> inner = {};
    std::vector<StageId> stages = {};
    std::vector<StageId> beneath = {};
  };
  class Maker;

  // The new level's, inside `around`.
  Expected<LevelId> Open(LevelId around, StageId opener, int fixed, int most);
  bool IsWithin(LevelId inner, LevelId outer) const;

  std::vector<Level> levels_;
  std::vector<LevelId> of_;         // by stage
  std::vector<LevelId> opened_by_;  // by stage
};

}  // namespace tactus
