#include "pipeline/levels.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace tactus {

// Places one stage after the other, in an order in which all that a stage waits for has its place.
class PipelineLevels::Maker {
 public:
  Maker(const PipelineGraph& graph, std::span<const StageDeclaration> stages)
      : graph_(graph), stages_(stages) {
    made_.of_.resize(stages.size());
    made_.opened_by_.resize(stages.size());
    made_.levels_.emplace_back().path = {kRoot};
  }

  Expected<PipelineLevels> Make() && {
    for (const StageId stage : graph_.order()) {
      if (auto placed = Place(stage); !placed) return std::unexpected(placed.error());
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageId stage{static_cast<StageId::rep>(s)};
      const LevelId level = made_.of(stage);
      made_.levels_[level.value()].stages.push_back(stage);
      for (const LevelId around : made_.path(level)) {
        made_.levels_[around.value()].beneath.push_back(stage);
      }
    }
    return std::move(made_);
  }

 private:
  const StageDeclaration& At(StageId stage) const { return stages_[stage.value()]; }

  Status Place(StageId stage) {
    const StageDeclaration& declared = At(stage);
    const auto gathered = Gathered(declared);
    if (!gathered) return std::unexpected(gathered.error());
    LevelId level = kRoot;
    StageId deepest;  // whose level that is
    bool gathers = false;
    for (const StageId before : graph_.before(stage)) {
      LevelId other = AfterIt(before);
      if (gathered->valid() && made_.IsWithin(other, *gathered)) {
        other = Around(*gathered);
        gathers = true;
      }
      if (made_.IsWithin(level, other)) continue;
      if (!made_.IsWithin(other, level)) return Apart(declared, deepest, before);
      level = other;
      deepest = before;
    }
    if (gathered->valid() && !gathers) {
      return InvalidArgument(fmt::format(
          "{0} '{1}' gathers the rows of '{2}' but is after no {0} that runs once for each; leave "
          "out its gather",
          declared.noun, declared.name, declared.gather));
    }
    if (gathered->valid() && made_.IsWithin(level, *gathered)) {
      return InvalidArgument(fmt::format(
          "{} '{}' gathers the rows of '{}' but still runs once for each of them; leave out its "
          "gather",
          declared.noun, declared.name, declared.gather));
    }
    return Settle(stage, level);
  }

  Status Settle(StageId stage, LevelId level) {
    const StageDeclaration& declared = At(stage);
    if (declared.count > 1 && declared.demultiply) {
      return InvalidArgument(
          fmt::format("{} '{}' has a count of {} and rows; leave out one of them", declared.noun,
                      declared.name, declared.count));
    }
    made_.of_[stage.value()] = level;
    const bool opens = declared.demultiply;
    if (declared.count == 1 && !opens) return {};
    const auto opened = opens ? made_.Open(level, stage, 0, declared.demultiply_most)
                              : made_.Open(level, StageId{}, declared.count, declared.count);
    if (!opened) {
      return InvalidArgument(
          fmt::format("{} '{}': {}", declared.noun, declared.name, opened.error().message));
    }
    (opens ? made_.opened_by_ : made_.of_)[stage.value()] = *opened;
    return {};
  }

  // That the stage gathers; invalid where it gathers none.
  Expected<LevelId> Gathered(const StageDeclaration& declared) const {
    if (declared.gather.empty()) return LevelId{};
    const auto at = std::ranges::find(stages_, declared.gather, &StageDeclaration::name);
    if (at != stages_.end() && at->demultiply) {
      const LevelId level = made_.opened_by_[at - stages_.begin()];
      if (level.valid()) return level;  // else it comes later than this stage
    }
    if (at == stages_.end()) {
      return InvalidArgument(fmt::format("{} '{}' gathers '{}': {}", declared.noun, declared.name,
                                         declared.gather, NoSuchStage(stages_, declared.gather)));
    }
    return InvalidArgument(
        fmt::format("{0} '{1}' gathers '{2}', which is not a {0} with rows before it; name the one "
                    "whose rows it waits for",
                    declared.noun, declared.name, declared.gather));
  }

  // Of what runs after the stage, unless it gathers.
  LevelId AfterIt(StageId stage) const {
    const LevelId opened = made_.opened_by(stage);
    if (opened.valid()) return opened;
    return At(stage).count > 1 ? Around(made_.of(stage)) : made_.of(stage);
  }

  LevelId Around(LevelId level) const { return made_.path(level)[made_.depth(level) - 1]; }

  Status Apart(const StageDeclaration& declared, StageId one, StageId other) const {
    return InvalidArgument(fmt::format(
        "{0} '{1}' is after '{2}' and '{3}', which run once per row of two {0}s that have nothing "
        "to do with each other; gather one of them first",
        declared.noun, declared.name, At(one).name, At(other).name));
  }

  const PipelineGraph& graph_;
  std::span<const StageDeclaration> stages_;
  PipelineLevels made_;
};

Expected<PipelineLevels> PipelineLevels::Make(const PipelineGraph& graph,
                                              std::span<const StageDeclaration> stages) {
  return Maker(graph, stages).Make();
}

Expected<LevelId> PipelineLevels::Open(LevelId around, StageId opener, int fixed, int most) {
  const LevelId level{static_cast<LevelId::rep>(levels_.size())};
  Level made = {.opener = opener, .fixed = fixed, .most = most};
  made.items = levels_[around.value()].items * most;
  if (made.items > kMostItems) {
    return InvalidArgument(
        fmt::format("it may come to {} items in one request, {} at most; lower the counts or the "
                    "most rows",
                    made.items, kMostItems));
  }
  made.path = levels_[around.value()].path;
  made.path.push_back(level);
  levels_[around.value()].inner.push_back(level);
  levels_.push_back(std::move(made));
  return level;
}

bool PipelineLevels::IsWithin(LevelId inner, LevelId outer) const {
  return depth(inner) >= depth(outer) && path(inner)[depth(outer)] == outer;
}

bool PipelineLevels::IsOfRows(StageId stage) const {
  return std::ranges::any_of(path(of(stage)), [&](LevelId level) { return opener(level).valid(); });
}

LevelId PipelineLevels::Meeting(StageId a, StageId b) const {
  const auto one = path(of(a));
  const auto other = path(of(b));
  const auto parted = std::ranges::mismatch(one, other);
  return *(parted.in1 - 1);
}

}  // namespace tactus
