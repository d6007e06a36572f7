// Steps of an ensemble that are one call (pipeline/step_groups.h): whoever sends steps elsewhere
// sends all of them to one node, or has them run one by one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "service/infer_call.h"

namespace tactus {

struct StepGroup {
  struct Step {
    std::string name;
    std::string model;
  };
  std::string pipeline;
  std::vector<Step> steps;
  // The steps as an ensemble of their own, for a node that has never heard of the pipeline.
  std::string described;
  // Rows that are late are left out of its answer, so that its time must be over there earlier than
  // here.
  bool leaves_out = false;

  enum class Where { kHere, kByRoutes };
  // Runs the call, which is answered once, as a pipeline on this node: each step here, or where its
  // own route says. What is returned cancels it, at any time.
  std::function<std::function<void()>(InferCall&&, Where)> run;
};

}  // namespace tactus
