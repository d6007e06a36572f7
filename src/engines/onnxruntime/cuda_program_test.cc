#include "engines/onnxruntime/cuda_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The library that a user of the processor has lacks the provider, or knows of it and lacks its
// file. What is missing must not show first as an error of a model.
TEST(OnnxCudaPrograms, ALibraryWithoutTheProviderIsOneLineThatSaysWhatIsMissing) {
  const auto programs = MakeOnnxCudaPrograms({});
  if (programs) GTEST_SKIP() << "this ONNX Runtime has the provider, and it starts";
  EXPECT_EQ(programs.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(programs.error().message,
              AllOf(AnyOf(HasSubstr("has no CUDAExecutionProvider"), HasSubstr("does not start")),
                    HasSubstr("./run setup gpu"), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace tactus
