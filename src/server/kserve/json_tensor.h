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

// Reads a tensor of this shape out of arrays that are nested as it says, or out of one flat array
// in row-major order. Any other nesting is an error, so that a transposed or ragged array is not
// taken for what it is not. `elements` is the shape's product; `input` is for the errors' text.
// `any_nesting`: as Triton, which counts the values alone, and says so in its words. `malformed`
// becomes true where the text is no JSON, and what follows `data` cannot be read.
Expected<TensorBytes> ReadJsonTensor(simdjson::ondemand::array data, DataType type,
                                     const Shape& shape, std::int64_t elements,
                                     std::string_view input, bool any_nesting, bool& malformed);

// What Triton says of data with another number of values than its shape has.
inline constexpr const char* kTritonWrongData =
    "Unable to parse 'data': Shape does not match true shape of 'data' field";

}  // namespace tactus
