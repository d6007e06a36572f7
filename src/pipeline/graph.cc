#include "pipeline/graph.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus {
namespace {

StageId At(std::size_t place) { return StageId{static_cast<StageId::rep>(place)}; }

// Follows what has to wait back until a stage comes again: from there on it is a circle.
std::string Circle(std::span<const StageDeclaration> stages,
                   const std::vector<std::vector<StageId>>& before,
                   const std::vector<bool>& ordered) {
  std::vector<StageId> way = {At(std::ranges::find(ordered, false) - ordered.begin())};
  for (;;) {
    const auto& waits_for = before[way.back().value()];
    const StageId blocked =
        *std::ranges::find_if(waits_for, [&](StageId stage) { return !ordered[stage.value()]; });
    const bool again = std::ranges::find(way, blocked) != way.end();
    way.push_back(blocked);
    if (!again) continue;
    std::vector<std::string_view> names;
    for (auto at = std::ranges::find(way, blocked); at != way.end(); ++at) {
      names.push_back(stages[at->value()].name);
    }
    return fmt::format("'{}'", fmt::join(names, "' is after '"));
  }
}

}  // namespace

std::string NoSuchStage(std::span<const StageDeclaration> stages, std::string_view name) {
  std::vector<std::string_view> names;
  for (const StageDeclaration& known : stages) names.push_back(known.name);
  return fmt::format("there is no {} '{}'; there are: {}",
                     stages.empty() ? StageDeclaration{}.noun : stages.front().noun, name,
                     fmt::join(names, ", "));
}

Expected<PipelineGraph> PipelineGraph::Make(std::span<const StageDeclaration> stages) {
  if (stages.empty()) return InvalidArgument("it has no stages; give it at least one");
  if (stages.size() > kMostStages) {
    return InvalidArgument(fmt::format("it has {} {}s, {} at most; split it in two", stages.size(),
                                       stages.front().noun, kMostStages));
  }
  PipelineGraph graph;
  graph.before_.resize(stages.size());
  graph.next_.resize(stages.size());
  if (auto connected = graph.Connect(stages); !connected) {
    return std::unexpected(connected.error());
  }
  if (auto ordered = graph.Order(stages); !ordered) return std::unexpected(ordered.error());
  return graph;
}

Status PipelineGraph::Connect(std::span<const StageDeclaration> stages) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(stages, name, &StageDeclaration::name) - stages.begin();
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageDeclaration& stage = stages[s];
    if (stage.name.empty()) {
      return InvalidArgument(fmt::format("a {} has no name; give it one", stage.noun));
    }
    if (static_cast<std::size_t>(find(stage.name)) != s) {
      return InvalidArgument(fmt::format("{} '{}' is there twice; give one of them another name",
                                         stage.noun, stage.name));
    }
    for (const std::string& name : stage.after) {
      const auto place = static_cast<std::size_t>(find(name));
      if (place == stages.size()) {
        return InvalidArgument(fmt::format("{} '{}' is after '{}': {}", stage.noun, stage.name,
                                           name, NoSuchStage(stages, name)));
      }
      if (std::ranges::find(before_[s], At(place)) != before_[s].end()) {
        return InvalidArgument(fmt::format("{} '{}' is after '{}' twice; once is enough",
                                           stage.noun, stage.name, name));
      }
      before_[s].push_back(At(place));
      next_[place].push_back(At(s));
    }
  }
  return {};
}

Status PipelineGraph::Order(std::span<const StageDeclaration> stages) {
  std::vector<bool> ordered(stages.size(), false);
  while (order_.size() < stages.size()) {
    const std::size_t known = order_.size();
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto is_ordered = [&](StageId stage) { return ordered[stage.value()]; };
      if (ordered[s] || !std::ranges::all_of(before_[s], is_ordered)) continue;
      ordered[s] = true;
      order_.push_back(At(s));
    }
    if (order_.size() == known) {
      return InvalidArgument(
          fmt::format("its {}s wait for each other in a circle: {}; leave out one of these",
                      stages.front().noun, Circle(stages, before_, ordered)));
    }
  }
  return {};
}

StageMask PipelineGraph::WithAllBefore(StageMask stages) const {
  for (std::size_t i = order_.size(); i-- > 0;) {  // whoever waits comes first
    if (!IsIn(stages, order_[i])) continue;
    for (const StageId earlier : before(order_[i])) stages |= StageMask{1} << earlier.value();
  }
  return stages;
}

}  // namespace tactus
