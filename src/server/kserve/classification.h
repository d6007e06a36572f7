// Triton's classification extension: a client asks for the k highest values of an output's rows
// instead of the tensor, and gets "value:index" or "value:index:label" for each.
#pragma once

#include <cstdint>
#include <span>

#include "base/expected.h"
#include "service/infer_call.h"

namespace tactus {

// Elements of a row of which classes may be asked for.
inline constexpr std::int64_t kMostClasses = 1'000'000;

// InvalidArgument where the call asks for classes of an output whose type has none.
Status CheckClasses(const InferCall& call);

// Replaces the outputs that classes are asked of by BYTES tensors of shape [rows, k] ([k] where the
// first dimension is no batch and never was: ModelSpec::rows_in_front), highest first; of equal
// values, and of NaNs, which are the lowest, the lower index first. `classes`:
// InferCall::classes. InvalidArgument where a row has more than
// kMostClasses elements.
Status Classify(std::span<const std::uint32_t> classes, InferReply& reply);

}  // namespace tactus
