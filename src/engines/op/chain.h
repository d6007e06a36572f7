// A model of operators: which run in what order, and which tensor each reads and writes.
//
//   parameters { key: "op"               value { string_value: "decode_jpeg, resize, normalize" } }
//   parameters { key: "resize.height"    value { string_value: "416" } }      an argument
//   parameters { key: "normalize.tensor" value { string_value: "x" } }        a port's tensor
//
// An operator's first port reads what the operator before it wrote first; the first operator's, and
// every other port, reads the tensor of the port's own name. Outputs are named after their ports. A
// parameter STEP.PORT names another tensor. An operator that stands twice in a chain is given a
// name: "wide=text_crop". docs/reference/operators.md lists operators, ports and arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "engines/op/operator.h"
#include "engines/op/tensor.h"

namespace tactus::op {

class Chain {
 public:
  // Completes spec.inputs and spec.outputs where they are empty: with what no operator writes, and
  // with what no other reads. Errors name the model, the operator and the argument or tensor.
  static Expected<Chain> Make(ModelSpec& spec);

  // `inputs` in the order of spec.inputs; results in that of spec.outputs. kInvalidArgument for
  // inputs that an operator cannot work on, which it names; kResourceExhausted without memory.
  // `cut_jpegs`: as of Tensor, of all that the operators wrote.
  Expected<std::vector<Tensor>> Run(std::span<const Tensor> inputs,
                                    std::uint32_t* cut_jpegs = nullptr) const;

  // Inputs to measure the chain with.
  std::vector<Tensor> Sample() const;

 private:
  struct Step {
    std::string name;
    Operator op;
    std::vector<std::size_t> reads;   // slots, by port
    std::vector<std::size_t> writes;  // slots, by port
  };
  class Builder;

  Expected<std::vector<Tensor>> RunSteps(std::span<const Tensor> inputs,
                                         std::uint32_t* cut_jpegs) const;

  std::vector<Step> steps_;
  std::size_t slots_ = 0;             // the model's inputs come first
  std::vector<TensorSpec> outputs_;   // as declared
  std::vector<std::size_t> results_;  // slots, by output
  std::size_t inputs_ = 0;
};

}  // namespace tactus::op
