// What a graph's file says of its operators.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "core/model_spec.h"

namespace tactus {

// Whether an exit's file names an operator whose answer jumps; false for files that cannot be read,
// and for models without any.
bool MayDecide(const ModelSpec& spec);

// Whether one names an operator that makes as much of something, or does it as often, as a number
// of an input may say.
bool NamesSizing(const ModelSpec& spec);

// As MayDecide, of the operators of an ONNX file of that size, which is read without its weights;
// false from where it is none.
bool NamesDeciding(std::istream& onnx, std::uint64_t size);

}  // namespace tactus
