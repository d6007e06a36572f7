// A served model as policies see it.
#pragma once

#include <string>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

struct ModelExit {
  std::string name;     // "1", "2", ... or what the configuration calls it
  double accuracy = 0;  // fraction in [0, 1], measured on the model's test set; 0 when unknown
};

struct Model {
  std::string name;
  Duration slo{};                // from arrival to answer
  int max_batch = 1;             // requests in one batch, at most
  int priority = 1;              // 1 is the highest
  std::vector<ModelExit> exits;  // shallowest first; one entry for a model without early exits
  bool loaded = true;            // false: the slot is free, its queue is empty and stays so

  int exit_count() const { return static_cast<int>(exits.size()); }
};

}  // namespace tactus
