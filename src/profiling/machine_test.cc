#include "profiling/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Machine, IsTheSameWheneverItIsAsked) {
  EXPECT_EQ(ThisMachine("onnxruntime 1.30.0"), ThisMachine("onnxruntime 1.30.0"));
  EXPECT_GE(ThisMachine("e").cores, 1);
  EXPECT_EQ(ThisMachine("e").fingerprint.size(), 16u);
}

TEST(Machine, AnotherVersionOfTheEngineIsAnotherMachine) {
  EXPECT_NE(ThisMachine("onnxruntime 1.30.0").fingerprint,
            ThisMachine("onnxruntime 1.29.0").fingerprint);
}

TEST(CheckMachine, RefusesAProfileOfAnotherMachineUnlessToldOtherwise) {
  const Machine here = ThisMachine("onnxruntime 1.30.0");
  ProfileFile profile;
  profile.machine = here;
  EXPECT_TRUE(CheckMachine(profile, here, false));
  profile.machine.cpu = "Cray-1";
  profile.machine.fingerprint = "0123456789abcdef";
  const Status refused = CheckMachine(profile, here, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("Cray-1"), HasSubstr(here.cpu), HasSubstr("tactus profile")));
  EXPECT_TRUE(CheckMachine(profile, here, true));
}

// Else the text would name the same machine twice, as if that were a difference.
TEST(CheckMachine, SaysWhereTheFingerprintAloneDiffers) {
  const Machine here = ThisMachine("e");
  ProfileFile profile;
  profile.machine = here;
  profile.machine.fingerprint = "0123456789abcdef";
  const std::string told = MachineDifference(profile, here);
  EXPECT_THAT(told, AllOf(HasSubstr("only the fingerprint"), HasSubstr("0123456789abcdef"),
                          HasSubstr(here.fingerprint)));
  EXPECT_EQ(told.find(here.cpu), told.rfind(here.cpu)) << told;
  profile.machine.threads = 2;
  EXPECT_THAT(MachineDifference(profile, here), HasSubstr("with 2 threads a batch"));
}

// A profile that was derived from a paper's figures knows no cores and no engine: "0 cores, ".
TEST(CheckMachine, LeavesOutWhatAProfileDoesNotSay) {
  ProfileFile profile;
  profile.machine.fingerprint = "stand-in";
  profile.machine.cpu = "unknown GPU";
  EXPECT_THAT(MachineDifference(profile, ThisMachine("e")),
              HasSubstr("was measured on another machine (unknown GPU); this machine is "));
}

TEST(CheckMachine, RefusesAProfileOfAnotherNumberOfThreads) {
  ProfileFile profile;
  profile.machine = ThisMachine("e");
  const Status refused = CheckMachine(profile, ThisMachine("e", 2), false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("1 thread a batch"), HasSubstr("2 threads a batch"),
                    HasSubstr("tactus profile --threads 2")));
  profile.machine = ThisMachine("e", 2);
  EXPECT_TRUE(CheckMachine(profile, ThisMachine("e", 2), false));
}

class DeviceMachine : public ::testing::Test {
 protected:
  static Machine On(const DeviceFacts& device) { return ThisMachine("e", 1, device); }
  const DeviceFacts h200_{.name = "NVIDIA H200",
                          .uuid = "GPU-1",
                          .capability = 90,
                          .multiprocessors = 132,
                          .memory_bytes = std::uint64_t{141} << 30,
                          .driver = 13000,
                          .power_limit_watts = 700};
};

TEST_F(DeviceMachine, AnotherDeviceOfItsKindIsTheSameMachine) {
  DeviceFacts other = h200_;
  other.uuid = "GPU-2";
  EXPECT_EQ(On(h200_).fingerprint, On(other).fingerprint);
  EXPECT_NE(On(h200_).fingerprint, ThisMachine("e").fingerprint);
}

// A device that may draw less runs slower under load, and an update of the driver changes what
// kernels take: neither shows in its name.
TEST_F(DeviceMachine, RefusesAnotherDeviceDriverOrPowerLimitAndSaysWhichDiffers) {
  ProfileFile profile;
  profile.machine = On(h200_);
  EXPECT_TRUE(CheckMachine(profile, On(h200_), false));
  DeviceFacts here = h200_;
  here.power_limit_watts = 500;
  EXPECT_THAT(CheckMachine(profile, On(here), false).error().message,
              AllOf(HasSubstr("the power limit was 700 W, here it is 500 W. Its latencies"),
                    HasSubstr("tactus profile")));
  here = h200_;
  here.driver = 12090;
  EXPECT_THAT(MachineDifference(profile, On(here)),
              HasSubstr("the driver's CUDA was 13.0, here it is 12.9"));
  here = h200_;
  here.name = "NVIDIA H100";
  here.memory_bytes = std::uint64_t{80} << 30;
  EXPECT_THAT(MachineDifference(profile, On(here)),
              AllOf(HasSubstr("the device was NVIDIA H200, here it is NVIDIA H100"),
                    HasSubstr("the memory was 144384 MiB, here it is 81920 MiB")));
  EXPECT_TRUE(CheckMachine(profile, On(here), true));
}

TEST_F(DeviceMachine, AnotherShareIsAnotherMachine) {
  const EngineTraits engine{.name = "e", .device = h200_};
  ProfileFile profile;
  profile.machine = ThisMachine(engine);
  EXPECT_TRUE(CheckMachine(profile, ThisMachine(engine, 1, 1), false));
  const Status refused = CheckMachine(profile, ThisMachine(engine, 1, 0.25), false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("measured on 100 % of the device and the lane here has 25 %"),
                    HasSubstr("tactus profile --share 25")));
}

TEST_F(DeviceMachine, AProfileOfTheProcessorIsRefusedOnADevice) {
  ProfileFile profile;
  profile.machine = ThisMachine("onnxruntime 1.30.0");
  const Machine here = ThisMachine("onnxruntime 1.30.0 on NVIDIA H200", 1, h200_);
  EXPECT_THAT(MachineDifference(profile, here), HasSubstr("NVIDIA H200"));
}

TEST(CheckMachine, AnImportedProfileWasMeasuredNowhere) {
  ProfileFile profile;
  profile.provenance = "imported from table.csv";
  const Status refused = CheckMachine(profile, ThisMachine("e"), false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("table.csv"));
}

}  // namespace
}  // namespace tactus
