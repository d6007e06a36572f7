#include "engines/onnxruntime/cuda_program.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/onnxruntime/library.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The library that a user of the processor has lacks the provider; what is missing must not show
// first as an error of a model.
TEST(OnnxCudaPrograms, ALibraryWithoutTheProviderIsOneLineThatSaysWhatItHas) {
  const auto version = OpenOnnxRuntime({});
  ASSERT_TRUE(version) << version.error().message;
  const auto providers = Ort::GetAvailableProviders();
  if (std::ranges::find(providers, "CUDAExecutionProvider") != providers.end()) {
    GTEST_SKIP() << "this ONNX Runtime has the provider";
  }
  const auto programs = MakeOnnxCudaPrograms({});
  ASSERT_FALSE(programs);
  EXPECT_EQ(programs.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(programs.error().message,
              AllOf(HasSubstr("has no CUDAExecutionProvider"), HasSubstr("CPUExecutionProvider"),
                    HasSubstr("./run setup gpu"), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace tactus
