// One request on its way through a pipeline: which runs may start, item by item, and when it is
// complete. A run is one stage's work on one item of its level (pipeline/levels.h). The driver
// carries runs out and says what was answered; it need not know the graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pipeline/pipeline.h"

namespace tactus {

struct StageRun {
  StageId stage;
  std::uint32_t item = 0;  // of the stage's level, counted over the whole request

  auto operator<=>(const StageRun&) const = default;
};

class ItemProgress {
 public:
  // `pipeline` outlives the request. Appends to `ready` the runs that wait for nobody. May be begun
  // again for another request, which then hardly allocates. `wanted`: the stages that run, each
  // with all that it waits for; the others never do, and nobody misses them.
  void Begin(const Pipeline& pipeline, std::vector<StageRun>& ready, StageMask wanted = kAllStages);

  // A run that was ready is answered; `rows`: of the answer, read where the stage demultiplies.
  // Appends the runs that may start now, by stage and item.
  void Answer(StageRun run, int rows, std::vector<StageRun>& ready);

  // The row that the run works on is given up, with all items inside it: what gathers it does
  // without. Appends to `started` the runs of it that were. Only of stages that run for rows
  // (PipelineLevels::IsOfRows).
  void Lose(StageRun run, std::vector<StageRun>& ready, std::vector<StageRun>& started);

  // Every wanted stage has answered all of its items that were not lost.
  bool complete() const { return stages_left_ == 0; }
  StageMask wanted() const { return wanted_; }
  // Ready, and neither answered nor lost.
  bool IsWanted(StageRun run) const;
  // Notes that somebody carries out what is ready, or that nobody does after all.
  void SetStarted(StageRun run, bool started);
  // All that are started, by stage and item.
  void Started(std::vector<StageRun>& started) const;
  // False where it was asked before of this run.
  bool TakeSecondChance(StageRun run) { return !std::exchange(At(run).second, true); }

  // For whoever passes answers on. The item of the level around `level`, at `depth` of its path,
  // that `item` lies in; itself at its own depth.
  std::uint32_t Around(LevelId level, std::uint32_t item, std::size_t depth) const;
  // Which of the rows that opened them the item is, from 0 on.
  std::uint32_t RowOf(LevelId level, std::uint32_t item) const;
  // Appends the stage's runs that were answered, lie in `item` of the level at `depth` of its path,
  // and work on no row that was given up; in order of their rows.
  void AnsweredWithin(StageId stage, std::size_t depth, std::uint32_t item,
                      std::vector<StageRun>& answered) const;

  // Items of levels that rows opened; those of them that were lost; rows that were cut.
  int items() const { return items_opened_; }
  int items_lost() const { return items_lost_; }
  int rows_cut() const { return rows_cut_; }

 private:
  enum class RunState : std::uint8_t { kWaiting, kReady, kStarted, kAnswered, kLost };
  struct Run {
    int waits_for = 0;  // stages
    RunState state = RunState::kWaiting;
    bool second = false;
  };
  struct Item {
    std::uint32_t around = 0;  // the item of the level around that it lies in
    bool lost = false;
  };
  // The items of one level that lie in one item of the level around.
  struct Inside {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  Run& At(StageRun run) { return runs_[run.stage.value()][run.item]; }
  const PipelineLevels& levels() const { return pipeline_->levels; }

  void Clear();
  void Open(LevelId level, std::uint32_t around, int count, std::vector<StageRun>& ready);
  void Add(LevelId level, std::uint32_t around, std::vector<StageRun>& ready);
  int WaitsFor(StageId stage, std::uint32_t item) const;
  // One run less, of a stage's, in the item and all around it.
  void Finish(StageRun run, std::vector<StageRun>& ready);
  void Count(StageId stage, std::size_t depth, std::uint32_t item, int more,
             std::vector<StageRun>& ready);
  // All the stage's runs inside this item are done.
  void Tell(StageId stage, std::size_t depth, std::uint32_t item, std::vector<StageRun>& ready);
  void Release(StageId stage, LevelId at, std::uint32_t item, std::vector<StageRun>& ready);
  void Lose(LevelId level, std::uint32_t item, std::vector<StageRun>& started);

  const Pipeline* pipeline_ = nullptr;
  StageMask wanted_ = kAllStages;
  std::vector<std::vector<Item>> items_;     // by level
  std::vector<std::vector<Inside>> inside_;  // by level, by item of the level around
  std::vector<std::vector<Run>> runs_;       // by stage, by item
  // By stage, by depth, by item of the stage's path there: its runs inside that are not done, where
  // a level that is not open yet counts as one.
  std::vector<std::vector<std::vector<int>>> left_;
  std::vector<StageRun> losing_;
  std::size_t stages_left_ = 0;
  int items_opened_ = 0;
  int items_lost_ = 0;
  int rows_cut_ = 0;
};

}  // namespace tactus
