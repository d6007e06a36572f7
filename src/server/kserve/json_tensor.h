// A tensor's `data` array as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "base/expected.h"
#include "core/tensor.h"

namespace tactus {

// Bytes that are written once and never cleared first, as a vector's would be.
struct TensorBytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;
};

// Reads exactly `elements` values out of nested or flat arrays. `input` is for the errors' text.
Expected<TensorBytes> ReadJsonTensor(simdjson::ondemand::array data, DataType type,
                                     std::int64_t elements, std::string_view input);

}  // namespace tactus
