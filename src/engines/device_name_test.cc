#include "engines/device_name.h"

#include <algorithm>
#include <string>

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
using ::testing::StartsWith;

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
  // It is a name that --device takes, only not here.
  for (const char* text : {"cuda:0,cpu", "cpu,cuda:1", "cpu,cpu"}) {
    EXPECT_THAT(ParseDevices(text).error().message,
                AllOf(StartsWith("'" + std::string(text) + "' has cpu in a list"),
                      HasSubstr("either cpu, which is the default, or devices: cuda:0, or"),
                      Not(HasSubstr("is not a device"))));
  }
  EXPECT_THAT(ParseDevices("cuda:0,gpu:1").error().message,
              StartsWith("'gpu:1' is not a device; give cpu"));
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

// Whoever reads it must learn which engines do, and what to leave out.
TEST(MakeEngine, AnEngineWithoutDevicesIsRefusedWithThoseThatHaveThem) {
  EngineOptions options;
  options.devices = {0};
  for (const char* name : {"identity", "emulated"}) {
    const auto engine = MakeEngine(name, options);
    ASSERT_FALSE(engine);
    EXPECT_THAT(engine.error().message,
                StartsWith(std::string("engine '") + name + "' takes no --device: leave it out"));
#ifdef TACTUS_HAVE_CUDA
    for (const char* other : {"onnxruntime", "aoti"}) {
      const auto engines = Engines();
      const bool built = std::ranges::find(engines, other, &EngineInfo::name) != engines.end();
      EXPECT_EQ(engine.error().message.find(other) != std::string::npos, built) << other;
    }
#endif
  }
  EXPECT_TRUE(MakeEngine("op", options)) << "operators run on the host, whatever else runs where";
}

}  // namespace
}  // namespace tactus
