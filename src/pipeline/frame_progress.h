// One frame on its way through a pipeline: which stages may start, and when it is answered. The
// driver sends the requests and says what was answered; it need not know the graph.
#pragma once

#include <vector>

#include "pipeline/pipeline.h"

namespace tactus {

class FrameProgress {
 public:
  // `pipeline` outlives the frame. Appends to `ready` the stages that wait for nobody. May be begun
  // again for another frame, which then allocates nothing.
  void Begin(const Pipeline& pipeline, std::vector<StageId>& ready);
  // One of the stage's requests is answered. Appends to `ready` the stages that may start now. True
  // when that was the frame's last answer.
  bool Answer(StageId stage, std::vector<StageId>& ready);

 private:
  const Pipeline* pipeline_ = nullptr;
  std::vector<int> unanswered_;  // by stage: requests
  std::vector<int> waits_for_;   // by stage: stages
  std::size_t stages_left_ = 0;
};

}  // namespace tactus
