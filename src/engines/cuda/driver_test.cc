#include "engines/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/cuda/device_facts.h"
#include "engines/cuda/scripted_driver_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScriptedDriver;

const std::function<int(const std::string&)> kNoLimit = [](const std::string&) { return 0; };

// Somebody without a driver must read in one line what to install.
TEST(OpenDriver, AMissingLibraryIsOneLineThatNamesItAndTheRemedy) {
  const auto driver = OpenDriver("libcuda-that-is-not-there.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(driver.error().message, AllOf(HasSubstr("libcuda-that-is-not-there.so.1"),
                                            HasSubstr("install NVIDIA's"), Not(HasSubstr("\n"))));
}

TEST(OpenDriver, ALibraryThatLacksFunctionsIsAnErrorThatNamesEach) {
  const auto driver = OpenDriver("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(driver.error().message,
              AllOf(HasSubstr("libm.so.6 lacks"), HasSubstr("cuInit"),
                    HasSubstr("cuGreenCtxStreamCreate"), HasSubstr("install NVIDIA's")));
}

TEST(Driver, EachFunctionIsVisitedOnceAndHasAName) {
  Driver driver;
  std::set<std::string> names;
  ForEachFunction(driver, [&](auto& function) { names.insert(function.name); });
  EXPECT_EQ(names.size(), kDriverFunctions);
}

TEST(Driver, AMachineWithoutADeviceSaysSo) {
  ScriptedDriver script;
  script.FailCall("cuInit", CUDA_ERROR_NO_DEVICE);
  const Status started = StartDriver(*script.driver());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(started.error().message,
              AllOf(HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE"), HasSubstr("nvidia-smi -L")));
}

TEST(DriverError, NamesTheCallTheCodeItsTextAndWhatToDo) {
  ScriptedDriver script;
  const Error error = DriverError(*script.driver(), "cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(error.code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.message,
              HasSubstr("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory); serve fewer"));
}

// A code that is newer than the driver has no name, and must not become an empty one.
TEST(DriverError, ACodeThatTheDriverDoesNotKnowKeepsItsNumber) {
  ScriptedDriver script;
  const Error error = DriverError(*script.driver(), "cuInit", static_cast<CUresult>(998));
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_EQ(error.message, "cuInit: code 998");
}

TEST(DriverError, WhatTheContextDoesNotSurviveIsALostDevice) {
  ScriptedDriver script;
  for (const CUresult code :
       {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_UNKNOWN}) {
    const Error error = DriverError(*script.driver(), "cuEventQuery", code);
    EXPECT_TRUE(IsDeviceLost(error)) << code;
    EXPECT_THAT(error.message, HasSubstr("Xid"));
  }
  for (const CUresult code : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
                              CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_CONTEXT}) {
    EXPECT_FALSE(IsDeviceLost(DriverError(*script.driver(), "f", code))) << code;
  }
}

TEST(ReadFacts, TellsWhatDecidesLatency) {
  ScriptedDriver script;
  const auto facts = ReadFacts(*script.driver(), 0, [](const std::string& uuid) {
    return uuid == "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0" ? 700 : 0;
  });
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(*facts, (DeviceFacts{.name = "fake-cuda (no GPU)",
                                 .uuid = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0",
                                 .capability = 90,
                                 .multiprocessors = 132,
                                 .memory_bytes = std::uint64_t{1} << 30,
                                 .driver = 13000,
                                 .power_limit_watts = 700}));
}

TEST(ReadFacts, AnOrdinalThatIsNotThereIsAnErrorThatCountsThem) {
  ScriptedDriver script;
  script.device.devices = 2;
  for (const int ordinal : {2, -1}) {
    const auto facts = ReadFacts(*script.driver(), ordinal, kNoLimit);
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(facts.error().message,
                AllOf(HasSubstr("cuda:" + std::to_string(ordinal)), HasSubstr("sees 2")));
  }
}

TEST(ReadFacts, PassesOnTheErrorOfEachOfItsCalls) {
  for (const char* function :
       {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid_v2",
        "cuDeviceTotalMem_v2", "cuDeviceGetAttribute", "cuDriverGetVersion"}) {
    ScriptedDriver script;
    script.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    const auto facts = ReadFacts(*script.driver(), 0, kNoLimit);
    ASSERT_FALSE(facts) << function;
    EXPECT_THAT(facts.error().message,
                HasSubstr(std::string(function) + ": CUDA_ERROR_INVALID_VALUE (invalid argument)"));
  }
}

TEST(PowerLimitWatts, AMachineWithoutTheLibraryHasNone) {
  EXPECT_EQ(PowerLimitWatts("GPU-0", "libnvidia-ml-that-is-not-there.so.1"), 0);
  EXPECT_EQ(PowerLimitWatts("GPU-0", "libm.so.6"), 0);
}

}  // namespace
}  // namespace tactus
