// `tactus profile` shows this: who reads that a batch takes 8 ms must see how much of it is copies.
#include "profiling/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ProfileFile TwoBatches() {
  ProfiledExit exit{.name = "1"};
  exit.cells = {{.repetitions = 3, .mean_ms = 2, .p95_ms = 2.5, .p99_ms = 3, .cv = 0.25},
                {.repetitions = 3, .mean_ms = 3, .p95_ms = 3.5, .p99_ms = 4}};
  exit.alpha_ms = 1;
  exit.beta_ms = 1.5;
  exit.fit_error = 0.25;
  ProfileFile profile;
  profile.models = {{.name = "net", .max_batch = 2, .exits = {exit}}};
  return profile;
}

TEST(ProfileText, HasARowForTheSmallestAndTheLargestBatch) {
  const std::string table = ToTable(TwoBatches());
  EXPECT_THAT(table, ContainsRegex("net +1 +1 +3 +2.000 +2.500 +3.000 +25\n"));
  EXPECT_THAT(table, ContainsRegex("net +1 +2 +3 +3.000 +3.500 +4.000 +0 +1.000 +1.500 +25\n"));
  EXPECT_THAT(table, HasSubstr("A batch of n rows takes"));
  EXPECT_THAT(table, Not(HasSubstr("kernels")));
}

TEST(ProfileText, FitsNoLineToASingleBatch) {
  ProfileFile profile = TwoBatches();
  profile.models[0].exits[0].cells.pop_back();
  EXPECT_THAT(ToTable(profile), Not(HasSubstr("A batch of n rows")));
}

TEST(ProfileText, ShowsCopiesApartFromKernelsWhereTheyAreKnown) {
  ProfileFile profile = TwoBatches();
  profile.models[0].exits[0].cells[1].device = ProfiledDeviceTimes{0.25, 2.5, 0.125};
  const std::string table = ToTable(profile);
  EXPECT_THAT(table, HasSubstr("upload  kernels  download"));
  EXPECT_THAT(table, ContainsRegex(" 0.250 +2.500 +0.125 "));
  EXPECT_THAT(table, ContainsRegex(" - +- +-\n"));
}

}  // namespace
}  // namespace tactus
