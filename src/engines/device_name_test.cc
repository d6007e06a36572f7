#include "engines/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/registry.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ParseDevices, NamesTheProcessorOrDevicesByNumber) {
  EXPECT_THAT(ParseDevices("cpu").value(), IsEmpty());
  EXPECT_THAT(ParseDevices("").value(), IsEmpty());
  EXPECT_THAT(ParseDevices("cuda:0").value(), ElementsAre(0));
  EXPECT_THAT(ParseDevices("cuda:2,cuda:0").value(), ElementsAre(2, 0));
}

TEST(ParseDevices, RefusesWhatIsNoDeviceAndNamesIt) {
  for (const char* text : {"cuda", "cuda:", "cuda:x", "cuda:-1", "gpu:0", "cuda:0,cpu", "cuda:1x",
                           "cuda:99999999999"}) {
    const auto devices = ParseDevices(text);
    ASSERT_FALSE(devices) << text;
    EXPECT_THAT(devices.error().message, HasSubstr("cuda:0,cuda:1")) << text;
  }
  EXPECT_THAT(ParseDevices("cuda:1,cuda:1").error().message, HasSubstr("cuda:1 is named twice"));
}

// On a machine without a device the user reads what is missing, in one line. With a device there
// is nothing to refuse.
TEST(MakeEngine, OnADeviceThatIsNotThereSaysInOneLineWhatIsMissing) {
  EngineOptions options;
  options.devices = {4711};
  const auto engine = MakeEngine("onnxruntime", options);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, Not(HasSubstr("\n")));
  EXPECT_THAT(engine.error().message, HasSubstr("--device"));
}

TEST(MakeEngine, OnlyOnnxRuntimeTakesADevice) {
  EngineOptions options;
  options.devices = {0};
  const auto engine = MakeEngine("identity", options);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message,
              AllOf(HasSubstr("identity"), HasSubstr("--device"), HasSubstr("onnxruntime")));
  EXPECT_TRUE(MakeEngine("op", options)) << "operators run on the host, whatever else runs where";
}

}  // namespace
}  // namespace tactus
