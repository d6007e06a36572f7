#include "engines/cuda/sm_palette.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/cuda/scripted_driver_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScriptedDriver;

TEST(SmShares, TheGrainIsThatOfTheComputeCapability) {
  EXPECT_EQ(GrainOf(75).group(), 2);
  EXPECT_EQ(GrainOf(86).group(), 4);  // at least 4, in multiples of 2
  EXPECT_EQ(GrainOf(90).group(), 8);
  EXPECT_EQ(GrainOf(120).group(), 8);
  EXPECT_EQ((SmGrain{5, 4}).group(), 8);
}

// 132 SMs are 16 groups of 8; lanes side by side must share none and leave none out.
TEST(SmShares, ALayoutBecomesPartsThatTouchAndDoNotOverlap) {
  const std::vector<double> halves = {0.5, 0.5};
  EXPECT_THAT(Divide(halves, 16).value(), ElementsAre(SmPart{0, 8}, SmPart{8, 8}));
  const std::vector<double> fifth = {0.2, 0.8};  // 3.2 and 12.8 groups
  EXPECT_THAT(Divide(fifth, 16).value(), ElementsAre(SmPart{0, 3}, SmPart{3, 13}));
  const std::vector<double> thirds = {0.333, 0.333, 0.333};
  EXPECT_THAT(Divide(thirds, 16).value(), ElementsAre(SmPart{0, 5}, SmPart{5, 6}, SmPart{11, 5}));
}

TEST(SmShares, EveryLayoutCoversItsSharesWithoutOverlap) {
  for (int groups = 2; groups <= 20; ++groups) {
    for (int percent = 10; percent <= 90; percent += 5) {
      const std::vector<double> shares = {percent / 100.0, 1 - percent / 100.0};
      const auto parts = Divide(shares, groups);
      if (!parts) continue;  // less than a group
      EXPECT_EQ((*parts)[0].count + (*parts)[1].count, groups) << groups << " " << percent;
      EXPECT_EQ((*parts)[1].first, (*parts)[0].count);
    }
  }
}

TEST(SmShares, RefusesWhatIsNoShareAndSaysWhichLane) {
  const std::vector<double> too_small = {0.98, 0.02};
  const auto small = Divide(too_small, 16);
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message, HasSubstr("lane 1: a lane with 2 % of the device gets none of"
                                               " its 16 groups of SMs; 6.2 % is the smallest"));
  const std::vector<double> too_much = {0.6, 0.6};
  EXPECT_THAT(Divide(too_much, 16).error().message, HasSubstr("lane 1"));
  const std::vector<double> none = {0.0};
  EXPECT_EQ(Divide(none, 16).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(PartOf(-0.1, 0.5, 16));
}

class SmPaletteTest : public ::testing::Test {
 protected:
  Expected<std::unique_ptr<SmPalette>> Make(int capability = 90) {
    const Driver& driver = *script_.driver();
    CUcontext primary = nullptr;
    EXPECT_TRUE(Ask(driver, driver.retain_context, &primary, 0));
    EXPECT_TRUE(Ask(driver, driver.set_current, primary));
    return SmPalette::Make(script_.driver(), 0, primary, capability);
  }
  ScriptedDriver script_;
};

TEST_F(SmPaletteTest, SplitsOnceAndMakesPartsOfTheGroups) {
  auto palette = Make().value();
  EXPECT_EQ(palette->groups(), 16);
  EXPECT_EQ(palette->group_sms(), 8);
  const CUstream left = palette->MakeStream({0, 6}, -3).value();
  const CUstream right = palette->MakeStream({6, 10}, 0).value();
  ASSERT_TRUE(palette->MakeStream({0, 6}, 0));
  EXPECT_THAT(script_.device.streams.at(left).groups, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(script_.device.streams.at(left).priority, -3);
  EXPECT_EQ(script_.device.streams.at(right).groups.size(), 10u);
  EXPECT_FALSE(script_.device.streams.at(right).groups.contains(5));
  // Parts of two splits would overlap; a part that is asked for again is there already.
  EXPECT_EQ(script_.calls("cuDevSmResourceSplitByCount"), 1);
  EXPECT_EQ(script_.calls("cuGreenCtxCreate"), 2);
  palette.reset();
  EXPECT_TRUE(script_.device.greens.empty());
}

TEST_F(SmPaletteTest, ADriverThatSaysItsGrainIsBelieved) {
  script_.device.tells_grain = true;
  EXPECT_EQ(Make().value()->groups(), 66);
}

// A part with other SMs than it was profiled with must not serve.
TEST_F(SmPaletteTest, ReadsTheSizeBackAndRefusesAnother) {
  auto palette = Make().value();
  script_.device.sms_short = 2;
  const auto stream = palette->MakeStream({0, 2}, 0);
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.error().message, HasSubstr("was to have 16 SMs has 14"));
  EXPECT_TRUE(script_.device.greens.empty());
}

TEST_F(SmPaletteTest, ADeviceThatIsTooSmallCannotBeSplit) {
  script_.device.sms = 12;
  const auto palette = Make();
  ASSERT_FALSE(palette);
  EXPECT_EQ(palette.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(palette.error().message, HasSubstr("it has 12 SMs, and the smallest part has 8"));
}

// The driver records an event in streams of its own context alone.
TEST_F(SmPaletteTest, AnEventIsOfItsPartAndTheThreadIsBackInThePrimaryContext) {
  const Driver& driver = *script_.driver();
  auto palette = Make().value();
  const CUcontext primary = script_.device.here();
  const CUevent event = palette->MakeEvent({0, 6}).value();
  EXPECT_EQ(script_.device.here(), primary);
  const CUstream part = palette->MakeStream({0, 6}, 0).value();
  const CUstream other = palette->MakeStream({6, 10}, 0).value();
  EXPECT_TRUE(Ask(driver, driver.record_event, event, part));
  EXPECT_FALSE(Ask(driver, driver.record_event, event, other));
  EXPECT_TRUE(Ask(driver, driver.stream_waits, other, event, 0u)) << "any stream may wait for it";
  for (const char* function : {"cuCtxFromGreenCtx", "cuCtxSetCurrent", "cuEventCreate"}) {
    script_.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    const auto failed = palette->MakeEvent({0, 6});
    ASSERT_FALSE(failed) << function;
    EXPECT_THAT(failed.error().message, HasSubstr(std::string(function) + ": CUDA_ERROR_INVALID"));
    EXPECT_EQ(script_.device.here(), primary) << function;
  }
  script_.FailCall("cuCtxSetCurrent", CUDA_ERROR_INVALID_VALUE, 1);
  EXPECT_FALSE(palette->MakeEvent({0, 6})) << "a thread that is not back would work elsewhere";
  EXPECT_EQ(script_.device.events.size(), 1u);
}

TEST_F(SmPaletteTest, PassesOnTheErrorOfEachOfItsCalls) {
  for (const char* function : {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount"}) {
    script_.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    const auto palette = Make();
    ASSERT_FALSE(palette) << function;
    EXPECT_THAT(palette.error().message, HasSubstr(std::string(function) + ": CUDA_ERROR_INVALID"));
    EXPECT_THAT(palette.error().message, HasSubstr("serve without shares"));
  }
  auto palette = Make().value();
  for (const char* function : {"cuDevResourceGenerateDesc", "cuGreenCtxCreate",
                               "cuGreenCtxGetDevResource", "cuGreenCtxStreamCreate"}) {
    script_.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    const auto stream = palette->MakeStream({0, 1}, 0);
    ASSERT_FALSE(stream) << function;
    EXPECT_THAT(stream.error().message, HasSubstr(std::string(function) + ": CUDA_ERROR_INVALID"));
  }
  EXPECT_FALSE(palette->MakeStream({15, 2}, 0));
}

}  // namespace
}  // namespace tactus
