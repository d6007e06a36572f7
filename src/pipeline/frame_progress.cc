#include "pipeline/frame_progress.h"

#include "base/check.h"

namespace tactus {

void FrameProgress::Begin(const Pipeline& pipeline, std::vector<StageId>& ready) {
  pipeline_ = &pipeline;
  stages_left_ = pipeline.stages.size();
  unanswered_.clear();
  waits_for_.clear();
  for (const PipelineStage& stage : pipeline.stages) {
    const StageId id{static_cast<StageId::rep>(unanswered_.size())};
    unanswered_.push_back(stage.count);
    waits_for_.push_back(static_cast<int>(pipeline.graph.before(id).size()));
    if (waits_for_.back() == 0) ready.push_back(id);
  }
}

bool FrameProgress::Answer(StageId stage, std::vector<StageId>& ready) {
  CHECK(waits_for_[stage.value()] == 0 && unanswered_[stage.value()] > 0,
        "an answer to a request that this stage has not sent");
  if (--unanswered_[stage.value()] > 0) return false;
  for (const StageId other : pipeline_->graph.next(stage)) {
    if (--waits_for_[other.value()] == 0) ready.push_back(other);
  }
  return --stages_left_ == 0;
}

}  // namespace tactus
