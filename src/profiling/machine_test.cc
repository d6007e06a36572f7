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

TEST(CheckMachine, AnImportedProfileWasMeasuredNowhere) {
  ProfileFile profile;
  profile.provenance = "imported from table.csv";
  const Status refused = CheckMachine(profile, ThisMachine("e"), false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("table.csv"));
}

}  // namespace
}  // namespace tactus
