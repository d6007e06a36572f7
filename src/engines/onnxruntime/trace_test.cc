// Without these a share of a device would be made of the wrong operations and bytes, or a damaged
// trace would pass for an idle model.
#include "engines/onnxruntime/trace.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

const std::string kRunEnds = R"({"cat":"Session","name":"model_run","dur":9,"args":{}})";

std::string Kernel(const std::string& op, const std::string& in, const std::string& out,
                   const std::string& weights = "8") {
  return fmt::format(
      R"({{"cat":"Node","name":"/n_kernel_time","args":{{"op_name":"{}","input_type_shape":[{}],)"
      R"("output_type_shape":[{}],"parameter_size":"{}","activation_size":"100",)"
      R"("output_size":"20"}}}},)",
      op, in, out, weights);
}

TEST(Trace, CountsTheOperationsThatTheShapesImply) {
  struct Case {
    const char* op;
    const char* in;
    const char* out;
    double operations;
  };
  const Case cases[] = {
      // 2 x 8 x 5 x 5 results, each the sum over 3 channels and 3 x 3 places
      {"Conv", R"({"float":[2,3,7,7]},{"float":[8,3,3,3]},{"float":[8]})", R"({"float":[2,8,5,5]})",
       2. * 400 * 27},
      // one channel in each group
      {"FusedConv", R"({"float":[1,4,6,6]},{"float":[4,1,3,3]})", R"({"float":[1,4,6,6]})",
       2. * 144 * 9},
      // each of 2 x 3 x 3 inputs goes into 4 channels at 2 x 2 places
      {"ConvTranspose", R"({"float":[1,2,3,3]},{"float":[2,4,2,2]})", R"({"float":[1,4,6,6]})",
       2. * 18 * 16},
      {"FusedGemm", R"({"float":[5,7]},{"float":[9,7]},{"float":[9]})", R"({"float":[5,9]})",
       2. * 5 * 9 * 7},
      {"MatMul", R"({"float":[2,4,6]},{"float":[6,3]})", R"({"float":[2,4,3]})", 2. * 24 * 6},
      {"LSTM", R"({"float":[10,2,3]},{"float":[1,16,3]},{"float":[1,16,4]})",
       R"({"float":[10,1,2,4]})", 2. * 10 * 2 * (48 + 64)},
      {"Relu", R"({"float":[2,3]})", R"({"float":[2,3]})", 6},
      {"Shape", R"({"float":[2,3]})", "", 0},
  };
  for (const Case& c : cases) {
    const auto works = ParseTrace("[" + Kernel(c.op, c.in, c.out) + kRunEnds + "]");
    ASSERT_TRUE(works) << c.op << ": " << works.error().message;
    ASSERT_EQ(works->size(), 1u) << c.op;
    ASSERT_EQ((*works)[0].size(), 1u) << c.op;
    EXPECT_DOUBLE_EQ((*works)[0][0].operations, c.operations) << c.op;
    EXPECT_EQ((*works)[0][0].weight_bytes, 8) << c.op;
    EXPECT_EQ((*works)[0][0].activation_bytes, 120) << c.op;
  }
}

TEST(Trace, KeepsRunsApartAndPassesOverWhatIsNoKernel) {
  const std::string relu = Kernel("Relu", R"({"float":[2,3]})", R"({"float":[2,3]})");
  const std::string other = R"({"cat":"Session","name":"session_initialization","args":{}},)";
  const auto works = ParseTrace("[" + other + relu + relu + kRunEnds + "," + relu + kRunEnds + "]");
  ASSERT_TRUE(works) << works.error().message;
  ASSERT_EQ(works->size(), 2u);
  EXPECT_EQ((*works)[0].size(), 2u);
  EXPECT_EQ((*works)[1].size(), 1u);
}

TEST(Trace, WhatIsDamagedIsAnErrorThatSaysWhere) {
  const std::string shape = R"({"float":[2,3]})";
  const std::string relu = Kernel("Relu", shape, shape);
  struct Case {
    std::string trace;
    const char* problem;
  };
  const Case cases[] = {
      {"", "not a JSON list"},
      {"{}", "not a JSON list"},
      {"[" + relu + kRunEnds, "not a JSON list"},  // cut off
      {"[1]", "not an event"},
      {R"([{"cat":7}])", "damaged"},
      {"[" + relu.substr(0, relu.size() - 1) + "]", "ends within a run"},
      {R"([{"cat":"Node","name":"a_kernel_time"}])", "kernel 'a_kernel_time'"},
      {"[" + Kernel("", shape, shape) + kRunEnds + "]", "does not name its operators"},
      {"[" + Kernel("Relu", R"({"float":[2,-3]})", shape) + kRunEnds + "]", "and shapes"},
      {"[" + Kernel("Relu", shape, shape, "lots") + kRunEnds + "]", "how many bytes"},
      {"[" + Kernel("Relu", shape, shape, "1e300") + kRunEnds + "]", "how many bytes"},
      {"[" + Kernel("Conv", shape, shape) + kRunEnds + "]", "do not fit"},
      {"[" + Kernel("Gemm", shape + "," + shape, R"({"float":[0,3]})") + kRunEnds + "]",
       "do not fit"},
  };
  for (const Case& c : cases) {
    const auto works = ParseTrace(c.trace);
    ASSERT_FALSE(works) << c.trace;
    EXPECT_EQ(works.error().code, ErrorCode::kInvalidArgument) << c.trace;
    EXPECT_THAT(works.error().message, HasSubstr(c.problem)) << c.trace;
  }
}

TEST(Trace, AFileIsTakenAndAMissingOneIsAnError) {
  const TemporaryFolder folder;
  const auto path = folder / "trace.json";
  std::ofstream(path) << "[" << kRunEnds << "]";
  const auto works = TakeTrace(path);
  ASSERT_TRUE(works) << works.error().message;
  EXPECT_EQ(works->size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto again = TakeTrace(path);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr(path.string()));
}

}  // namespace
}  // namespace tactus
