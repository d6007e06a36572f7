// A pipeline as whoever runs it reads it: the graph, how often each stage runs, what it asks of
// which model, and until when.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/serving_time.h"
#include "pipeline/graph.h"
#include "pipeline/levels.h"

namespace tactus {

struct PipelineStage {
  std::string name;
  ModelId model;
  Duration deadline{};  // of its runs, from the request's arrival on
  Duration budget{};    // the time it has where all before it took all of theirs
  Duration need{};      // by which time that is left is divided between it and those behind it
  Duration least{};     // that it takes at best
};

struct Pipeline {
  std::string name;
  Duration slo{};  // from the request's arrival to its last stage's last answer
  PipelineGraph graph;
  PipelineLevels levels;
  std::vector<PipelineStage> stages;  // by StageId
  DeadlineRule deadlines = DeadlineRule::kLatency;
  AnswerRule answer = AnswerRule::kAll;
};

}  // namespace tactus
