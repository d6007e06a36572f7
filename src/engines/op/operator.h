// An operator as a chain sees it: named tensors in, named tensors out.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/tensor.h"
#include "engines/op/arguments.h"
#include "engines/op/tensor.h"

namespace tactus::op {

// A size of an output that is one of an input: ports and dimensions by number.
struct KeptSize {
  std::size_t input = 0;
  std::size_t of_input = 0;
  std::size_t output = 0;
  std::size_t of_output = 0;
};

// One with its arguments.
struct Operator {
  // Its ports. -1 is a size that may be any, also 0; the chain checks all others before `run`.
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // Sizes that the outputs leave open and take from inputs, so that a chain knows them.
  std::vector<KeptSize> kept;
  // Tensors in the order of the ports. Pure: same inputs, same outputs; several threads at once.
  std::function<Expected<std::vector<Tensor>>(std::span<const Tensor>)> run;
  // Inputs to measure it with: ordinary sizes, some objects.
  std::function<std::vector<Tensor>()> sample;
};

struct OperatorKind {
  std::string_view name;
  // Reads the arguments; mistakes stay in them.
  Operator (*make)(Arguments&);
};

// Every operator, in alphabetical order. Null: there is none of that name.
std::span<const OperatorKind> OperatorKinds();
const OperatorKind* FindOperator(std::string_view name);

}  // namespace tactus::op
