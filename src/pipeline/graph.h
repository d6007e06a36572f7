// Who waits for whom: the stages of a pipeline, through which every request goes. Pure: no clock,
// no queue, nothing of who runs the stages.
//
//   detect -> cars    Make({{"detect"}, {"cars", {"detect"}}, {"faces", {"detect"}}})
//          -> faces
//
// A stage may start when all that it waits for is answered (a join); several may wait for one (a
// fan-out).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/ids.h"
#include "pipeline/declaration.h"

namespace tactus {

// In the order in which they were declared.
using StageId = Id<struct StageTag>;
// Some of a pipeline's stages: the bit of each that is among them.
using StageMask = std::uint64_t;
inline constexpr StageMask kAllStages = ~StageMask{0};
inline bool IsIn(StageMask stages, StageId stage) { return (stages >> stage.value() & 1) != 0; }

// What is said wherever a stage is named that is not among these, with those that are.
std::string NoSuchStage(std::span<const StageDeclaration> stages, std::string_view name);

class PipelineGraph {
 public:
  static constexpr std::size_t kMostStages = 64;  // as many as a StageMask has bits

  // kInvalidArgument with the stage and the remedy: no stage or too many, a name that is missing or
  // there twice, one in `after` that is unknown or there twice, stages that wait in a circle.
  static Expected<PipelineGraph> Make(std::span<const StageDeclaration> stages);

  std::size_t size() const { return before_.size(); }
  // Every stage behind all that it waits for; else as declared.
  std::span<const StageId> order() const { return order_; }
  // The stages that it waits for, and those that wait for it.
  std::span<const StageId> before(StageId stage) const { return before_[stage.value()]; }
  std::span<const StageId> next(StageId stage) const { return next_[stage.value()]; }
  // `stages` and all that they wait for.
  StageMask WithAllBefore(StageMask stages) const;

 private:
  Status Connect(std::span<const StageDeclaration> stages);
  Status Order(std::span<const StageDeclaration> stages);

  std::vector<std::vector<StageId>> before_;
  std::vector<std::vector<StageId>> next_;
  std::vector<StageId> order_;
};

}  // namespace tactus
