#include "engines/engine_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

EngineOptions Options() {
  EngineOptions options;
  options.emulated.latencies = [](const ModelSpec&) -> Expected<ProfileTable::ModelRows> {
    return ProfileTable::ModelRows{1, 1, {Millis(1)}};
  };
  return options;
}

TEST(EngineShelf, MakesEachEngineOnceAndWhenItIsNeeded) {
  EngineShelf shelf("", Options());
  EXPECT_EQ(shelf.names(), "");
  const auto identity = shelf.For("identity");
  ASSERT_TRUE(identity);
  EXPECT_EQ(*shelf.For("identity"), *identity);
  EXPECT_FALSE(shelf.emulated());
  const auto emulated = shelf.For("emulated");
  ASSERT_TRUE(emulated);
  EXPECT_NE(*emulated, *identity);
  EXPECT_TRUE(shelf.emulated());
  EXPECT_EQ(shelf.names(), (*emulated)->traits().name + ", " + (*identity)->traits().name);
}

TEST(EngineShelf, AForcedEngineRunsEveryPlatform) {
  EngineShelf shelf("identity", Options());
  const auto engine = shelf.For("onnxruntime_onnx");
  ASSERT_TRUE(engine);
  EXPECT_EQ(*shelf.For("emulated"), *engine);
}

TEST(EngineShelf, AnEngineThatIsNotThereLeavesNothingBehind) {
  EngineShelf shelf("", Options());
  for (int again = 0; again < 2; ++again) {
    const auto engine = shelf.For("tensorrt_plan");
    ASSERT_FALSE(engine);
    EXPECT_THAT(engine.error().message, HasSubstr("tensorrt_plan"));
  }
  EXPECT_EQ(shelf.names(), "");
}

}  // namespace
}  // namespace tactus
