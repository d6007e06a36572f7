// Without these a batch's shares would be of the wrong peak, or operands would be counted at a
// cache that they never reach.
#include "profiling/machine_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/cpu_affinity.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

const MachinePeaks kPeaks{.cores = 2,
                          .operations = 1e9,
                          .l1 = 1e8,
                          .l2 = 1e7,
                          .beyond = 1e6,
                          .l1_bytes = 1000,
                          .l2_bytes = 10'000};

TEST(MachinePeaks, OperandsAreReadFromTheSmallestCacheThatHoldsThem) {
  struct Case {
    const char* about;
    BatchWork work;
    Throughput l1_l2_dram_tensor_fma;
  };
  const Case cases[] = {
      {"all lies in L1", {{2000, 300, 400}}, {(700 + 1000) / 1e8, 0, 0, 0, 2000 / 1e9}},
      {"weights of two kernels push each other out of L1, what they hand on stays",
       {{0, 600, 100}, {0, 600, 100}},
       {1400 / 1e8, 1200 / 1e7, 0, 0, 0}},
      {"activations larger than L2",
       {{0, 100, 20'000}},
       {20'100 / 1e8, 20'100 / 1e7, 20'100 / 1e6, 0, 0}},
      {"weights larger than L2, activations of one kernel larger than L1",
       {{0, 9'900, 50}, {0, 50, 2'000}},
       {12'000 / 1e8, 12'000 / 1e7, 9'950 / 1e6, 0, 0}},
      {"nothing", {}, {0, 0, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    const Throughput got = SharesOf(c.work, 1, kPeaks);
    for (std::size_t r = 0; r < kResources; ++r) {
      EXPECT_DOUBLE_EQ(got[r], c.l1_l2_dram_tensor_fma[r]) << c.about << ": " << kResourceNames[r];
    }
  }
}

TEST(MachinePeaks, SharesAreOfTheTimeThatTheBatchTakesAndEndAtAll) {
  const BatchWork work{{5e8, 0, 0}};
  const auto fma = static_cast<std::size_t>(Resource::kFma);
  EXPECT_DOUBLE_EQ(SharesOf(work, 1, kPeaks)[fma], 0.5);
  EXPECT_DOUBLE_EQ(SharesOf(work, 2, kPeaks)[fma], 0.25);
  EXPECT_DOUBLE_EQ(SharesOf(work, 0.1, kPeaks)[fma], 1);
}

TEST(MachinePeaks, TheSourceNamesEngineCoresAndEachFigure) {
  const std::string source = SourceOf(kPeaks, "noting 1");
  for (const char* part : {"estimated", "noting 1", "2 cores", "fma 1e+09", "l1 1e+08", "l2 1e+07",
                           "dram 1e+06", "tensor 0", "transfer 0"}) {
    EXPECT_THAT(source, HasSubstr(part));
  }
}

TEST(MachinePeaks, OfTwoMeasurementsTheBestCountsAndWhereTheyDisagreeIsSaid) {
  MachinePeaks other = kPeaks;
  other.l2 = 0.8 * kPeaks.l2;
  other.beyond = kPeaks.beyond / 0.9;  // within the bound
  const MachinePeaks best = Best(other, kPeaks);
  EXPECT_EQ(best.l2, kPeaks.l2);
  EXPECT_EQ(best.beyond, other.beyond);
  EXPECT_EQ(best.operations, kPeaks.operations);
  EXPECT_EQ(best.l1_bytes, kPeaks.l1_bytes);
  for (const auto& lines : {Disagreements(other, kPeaks), Disagreements(kPeaks, other)}) {
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0], HasSubstr("peak rate of l2 was 20 % lower"));
    EXPECT_THAT(lines[0], HasSubstr("bound: 15 %"));
    EXPECT_THAT(lines[0], HasSubstr("profile again"));
  }
  EXPECT_TRUE(Disagreements(kPeaks, kPeaks).empty());
}

// How fast is the machine's business; that every figure is there is ours.
TEST(MachinePeaks, AreMeasuredOnTheCoresThatThisProcessMayUse) {
  const MachinePeaks peaks = MeasurePeaks({});
  EXPECT_EQ(peaks.cores, static_cast<int>(AllowedCores().size()));
  for (const double rate : {peaks.operations, peaks.l1, peaks.l2, peaks.beyond}) {
    EXPECT_GT(rate, 0);
  }
  EXPECT_GT(peaks.l1_bytes, 0u);
  EXPECT_GT(peaks.l2_bytes, peaks.l1_bytes);
}

}  // namespace
}  // namespace tactus
