#include "pipeline/step_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/budget.h"
#include "pipeline/tensors.h"

namespace tactus {
namespace {

constexpr StageMask Only(std::size_t stage) { return StageMask{1} << stage; }

// What a group is to the steps around it.
struct GroupShape {
  LevelId base;        // of the steps with which it begins, and of the group as one step
  StageId rows;        // whose rows later steps run for; invalid: none
  std::string gather;  // the step outside whose rows it waits for
};

// Asks of a pipeline which of its steps may be one.
class Grouping {
 public:
  explicit Grouping(const BuiltEnsemble& ensemble)
      : ensemble_(ensemble), stages_(ensemble.declared.pipeline.stages) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      before_.push_back(ensemble.graph.WithAllBefore(Only(s)));
    }
    for (const TensorSpec& each : ensemble.declared.model.outputs) answers_.insert(each.name);
  }

  // Nothing where they may not be.
  std::optional<GroupShape> ShapeOf(StageMask group) const {
    GroupShape shape;
    if (!FindBase(group, shape) || !FindGather(group, shape)) return std::nullopt;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if ((group & Only(s)) == 0) continue;
      const bool fits = stages_[s].count == 1 && IsBeneath(s, group, shape.base) &&
                        WaitsAsAllDo(s, group) && IsReadBehindAll(s, group, shape);
      if (!fits) return std::nullopt;
    }
    if (shape.rows.valid() && !MakesOnlyRows(group, shape.rows)) return std::nullopt;
    const bool rows_cross = shape.base != PipelineLevels::kRoot || shape.rows.valid();
    if (rows_cross && !BatchAlike(group)) return std::nullopt;
    return shape;
  }

 private:
  LevelId LevelOf(std::size_t stage) const { return ensemble_.levels.of(IdOf(stage)); }
  static StageId IdOf(std::size_t stage) { return StageId{static_cast<StageId::rep>(stage)}; }

  bool FindBase(StageMask group, GroupShape& shape) const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if ((group & Only(s)) == 0 || (before_[s] & group) != Only(s)) continue;  // not the first
      if (shape.base.valid() && shape.base != LevelOf(s)) return false;
      shape.base = LevelOf(s);
    }
    return true;
  }

  bool FindGather(StageMask group, GroupShape& shape) const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const std::string& of = stages_[s].gather;
      if ((group & Only(s)) == 0 || of.empty() || IsNamed(group, of)) continue;
      if (!shape.gather.empty() && shape.gather != of) return false;
      shape.gather = of;
    }
    return true;
  }

  bool IsNamed(StageMask group, const std::string& name) const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if ((group & Only(s)) != 0 && stages_[s].name == name) return true;
    }
    return false;
  }

  // In the base, or in rows that a step of the group makes.
  bool IsBeneath(std::size_t stage, StageMask group, LevelId base) const {
    const auto path = ensemble_.levels.path(LevelOf(stage));
    const std::size_t depth = ensemble_.levels.depth(base);
    if (path.size() <= depth || path[depth] != base) return false;
    return std::ranges::all_of(path.subspan(depth + 1), [&](LevelId level) {
      const StageId opener = ensemble_.levels.opener(level);
      return opener.valid() && IsIn(group, opener);
    });
  }

  bool WaitsAsAllDo(std::size_t stage, StageMask group) const {
    return std::ranges::all_of(ensemble_.graph.before(IdOf(stage)), [&](StageId needed) {
      if (IsIn(group, needed)) return true;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        if ((group & Only(s)) != 0 && !IsIn(before_[s], needed)) return false;
      }
      return true;
    });
  }

  bool IsReadBehindAll(std::size_t stage, StageMask group, GroupShape& shape) const {
    const PipelineLevels& levels = ensemble_.levels;
    const bool of_base = LevelOf(stage) == shape.base;
    for (const StageId reader : ensemble_.graph.next(IdOf(stage))) {
      if (IsIn(group, reader)) continue;
      if ((before_[reader.value()] & group) != group) return false;
      if (!of_base && levels.of(reader) != shape.base) return false;
      const LevelId opened = levels.opened_by(IdOf(stage));
      const auto path = levels.path(levels.of(reader));
      if (!opened.valid() || std::ranges::find(path, opened) == path.end()) continue;
      if (shape.rows.valid() && shape.rows != IdOf(stage)) return false;
      shape.rows = IdOf(stage);
    }
    if (of_base || shape.base == PipelineLevels::kRoot) return true;
    return std::ranges::none_of(stages_[stage].outputs,
                                [&](const TensorLink& link) { return answers_.contains(link.as); });
  }

  bool MakesOnlyRows(StageMask group, StageId maker) const {
    const LevelId opened = ensemble_.levels.opened_by(maker);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if ((group & Only(s)) == 0) continue;
      const auto path = ensemble_.levels.path(LevelOf(s));
      if (std::ranges::find(path, opened) != path.end()) return false;
      if (IdOf(s) != maker && Crosses(group, s)) return false;
    }
    return ensemble_.levels.of(maker) == LevelOf(maker.value());
  }

  // Whether anybody outside reads what it makes.
  bool Crosses(StageMask group, std::size_t stage) const {
    const auto next = ensemble_.graph.next(IdOf(stage));
    const bool is_answer = std::ranges::any_of(
        stages_[stage].outputs, [&](const TensorLink& link) { return answers_.contains(link.as); });
    return is_answer || std::ranges::any_of(next, [&](StageId r) { return !IsIn(group, r); });
  }

  bool BatchAlike(StageMask group) const {
    std::optional<bool> batched;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if ((group & Only(s)) == 0) continue;
      const bool batches = CountsRows(*ensemble_.models[s]);
      if (batched.value_or(batches) != batches) return false;
      batched = batches;
    }
    return true;
  }

  const BuiltEnsemble& ensemble_;
  const std::vector<StageDeclaration>& stages_;
  std::vector<StageMask> before_;  // by stage, with itself
  std::set<std::string, std::less<>> answers_;
};

// Steps of one place that tensors join, each set of them.
std::vector<StageMask> Connected(const PipelineGraph& graph, std::span<const std::string> places) {
  std::vector<StageMask> sets;
  for (const StageId stage : graph.order()) {
    if (places[stage.value()].empty()) continue;
    StageMask whole = Only(stage.value());
    for (const StageId maker : graph.before(stage)) {
      if (places[maker.value()] != places[stage.value()]) continue;
      const auto with = std::ranges::find_if(sets, [&](StageMask m) { return IsIn(m, maker); });
      if (with == sets.end()) continue;
      whole |= *with;
      sets.erase(with);
    }
    sets.push_back(whole);
  }
  return sets;
}

// Of a set that may not be one: larger and larger pieces that may.
std::vector<StageMask> Pieces(const Grouping& grouping, const PipelineGraph& graph, StageMask set) {
  std::vector<StageMask> pieces;
  for (const StageId stage : graph.order()) {
    if (IsIn(set, stage)) pieces.push_back(Only(stage.value()));
  }
  const auto with = [&](StageId s) {
    return std::ranges::find_if(pieces, [&](StageMask m) { return IsIn(m, s); });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const StageId stage : graph.order()) {
      if (!IsIn(set, stage)) continue;
      for (const StageId maker : graph.before(stage)) {
        if (!IsIn(set, maker)) continue;
        const StageMask both = *with(maker) | *with(stage);
        if (*with(maker) == *with(stage) || !grouping.ShapeOf(both)) continue;
        pieces.erase(with(maker));
        *with(stage) = both;
        changed = true;
      }
    }
  }
  return pieces;
}

bool IsSeveral(StageMask mask) { return (mask & (mask - 1)) != 0; }

// Splits one pipeline.
class Splitting {
 public:
  Splitting(const BuiltEnsemble& ensemble, StageMask group, GroupShape shape)
      : ensemble_(ensemble),
        stages_(ensemble.declared.pipeline.stages),
        group_(group),
        shape_(std::move(shape)) {}

  Expected<SplitEnsemble> Split() && {
    SortSteps();
    SplitEnsemble split;
    MakeInner(split);
    MakeOuter(split);
    if (Status linked = LinkStages(split.inner); !linked) return std::unexpected(linked.error());
    if (Status linked = LinkStages(split.outer); !linked) return std::unexpected(linked.error());
    return split;
  }

 private:
  bool Has(std::size_t stage) const { return (group_ & Only(stage)) != 0; }

  void SortSteps() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!Has(s)) {
        for (const TensorLink& link : stages_[s].inputs) read_outside_.insert(link.as);
        continue;
      }
      steps_.insert(stages_[s].name);
      name_ += (name_.empty() ? "" : "+") + stages_[s].name;
      for (const TensorLink& link : stages_[s].outputs) made_.insert(link.as);
    }
    for (const TensorSpec& each : ensemble_.declared.model.outputs) read_outside_.insert(each.name);
  }

  // The tensor of that name at its model, as it comes there: what is narrower of what is known.
  void AddInput(ModelSpec& model, const std::string& as, const TensorSpec& at_step) const {
    const auto known = std::ranges::find(model.inputs, as, &TensorSpec::name);
    if (known == model.inputs.end()) {
      model.inputs.push_back(
          {.name = as, .type = at_step.type, .dims = at_step.dims, .any_shape = at_step.any_shape});
      return;
    }
    if (at_step.any_shape) return;
    if (known->any_shape) {
      known->dims = at_step.dims;
      known->any_shape = false;
    }
    for (std::size_t d = 0; d < std::min(known->dims.size(), at_step.dims.size()); ++d) {
      if (known->dims[d] < 0) known->dims[d] = at_step.dims[d];
    }
  }

  void AddOutput(ModelSpec& model, std::size_t stage, const TensorLink& link) const {
    const ModelSpec& spec = *ensemble_.models[stage];
    const auto made = std::ranges::find(spec.outputs, link.tensor, &TensorSpec::name);
    if (made == spec.outputs.end()) return;  // it was bound, so it is there
    Shape dims = made->dims;
    if (ensemble_.levels.of(StageId{static_cast<StageId::rep>(stage)}) != shape_.base) {
      if (CountsRows(spec) && !dims.empty()) dims.erase(dims.begin());
      dims.insert(dims.begin(), -1);
    }
    model.outputs.push_back({.name = link.as,
                             .type = made->type,
                             .dims = std::move(dims),
                             .any_shape = made->any_shape});
  }

  void MakeInner(SplitEnsemble& split) const {
    const EnsembleDeclaration& whole = ensemble_.declared;
    ModelSpec& model = split.inner.model;
    model.name = fmt::format("{}[{}]", whole.model.name, name_);
    model.platform = whole.model.platform;
    model.exits = {{"final", {}, 0}};
    PipelineDeclaration& pipeline = split.inner.pipeline;
    pipeline.name = whole.pipeline.name;
    pipeline.noun = whole.pipeline.noun;
    pipeline.slo = whole.pipeline.slo;
    pipeline.answer = whole.pipeline.answer;
    // Fixed deadlines count from when the whole came.
    pipeline.deadlines = whole.pipeline.deadlines == DeadlineRule::kLatency
                             ? DeadlineRule::kRedivide
                             : whole.pipeline.deadlines;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!Has(s)) continue;
      StageDeclaration step = stages_[s];
      step.after.clear();
      if (!steps_.contains(step.gather)) step.gather.clear();
      if (shape_.rows.valid() && shape_.rows.value() == s) step.demultiply = false;
      for (const TensorLink& link : step.inputs) {
        const auto at =
            std::ranges::find(ensemble_.models[s]->inputs, link.tensor, &TensorSpec::name);
        if (made_.contains(link.as) || at == ensemble_.models[s]->inputs.end()) continue;
        AddInput(model, link.as, *at);
      }
      for (const TensorLink& link : step.outputs) {
        if (read_outside_.contains(link.as)) AddOutput(model, s, link);
      }
      pipeline.stages.push_back(std::move(step));
      split.inner_models.push_back(ensemble_.models[s]);
    }
  }

  // As long as the longest way through it.
  Duration Budget() const {
    std::vector<Duration> budgets;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      budgets.push_back(Has(s) ? stages_[s].budget : Duration{});
    }
    return PathLength(LongestPath(ensemble_.graph, budgets), budgets);
  }

  int MaxBatch() const {
    if (ensemble_.declared.model.max_batch > 0) return ensemble_.declared.model.max_batch;
    const bool rows_cross = shape_.base != PipelineLevels::kRoot || shape_.rows.valid();
    if (!rows_cross) return 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (Has(s)) return CountsRows(*ensemble_.models[s]) ? 1 : 0;  // all alike
    }
    return 0;
  }

  StageDeclaration GroupStep(const SplitEnsemble& split) const {
    StageDeclaration step;
    step.name = name_;
    step.model = split.inner.model.name;
    step.noun = stages_.front().noun;
    step.gather = shape_.gather;
    step.budget = Budget();
    if (shape_.rows.valid()) {
      step.demultiply = true;
      step.demultiply_most = stages_[shape_.rows.value()].demultiply_most;
    }
    for (const TensorSpec& each : split.inner.model.inputs) {
      step.inputs.push_back({each.name, each.name});
    }
    for (const TensorSpec& each : split.inner.model.outputs) {
      step.outputs.push_back({each.name, each.name});
    }
    return step;
  }

  void MakeOuter(SplitEnsemble& split) const {
    split.outer = ensemble_.declared;
    auto& steps = split.outer.pipeline.stages;
    steps.clear();
    ModelSpec model = split.inner.model;
    model.max_batch = MaxBatch();
    bool placed = false;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (Has(s) && placed) continue;
      if (Has(s)) {
        split.step = steps.size();
        steps.push_back(GroupStep(split));
        steps.back().place = stages_[s].place;
        split.models.push_back(std::make_shared<const ModelSpec>(std::move(model)));
        placed = true;
        continue;
      }
      StageDeclaration step = stages_[s];
      step.after.clear();
      if (steps_.contains(step.gather)) {
        const bool of_rows =
            shape_.rows.valid() && stages_[shape_.rows.value()].name == step.gather;
        step.gather = of_rows ? name_ : "";
      }
      steps.push_back(std::move(step));
      split.models.push_back(ensemble_.models[s]);
    }
  }

  const BuiltEnsemble& ensemble_;
  const std::vector<StageDeclaration>& stages_;
  const StageMask group_;
  const GroupShape shape_;
  std::string name_;
  std::set<std::string, std::less<>> steps_;         // by name
  std::set<std::string, std::less<>> made_;          // tensors
  std::set<std::string, std::less<>> read_outside_;  // tensors
};

}  // namespace

std::vector<StageMask> FindStepGroups(const BuiltEnsemble& ensemble,
                                      std::span<const std::string> places) {
  std::vector<StageMask> groups;
  if (ensemble.declared.pipeline.deadlines == DeadlineRule::kEqual) return groups;
  const Grouping grouping(ensemble);
  for (const StageMask set : Connected(ensemble.graph, places)) {
    if (!IsSeveral(set)) continue;
    if (grouping.ShapeOf(set)) {
      groups.push_back(set);
      continue;
    }
    for (const StageMask piece : Pieces(grouping, ensemble.graph, set)) {
      if (IsSeveral(piece)) groups.push_back(piece);
    }
  }
  return groups;
}

Expected<SplitEnsemble> SplitAtGroup(const BuiltEnsemble& ensemble, StageMask group) {
  auto shape = Grouping(ensemble).ShapeOf(group);
  if (!shape) {
    return InvalidArgument(fmt::format("pipeline '{}': these steps do not go as one",
                                       ensemble.declared.pipeline.name));
  }
  return Splitting(ensemble, group, *std::move(shape)).Split();
}

}  // namespace tactus
