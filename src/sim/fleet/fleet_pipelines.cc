#include "sim/fleet/fleet_pipelines.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/rng.h"
#include "sim/fleet/fleet_node.h"

namespace tactus {
namespace {

FleetStageId StageAt(std::size_t s) { return FleetStageId{static_cast<FleetStageId::rep>(s)}; }

// The draws of a frame depend on its number alone.
std::uint64_t Mixed(std::uint64_t x) { return SplitMix(x); }

bool HasNext(const FleetPipeline& pipeline, std::size_t s) {
  return std::ranges::any_of(pipeline.stages, [&](const FleetStage& each) {
    return std::ranges::find(each.after, StageAt(s)) != each.after.end();
  });
}

// Between two points in proportion; behind the last one as there.
double TimesAt(const std::vector<CurvePoint>& curve, double t_s) {
  if (curve.empty()) return 1;
  const auto after = std::ranges::upper_bound(curve, t_s, {}, &CurvePoint::t_s);
  if (after == curve.end()) return curve.back().times;
  const CurvePoint& before = *std::prev(after);  // the first is at 0
  const double way = (t_s - before.t_s) / (after->t_s - before.t_s);
  return before.times + way * (after->times - before.times);
}

Expected<Pipeline> MakeOne(const FleetInput& input, const FleetPipeline& pipeline,
                           std::vector<FleetFlowStage>& stages) {
  std::vector<StageDeclaration> declared;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const FleetStage& stage = pipeline.stages[s];
    StageDeclaration own{.name = stage.name};
    if (!stage.after.empty()) {
      StageDeclaration crop{.name = "crop for " + stage.name};
      for (const FleetStageId each : stage.after) {
        crop.after.push_back(pipeline.stages[each.value()].name);
      }
      crop.demultiply = true;
      crop.demultiply_most = FleetItems::kMost;
      own.after = {crop.name};
      declared.push_back(std::move(crop));
      stages.push_back({.stage = StageAt(s), .crop = true});
    }
    declared.push_back(std::move(own));
    stages.push_back({.stage = StageAt(s), .last = !HasNext(pipeline, s)});
  }
  auto graph = PipelineGraph::Make(declared);
  if (!graph) return std::unexpected(graph.error());
  auto levels = PipelineLevels::Make(*graph, declared);
  if (!levels) return std::unexpected(levels.error());
  Pipeline made{.name = pipeline.name,
                .slo = pipeline.slo,
                .graph = std::move(*graph),
                .levels = std::move(*levels),
                .deadlines = DeadlineRule::kPersist,
                .answer = AnswerRule::kEach};
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const FleetStage& stage = pipeline.stages[stages[i].stage.value()];
    const Duration least = stages[i].crop ? Duration{} : QuickestOf(input, pipeline, stage);
    made.stages.push_back({.name = declared[i].name,
                           .model = stage.model,
                           .deadline = pipeline.slo,
                           .budget = pipeline.slo,
                           .need = least,
                           .least = least});
  }
  return made;
}

}  // namespace

Duration QuickestOf(const FleetInput& input, const FleetPipeline& pipeline,
                    const FleetStage& stage) {
  Duration least = Duration::max();
  for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
    if (!input.devices[d].server && DeviceId{d} != pipeline.source) continue;
    const FleetCost* cost = input.CostOf(stage.model, input.devices[d].kind);
    if (cost == nullptr) continue;
    const double part = cost->exits.empty() ? 1 : cost->exits.front().part;
    least = std::min(least, CostOfBatch(*cost, cost->batches.front().batch, part).total);
  }
  return least == Duration::max() ? Duration{} : least;
}

Expected<FleetPipelines> MakeFleetPipelines(const FleetInput& input) {
  FleetPipelines made;
  for (const FleetPipeline& pipeline : input.pipelines) {
    auto one = MakeOne(input, pipeline, made.stage.emplace_back());
    if (!one) {
      return InvalidArgument(
          fmt::format("pipeline '{}' cannot be simulated: {}", pipeline.name, one.error().message));
    }
    made.pipelines.push_back(std::move(*one));
  }
  return made;
}

FleetItems::FleetItems(const FleetScenario& scenario, std::uint64_t seed)
    : scenario_(scenario), seed_(Mixed(seed)) {
  for (std::size_t p = 0; p < scenario.input.pipelines.size(); ++p) {
    const auto& stages = scenario.input.pipelines[p].stages;
    auto& made = stages_.emplace_back(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].after.empty()) continue;
      const std::size_t before = stages[s].after.front().value();
      const double around = stages[before].after.empty() ? 1 : stages[before].items;
      made[s].ratio = around > 0 ? stages[s].items / around : 0;
      made[before].behind.push_back(StageAt(s));
      if (p < scenario.items.size() && !scenario.items[p][s].empty()) {
        made[s].counts = &scenario.items[p][s];
      }
    }
  }
}

int FleetItems::Rows(FleetPipelineId p, FleetStageId s, std::int64_t frame, std::uint32_t item,
                     double t_s) const {
  const Stage& stage = stages_[p.value()][s.value()];
  const std::uint64_t number =
      Mixed(Mixed(static_cast<std::uint64_t>(frame) ^ seed_) + (std::uint64_t{p.value()} << 40) +
            (std::uint64_t{s.value()} << 32) + item);
  const double luck = static_cast<double>(number >> 11) * 0x1p-53;
  if (stage.counts != nullptr) {
    const auto second = static_cast<std::size_t>(t_s) % stage.counts->size();
    const double count = (*stage.counts)[second] * TimesAt(scenario_.curve, t_s);
    const double whole = std::floor(count);
    return std::min(kMost, static_cast<int>(whole) + (luck < count - whole ? 1 : 0));
  }
  if (stage.ratio <= 1) return luck < stage.ratio ? 1 : 0;
  double chance = std::exp(-stage.ratio), up_to = chance;
  int rows = 0;
  while (up_to < luck && rows < kMost) up_to += chance *= stage.ratio / ++rows;
  return rows;
}

std::int64_t FleetItems::ResultsBehind(FleetPipelineId p, FleetStageId s, std::int64_t frame,
                                       std::uint32_t item, double t_s,
                                       std::vector<std::uint32_t>& seen) const {
  const Stage& stage = stages_[p.value()][s.value()];
  if (stage.behind.empty()) return 1;
  std::int64_t results = 0;
  for (const FleetStageId next : stage.behind) {
    const int rows = Rows(p, next, frame, item, t_s);
    for (int i = 0; i < rows; ++i) {
      results += ResultsBehind(p, next, frame, seen[next.value()]++, t_s, seen);
    }
  }
  return results;
}

std::int64_t FleetItems::Results(FleetPipelineId p, std::int64_t frame, double t_s) const {
  const auto& stages = scenario_.input.pipelines[p.value()].stages;
  std::vector<std::uint32_t> seen(stages.size());
  std::int64_t results = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].after.empty()) results += ResultsBehind(p, StageAt(s), frame, 0, t_s, seen);
  }
  return results;
}

double FleetItems::MeanItems(FleetPipelineId p, FleetStageId s, double from_s, double to_s) const {
  const Stage& stage = stages_[p.value()][s.value()];
  const FleetStage& said = scenario_.input.pipelines[p.value()].stages[s.value()];
  if (said.after.empty()) return said.items;
  if (stage.counts == nullptr) {
    // As many as the stage before it has of late, times its own ratio.
    const double around = MeanItems(p, said.after.front(), from_s, to_s);
    return stage.ratio *
           (scenario_.input.pipelines[p.value()].stages[said.after.front().value()].after.empty()
                ? 1
                : around);
  }
  const std::vector<double>& counts = *stage.counts;
  double sum = 0;
  const auto from = static_cast<std::size_t>(from_s);
  const auto to = std::max(from + 1, static_cast<std::size_t>(to_s));
  for (std::size_t i = from; i < to; ++i) sum += counts[i % counts.size()];
  return sum / static_cast<double>(to - from) * TimesAt(scenario_.curve, (from_s + to_s) / 2);
}

}  // namespace tactus
