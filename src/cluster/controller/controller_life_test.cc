#include "cluster/controller/controller_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Told {
  std::string printed;
  int looks = 0;
  bool ends = true;

  ControllerWorld World() {
    return {.told_to_end = [this] { return ++looks > 0 && ends; },
            .print = [this](const std::string& text) { printed += text; },
            .log = [](const std::string&) {}};
  }
};

ControllerOptions OptionsIn(const TemporaryFolder& folder) {
  return {.listen = "127.0.0.1:0", .state = folder / "state", .tls = {}};
}

// Otherwise a controller would wait for a store or an election that never comes.
TEST(ControllerLifeTest, FlagsThatWaitingDoesNotMendAreRefused) {
  const TemporaryFolder folder;
  const std::vector<std::pair<ControllerLifeFlags, std::string>> wrong = {
      {{.store = "nosuch:x"}, "--store: "},
      {{.elect = "nosuch:x"}, "--elect: "},
      {{.name = "one"}, "--name is for the other controllers"},
  };
  for (const auto& [flags, what] : wrong) {
    Told told;
    const auto ended =
        RunControllerLife(OptionsIn(folder), FleetInput{}, "octopinf", flags, told.World());
    ASSERT_FALSE(ended) << what;
    EXPECT_THAT(ended.error().message, StartsWith(what));
    EXPECT_EQ(told.printed, "") << "it does not listen";
  }
}

// Otherwise whoever waits for the line would never know the port, or the process never end.
TEST(ControllerLifeTest, ListensUntilItIsToldToEnd) {
  const TemporaryFolder folder;
  Told told;
  const auto ended =
      RunControllerLife(OptionsIn(folder), FleetInput{}, "octopinf", {}, told.World());
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(*ended, 0);
  EXPECT_THAT(told.printed, HasSubstr("plans 0 nodes by octopinf\nready control="));
  EXPECT_TRUE(std::filesystem::exists(folder / "state" / "knowledge.db"));
}

}  // namespace
}  // namespace tactus
