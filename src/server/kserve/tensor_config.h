// The inputs and outputs of a configuration: their types, what clients send and receive (dims), and
// what the model itself has (reshape).
#pragma once

#include <vector>

#include "base/expected.h"
#include "core/tensor.h"
#include "server/kserve/declared_config.h"

namespace tactus {

// With the batch dimension in front where max_batch_size is above 0.
Expected<std::vector<TensorSpec>> ReadInputs(const DeclaredConfig& config);
Expected<std::vector<TensorSpec>> ReadOutputs(const DeclaredConfig& config);

}  // namespace tactus
