#include "engines/cuda/device_counters.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/fake_program_test.h"
#include "engines/cuda/power_limit.h"
#include "engines/cuda/scripted_nvml_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using testing::FakeCudaOptions;
using ::testing::HasSubstr;
using testing::ScriptedDriver;
using testing::ScriptedNvml;

constexpr auto kNone = std::nullopt;

std::optional<double> Of(const DeviceCounters::Reading& reading, Resource resource) {
  return reading[static_cast<std::size_t>(resource)];
}

class DeviceCountersTest : public ::testing::Test {
 protected:
  Expected<std::unique_ptr<DeviceCounters>> Open() {
    return OpenDeviceCounters(script_.nvml(), script_.uuid);
  }
  ScriptedNvml script_;
};

TEST_F(DeviceCountersTest, AreThoseOfGpmBetweenTwoLooks) {
  script_.percents = {{NVML_GPM_METRIC_FP32_UTIL, 12.5},
                      {NVML_GPM_METRIC_FP16_UTIL, 25},
                      {NVML_GPM_METRIC_ANY_TENSOR_UTIL, 50},
                      {NVML_GPM_METRIC_DRAM_BW_UTIL, 130}};
  auto counters = Open().value();
  EXPECT_THAT(counters->source(), HasSubstr("GPM"));
  EXPECT_GT(counters->least(), Millis(100)) << "NVML renews its counters every 100 ms";
  const int looks = script_.looks;
  ASSERT_TRUE(counters->Begin());
  const auto reading = counters->Read().value();
  EXPECT_EQ(script_.looks, looks + 2);
  EXPECT_EQ(Of(reading, Resource::kFma), 0.25) << "the larger of the two";
  EXPECT_EQ(Of(reading, Resource::kTensor), 0.5);
  EXPECT_EQ(Of(reading, Resource::kDram), 1) << "no share is more than all";
  EXPECT_EQ(Of(reading, Resource::kL2), kNone);
  counters.reset();
  EXPECT_TRUE(script_.samples.empty());
}

TEST_F(DeviceCountersTest, AMetricThatIsNotThereOrNoNumberIsNone) {
  script_.percents = {{NVML_GPM_METRIC_FP32_UTIL, std::numeric_limits<double>::quiet_NaN()},
                      {NVML_GPM_METRIC_DRAM_BW_UTIL, 10}};
  auto counters = Open().value();
  const auto reading = counters->Read().value();
  EXPECT_EQ(Of(reading, Resource::kFma), kNone);
  EXPECT_EQ(Of(reading, Resource::kTensor), kNone);
  EXPECT_EQ(Of(reading, Resource::kDram), 0.1);
}

TEST_F(DeviceCountersTest, ADeviceOrADriverWithoutGpmTellsWhetherItsMemoryWasInUse) {
  for (const bool old : {false, true}) {
    if (old) script_.WithoutCounters();
    script_.has_gpm = false;
    auto counters = Open().value();
    EXPECT_THAT(counters->source(), AllOf(HasSubstr("utilization rates"),
                                          HasSubstr(old ? "GPM: this driver has no such functions"
                                                        : "GPM: the device has no GPM counters")));
    EXPECT_GT(counters->least(), Seconds(1)) << "the rates may be of the last second";
    ASSERT_TRUE(counters->Begin());
    const auto reading = counters->Read().value();
    EXPECT_EQ(Of(reading, Resource::kDram), 0.3);
    EXPECT_EQ(Of(reading, Resource::kFma), kNone);
  }
}

// Each call that opening makes: the counters are the rates then, which say why, and no sample
// leaks.
TEST_F(DeviceCountersTest, AnErrorOfEachCallOfGpmFallsBackToTheRatesAndIsNamed) {
  for (const char* function :
       {"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet"}) {
    script_.fails = {{function, NVML_ERROR_NO_PERMISSION}};
    auto counters = Open().value();
    EXPECT_THAT(counters->source(),
                AllOf(HasSubstr(std::string(function) + ": Some Error"), HasSubstr("run as root")));
    EXPECT_TRUE(script_.samples.empty()) << function;
  }
}

TEST_F(DeviceCountersTest, AnErrorOfEachLaterCallIsTheReaders) {
  auto counters = Open().value();
  for (const char* function : {"nvmlGpmSampleGet", "nvmlGpmMetricsGet"}) {
    script_.fails = {{function, NVML_ERROR_GPU_IS_LOST}};
    const auto reading = counters->Read();
    ASSERT_FALSE(reading) << function;
    EXPECT_EQ(reading.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(reading.error().message, HasSubstr(function));
  }
  script_.fails = {{"nvmlGpmSampleGet", NVML_ERROR_UNKNOWN}};
  EXPECT_FALSE(counters->Begin());
  script_.fails.clear();
  EXPECT_TRUE(counters->Read());
}

TEST_F(DeviceCountersTest, ADeviceThatTellsNothingIsAnErrorThatSaysBoth) {
  script_.has_gpm = false;
  script_.fails = {{"nvmlDeviceGetUtilizationRates", NVML_ERROR_NOT_SUPPORTED}};
  const auto counters = Open();
  ASSERT_FALSE(counters);
  EXPECT_EQ(counters.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(counters.error().message,
              AllOf(HasSubstr("GPM: the device has no GPM counters"),
                    HasSubstr("nvmlDeviceGetUtilizationRates: Not Supported")));
}

TEST_F(DeviceCountersTest, ADeviceThatNvmlDoesNotKnowIsAnError) {
  const auto counters = OpenDeviceCounters(script_.nvml(), "GPU-other");
  ASSERT_FALSE(counters);
  EXPECT_THAT(counters.error().message, HasSubstr("nvmlDeviceGetHandleByUUID"));
}

TEST(Nvml, AMissingLibraryAndOneThatIsAnotherAreOneLine) {
  const auto missing = OpenNvml("libnvidia-ml-that-is-not-there.so.1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("libnvidia-ml-that-is-not-there.so.1"));
  const auto other = OpenNvml("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("lacks nvmlInit_v2"), HasSubstr("nvmlDeviceGetUtilizationRates")));
}

TEST(PowerLimitWatts, IsThatOfTheDeviceAndZeroWhereAnyCallFails) {
  ScriptedNvml script;
  EXPECT_EQ(PowerLimitWatts(script.uuid, *script.nvml()), 700);
  EXPECT_EQ(PowerLimitWatts("GPU-other", *script.nvml()), 0);
  script.fails = {{"nvmlDeviceGetEnforcedPowerLimit", NVML_ERROR_NOT_SUPPORTED}};
  EXPECT_EQ(PowerLimitWatts(script.uuid, *script.nvml()), 0);
}

TEST(CudaEngine, OpensTheCountersOfItsDevice) {
  ScriptedDriver driver;
  ScriptedNvml nvml;
  CudaOptions options = FakeCudaOptions(driver);
  options.nvml = nvml.nvml();
  auto engine = MakeCudaEngine(driver.driver(), std::move(options)).value();
  auto* const meter = dynamic_cast<DeviceMeter*>(engine.get());
  ASSERT_NE(meter, nullptr);
  EXPECT_TRUE(meter->OpenCounters()) << "the UUIDs of both are one device's";
  nvml.uuid = "GPU-other";
  EXPECT_FALSE(meter->OpenCounters());
}

}  // namespace
}  // namespace tactus
