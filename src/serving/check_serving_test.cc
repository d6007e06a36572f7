#include "serving/check_serving.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ServeOptions ServingFrom(const std::string& repository) {
  ServeOptions o;
  o.models = {repository};
  return o;
}

// Otherwise a mistake in a repository would show only once a server starts with it.
TEST(CheckServingTest, WhatWouldNotServeIsRefusedAndWhatIsMissingDoubted) {
  const TemporaryFolder folder;
  const auto empty = CheckServing(ServingFrom(folder.path().string()));
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_THAT(empty->doubts, ElementsAre(HasSubstr("has no model; each has a folder")));
  EXPECT_THAT(empty->refused, IsEmpty());

  std::filesystem::create_directories(folder / "broken" / "1");
  std::ofstream(folder / "broken" / "config.pbtxt") << "max_batch_size: no\n";
  const auto broken = CheckServing(ServingFrom(folder.path().string()));
  ASSERT_TRUE(broken) << broken.error().message;
  EXPECT_THAT(broken->refused, ElementsAre(HasSubstr("broken/config.pbtxt:1")));
}

// Who forgot an SLO must hear which one counts instead.
TEST(CheckServingTest, ModelsWithoutAnSloAreNamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "echo" / "1");
  std::ofstream(folder / "echo" / "config.pbtxt") << R"(platform: "identity"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "x" data_type: TYPE_FP32 dims: 4 })";
  ServeOptions o = ServingFrom(folder.path().string());
  o.default_slo_ms = 70;
  const auto found = CheckServing(o);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->notes,
              Contains(HasSubstr("default of 70 ms counts (--default-slo-ms): echo")));
}

// A repository that serves is not doubted; options that do not go together are an error.
TEST(CheckServingTest, AnExampleServes) {
  ServeOptions o = ServingFrom(SourcePath("examples/emulated-cluster/models"));
  const auto fine = CheckServing(o);
  ASSERT_TRUE(fine) << fine.error().message;
  EXPECT_THAT(fine->refused, IsEmpty());
  EXPECT_THAT(fine->notes, Not(Contains(HasSubstr("without slo_ms"))));
  o.plan = "plan.json";
  const auto planned = CheckServing(o);
  ASSERT_FALSE(planned);
  EXPECT_THAT(planned.error().message, HasSubstr("requires --policy planned"));
}

}  // namespace
}  // namespace tactus
