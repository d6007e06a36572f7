#include "pipeline/item_progress.h"

#include <algorithm>

#include "base/check.h"

namespace tactus {
namespace {

// To `count` lists, all empty. Those that were there keep their memory.
template <class Item>
void Empty(std::vector<std::vector<Item>>& lists, std::size_t count) {
  lists.resize(count);
  for (auto& list : lists) list.clear();
}

}  // namespace

void ItemProgress::Clear() {
  Empty(items_, levels().size());
  Empty(inside_, levels().size());
  Empty(runs_, pipeline_->stages.size());
  left_.resize(pipeline_->stages.size());
  for (std::size_t s = 0; s < left_.size(); ++s) {
    Empty(left_[s], levels().path(levels().of(StageId{static_cast<StageId::rep>(s)})).size());
  }
  stages_left_ = 0;
  for (std::size_t s = 0; s < pipeline_->stages.size(); ++s) {
    stages_left_ += IsIn(wanted_, StageId{static_cast<StageId::rep>(s)});
  }
  items_opened_ = 0;
  items_lost_ = 0;
  rows_cut_ = 0;
}

void ItemProgress::Begin(const Pipeline& pipeline, std::vector<StageRun>& ready, StageMask wanted) {
  pipeline_ = &pipeline;
  wanted_ = wanted;
  Clear();
  Add(PipelineLevels::kRoot, 0, ready);
  std::ranges::sort(ready);
}

void ItemProgress::Answer(StageRun run, int rows, std::vector<StageRun>& ready) {
  CHECK(IsWanted(run), "an answer to a run that is not under way");
  At(run).state = RunState::kAnswered;
  // The level opens first, and so its stages still wait for this one like all others.
  if (const LevelId opened = levels().opened_by(run.stage); opened.valid()) {
    CHECK(rows >= 0, "rows are counted");
    const int taken = std::min(rows, levels().most(opened));
    rows_cut_ += rows - taken;
    items_opened_ += taken;
    Open(opened, run.item, taken, ready);
  }
  Finish(run, ready);
  std::ranges::sort(ready);
}

void ItemProgress::Open(LevelId level, std::uint32_t around, int count,
                        std::vector<StageRun>& ready) {
  inside_[level.value()][around] = {static_cast<std::uint32_t>(items_[level.value()].size()),
                                    static_cast<std::uint32_t>(count)};
  const std::size_t depth = levels().depth(level) - 1;
  const LevelId outer = levels().path(level)[depth];
  for (const StageId stage : levels().beneath(level)) {
    for (std::size_t d = depth + 1; d-- > 0;) {
      Count(stage, d, Around(outer, around, d), count - 1, ready);
    }
  }
  for (int i = 0; i < count; ++i) Add(level, around, ready);
}

void ItemProgress::Add(LevelId level, std::uint32_t around, std::vector<StageRun>& ready) {
  const auto item = static_cast<std::uint32_t>(items_[level.value()].size());
  items_[level.value()].push_back({around});
  const std::size_t depth = levels().depth(level);
  for (const StageId stage : levels().beneath(level)) left_[stage.value()][depth].push_back(1);
  for (const LevelId inner : levels().inner(level)) inside_[inner.value()].emplace_back();
  for (const StageId stage : levels().stages(level)) {
    Run& run = runs_[stage.value()].emplace_back();
    run.waits_for = WaitsFor(stage, item);
    if (run.waits_for > 0 || !IsIn(wanted_, stage)) continue;
    run.state = RunState::kReady;
    ready.push_back({stage, item});
  }
  for (const LevelId inner : levels().inner(level)) {
    if (levels().fixed(inner) > 0) Open(inner, item, levels().fixed(inner), ready);
  }
}

int ItemProgress::WaitsFor(StageId stage, std::uint32_t item) const {
  int waits_for = 0;
  for (const StageId other : pipeline_->graph.before(stage)) {
    const std::size_t depth = levels().depth(levels().Meeting(stage, other));
    const std::uint32_t around = Around(levels().of(stage), item, depth);
    if (left_[other.value()][depth][around] > 0) ++waits_for;
  }
  return waits_for;
}

std::uint32_t ItemProgress::Around(LevelId level, std::uint32_t item, std::size_t depth) const {
  const auto path = levels().path(level);
  for (std::size_t d = path.size() - 1; d > depth; --d) {
    item = items_[path[d].value()][item].around;
  }
  return item;
}

std::uint32_t ItemProgress::RowOf(LevelId level, std::uint32_t item) const {
  return item - inside_[level.value()][items_[level.value()][item].around].first;
}

void ItemProgress::AnsweredWithin(StageId stage, std::size_t depth, std::uint32_t item,
                                  std::vector<StageRun>& answered) const {
  const LevelId level = levels().of(stage);
  if (items_[levels().path(level)[depth].value()][item].lost) return;
  if (levels().depth(level) == depth) {
    const StageRun run{stage, item};
    if (runs_[stage.value()][item].state == RunState::kAnswered) answered.push_back(run);
    return;
  }
  const Inside inside = inside_[levels().path(level)[depth + 1].value()][item];
  for (std::uint32_t i = 0; i < inside.count; ++i) {
    AnsweredWithin(stage, depth + 1, inside.first + i, answered);
  }
}

void ItemProgress::Finish(StageRun run, std::vector<StageRun>& ready) {
  const LevelId level = levels().of(run.stage);
  for (std::size_t d = levels().depth(level) + 1; d-- > 0;) {
    Count(run.stage, d, Around(level, run.item, d), -1, ready);
  }
}

void ItemProgress::Count(StageId stage, std::size_t depth, std::uint32_t item, int more,
                         std::vector<StageRun>& ready) {
  int& left = left_[stage.value()][depth][item];
  left += more;
  if (left == 0) Tell(stage, depth, item, ready);
}

void ItemProgress::Tell(StageId stage, std::size_t depth, std::uint32_t item,
                        std::vector<StageRun>& ready) {
  if (depth == 0 && IsIn(wanted_, stage)) --stages_left_;
  for (const StageId other : pipeline_->graph.next(stage)) {
    const LevelId meeting = levels().Meeting(stage, other);
    if (levels().depth(meeting) == depth) Release(other, meeting, item, ready);
  }
}

void ItemProgress::Release(StageId stage, LevelId at, std::uint32_t item,
                           std::vector<StageRun>& ready) {
  const LevelId level = levels().of(stage);
  if (at != level) {
    const LevelId inner = levels().path(level)[levels().depth(at) + 1];
    const Inside inside = inside_[inner.value()][item];
    for (std::uint32_t i = 0; i < inside.count; ++i) Release(stage, inner, inside.first + i, ready);
    return;
  }
  Run& run = runs_[stage.value()][item];
  if (run.state != RunState::kWaiting || --run.waits_for > 0 || !IsIn(wanted_, stage)) return;
  run.state = RunState::kReady;
  ready.push_back({stage, item});
}

void ItemProgress::Lose(StageRun run, std::vector<StageRun>& ready,
                        std::vector<StageRun>& started) {
  CHECK(levels().IsOfRows(run.stage), "a request as a whole is dropped, not lost");
  const LevelId level = levels().of(run.stage);
  // One of a stage's count is not missed alone: all of them are what the stage does for a row.
  std::size_t depth = levels().depth(level);
  while (levels().fixed(levels().path(level)[depth]) > 0) --depth;
  // First all of them, so that none starts for what another leaves.
  losing_.clear();
  Lose(levels().path(level)[depth], Around(level, run.item, depth), started);
  for (const StageRun lost : losing_) {
    const LevelId opened = levels().opened_by(lost.stage);
    if (opened.valid()) Open(opened, lost.item, 0, ready);
    Finish(lost, ready);
  }
  std::ranges::sort(ready);
}

void ItemProgress::Lose(LevelId level, std::uint32_t item, std::vector<StageRun>& started) {
  Item& losing = items_[level.value()][item];
  if (losing.lost) return;
  losing.lost = true;
  if (levels().fixed(level) == 0) ++items_lost_;
  for (const StageId stage : levels().stages(level)) {
    Run& run = runs_[stage.value()][item];
    if (run.state == RunState::kAnswered) continue;
    if (run.state == RunState::kStarted) started.push_back({stage, item});
    run.state = RunState::kLost;
    losing_.push_back({stage, item});
  }
  for (const LevelId inner : levels().inner(level)) {
    const Inside inside = inside_[inner.value()][item];
    for (std::uint32_t i = 0; i < inside.count; ++i) Lose(inner, inside.first + i, started);
  }
}

bool ItemProgress::IsWanted(StageRun run) const {
  const auto& runs = runs_[run.stage.value()];
  if (run.item >= runs.size()) return false;
  const RunState state = runs[run.item].state;
  return state == RunState::kReady || state == RunState::kStarted;
}

void ItemProgress::SetStarted(StageRun run, bool started) {
  At(run).state = started ? RunState::kStarted : RunState::kReady;
}

void ItemProgress::Started(std::vector<StageRun>& started) const {
  for (std::size_t s = 0; s < runs_.size(); ++s) {
    for (std::size_t item = 0; item < runs_[s].size(); ++item) {
      if (runs_[s][item].state != RunState::kStarted) continue;
      started.push_back({StageId{static_cast<StageId::rep>(s)}, static_cast<std::uint32_t>(item)});
    }
  }
}

}  // namespace tactus
