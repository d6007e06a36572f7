// `tactus profile` shows this: who reads that a batch takes 8 ms must see how much of it is copies.
#include "profiling/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProfileFile TwoBatches() {
  ProfiledExit exit{.name = "1"};
  exit.cells = {{.repetitions = 3, .mean_ms = 2, .p95_ms = 2.5, .p99_ms = 3},
                {.repetitions = 3, .mean_ms = 3, .p95_ms = 3.5, .p99_ms = 4}};
  ProfileFile profile;
  profile.models = {{.name = "net", .max_batch = 2, .exits = {exit}}};
  return profile;
}

TEST(ProfileText, HasARowForTheSmallestAndTheLargestBatch) {
  const std::string table = ToTable(TwoBatches());
  EXPECT_THAT(table, HasSubstr("net          1           1        3     2.000"));
  EXPECT_THAT(table, HasSubstr("net          1           2        3     3.000"));
  EXPECT_THAT(table, Not(HasSubstr("kernels ms")));
}

TEST(ProfileText, ShowsCopiesApartFromKernelsWhereTheyAreKnown) {
  ProfileFile profile = TwoBatches();
  profile.models[0].exits[0].cells[1].device = ProfiledDeviceTimes{0.25, 2.5, 0.125};
  const std::string table = ToTable(profile);
  EXPECT_THAT(table, HasSubstr("   up ms kernels ms  down ms"));
  EXPECT_THAT(table, HasSubstr("   0.250      2.500    0.125"));
  EXPECT_THAT(table, HasSubstr("       -          -        -"));
}

}  // namespace
}  // namespace tactus
