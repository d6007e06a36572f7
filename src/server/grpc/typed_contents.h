// Typed tensor contents as the bytes that the rest of the server works on.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace inference {
class ModelInferRequest_InferInputTensor;
}

namespace tactus {

// Bytes made by a conversion; addresses stay as more are added.
using ConvertedBytes = std::deque<std::string>;

// The elements of `input`, dense and little endian. Types as wide as their field are viewed in
// place; the others (INT8 travels as int32, BYTES need lengths) are converted into `converted`.
// InvalidArgument if a field of another type is filled, or a value is out of range.
Expected<std::span<const std::byte>> TypedBytes(
    const inference::ModelInferRequest_InferInputTensor& input, ConvertedBytes& converted);

}  // namespace tactus
