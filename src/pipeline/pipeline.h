// A pipeline as whoever runs it reads it: the graph, what each stage asks of which model, and until
// when.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/serving_time.h"
#include "pipeline/graph.h"

namespace tactus {

struct PipelineStage {
  std::string name;
  ModelId model;
  int count = 1;        // requests of one frame, all at once
  Duration deadline{};  // of those requests, from the frame's arrival on
  Duration budget{};    // the time it has where all before it took all of theirs
};

struct Pipeline {
  std::string name;
  Duration slo{};  // from the frame's arrival to its last stage's last answer
  PipelineGraph graph;
  std::vector<PipelineStage> stages;  // by StageId
};

}  // namespace tactus
