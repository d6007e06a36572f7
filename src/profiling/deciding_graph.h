// What the operators of a graph can do with its rows, by their names.
#pragma once

#include "core/model_spec.h"

namespace tactus {

struct GraphOperators {
  // An answer may jump: a label, a rounding, a threshold. False where no file can be read.
  bool decide = false;
  // Rows may be told apart by numbers that they have in common. True where no file can be read, and
  // where an input is of no floats.
  bool compare = true;
};

// Of all exits, from the first megabytes of their files, where ONNX has its nodes.
GraphOperators OperatorsOf(const ModelSpec& spec);

}  // namespace tactus
