// What a policy has learnt from the batches that it saw: numbers with names, which can be kept in a
// file (workload/predictor_file.h) and given to another policy of the same kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus {

// With the moments that its optimiser (Adam) keeps: without them the first steps after a restore
// would be as large as those of a model that knows nothing.
struct LearnedParameter {
  std::string name;
  double value = 0;
  double mean = 0;    // of its gradients
  double square = 0;  // of their squares

  bool operator==(const LearnedParameter&) const = default;
};

struct LearnedState {
  std::int64_t steps = 0;  // that the optimiser has taken
  std::vector<LearnedParameter> parameters;

  bool operator==(const LearnedState&) const = default;
};

}  // namespace tactus
