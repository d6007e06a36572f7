#include "engines/onnxruntime/run_failure.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Otherwise the cause comes behind 300 characters of the library's own source, in logs and answers.
TEST(RunFailure, IsTheOperatorAndTheCause) {
  struct Case {
    const char* said;
    const char* short_of;
  };
  for (const Case& c : {
           Case{"Non-zero status code returned while running Reshape node. Name:'/head/Reshape' "
                "Status Message: /src/core/providers/cpu/tensor/reshape_helper.h:49 "
                "onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, "
                "onnxruntime::TensorShapeVector&, bool) input_shape_size == size was false. The "
                "input tensor cannot be reshaped to the requested shape. Input shape:{2,3}, "
                "requested shape:{4}\n",
                "Reshape '/head/Reshape': The input tensor cannot be reshaped to the requested "
                "shape. Input shape:{2,3}, requested shape:{4}"},
           Case{"Non-zero status code returned while running Gather node. Name:'' Status Message: "
                "indices element out of data bounds, idx=9 must be within the inclusive range "
                "[-4,3]",
                "Gather '': indices element out of data bounds, idx=9 must be within the "
                "inclusive range [-4,3]"},
           Case{"Non-zero status code returned while running If node. Name:'if' Status Message: "
                "a.cc:7 void ns::{anonymous}::Run(T (*)(int)) const [with T = float[2]]::<lambda("
                "int)> n > 0 was false. \n",
                "If 'if': n > 0 was false."},
           Case{"Got invalid dimensions for input: x\n index: 1 Got: 5 Expected: 4",
                "Got invalid dimensions for input: x  index: 1 Got: 5 Expected: 4"},
           Case{"a.cc:12 bool f(int", "a.cc:12 bool f(int"},
           Case{"Load model from /models/m/1/model.onnx "
                "failed:/src/onnxruntime/core/graph/model.cc:181 "
                "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, "
                "const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported "
                "IR version: 13\n",
                "Unsupported model IR version: 99, max supported IR version: 13"},
           Case{"Load model from /m.onnx failed:Node (c) has input size 0 not in range [min=1]",
                "Node (c) has input size 0 not in range [min=1]"},
           Case{"", ""},
       }) {
    EXPECT_EQ(RunFailure(c.said), c.short_of);
  }
}

// Or what other runs have left idle would not be given back.
TEST(RunFailure, WantOfMemoryIsKnown) {
  EXPECT_TRUE(
      LacksMemory("Status Message: /src/core/framework/bfc_arena.cc:376 void* "
                  "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to "
                  "allocate memory for requested buffer of size 2400000000\n"));
  EXPECT_TRUE(LacksMemory("Status Message: std::bad_alloc"));
  EXPECT_FALSE(LacksMemory("Status Message: indices element out of data bounds, idx=9"));
}

}  // namespace
}  // namespace tactus
