#include "workload/share_profiles.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One exit, batches 1 and 2, `ms` for each row.
ShareProfile At(double share, double ms, const std::string& name = "m") {
  const auto cell = [](double took) {
    return ProfileCell{.repetitions = 1,
                       .mean_ms = took,
                       .min_ms = took,
                       .p50_ms = took,
                       .p95_ms = took,
                       .p99_ms = took,
                       .max_ms = took};
  };
  ProfiledModel model{.name = name, .max_batch = 2};
  model.exits.push_back({.name = "final", .cells = {cell(ms), cell(2 * ms)}});
  ShareProfile profile{.share = share};
  profile.profile.models.push_back(std::move(model));
  return profile;
}

class ShareProfiles : public ::testing::Test {
 protected:
  std::string Refusal(const std::vector<ShareProfile>& shares) const {
    const auto table = MakeTable(shares, {&model_, 1}, {});
    return table ? "none" : table.error().message;
  }
  Model model_{.name = "m", .max_batch = 2, .exits = {{"final"}}};
};

TEST_F(ShareProfiles, MakeALaneClassOfEach) {
  const std::vector<ShareProfile> shares = {At(0.25, 9), At(0.5, 5), At(1, 3)};
  const auto table = MakeTable(shares, {&model_, 1}, {});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->lane_classes(), 3);
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 1, LaneClass{0}), Millis(9));
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 2, LaneClass{1}), Millis(10));
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 2, LaneClass{2}), Millis(6));
  EXPECT_FALSE(table->knows_use(ModelId{0}));
}

TEST_F(ShareProfiles, MustAscendToTheWholeDeviceAndKnowEveryModel) {
  EXPECT_THAT(Refusal({At(0.5, 5), At(0.5, 5), At(1, 3)}), HasSubstr("50 % comes after 50 %"));
  EXPECT_THAT(Refusal({At(0.5, 5), At(0.25, 9), At(1, 3)}), HasSubstr("25 % comes after 50 %"));
  EXPECT_THAT(Refusal({At(0.5, 5), At(0.5, 5), At(1, 3)}), HasSubstr("each share once"));
  EXPECT_THAT(Refusal({At(0.5, 5)}), AllOf(HasSubstr("end at 50 %"), HasSubstr("100=FILE")));
  EXPECT_THAT(Refusal({At(0.5, 5, "other"), At(1, 3)}),
              AllOf(HasSubstr("50 % of a device"), HasSubstr("no model 'm'")));
}

TEST_F(ShareProfiles, ASmallShareNeedNotMeetAnSloButTheWholeDeviceMust) {
  model_.slo = Millis(4);
  EXPECT_EQ(Refusal({At(0.5, 5), At(1, 3)}), "none");
  model_.slo = Millis(2);
  EXPECT_THAT(Refusal({At(0.5, 5), At(1, 3)}), HasSubstr("100 % of a device"));
}

TEST(MeasuredShares, AreAPercentageAndAFileEach) {
  const TemporaryFolder folder;
  const auto path = folder / "share.json";
  ASSERT_TRUE(SaveProfile(At(1, 3).profile, path));
  const std::vector<std::string> texts = {"37.5=" + path.string(), "100=" + path.string()};
  const auto shares = ParseMeasuredShares(texts);
  ASSERT_TRUE(shares) << shares.error().message;
  EXPECT_EQ((*shares)[0], (MeasuredShare{37.5, path}));
  const auto loaded = LoadShareProfiles(*shares);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)[0].share, 0.375);
  EXPECT_EQ((*loaded)[1].profile.models[0].name, "m");
  EXPECT_THAT(LoadShareProfiles(std::span(*shares).first(1)).error().message,
              HasSubstr("end at 37.5 %"));
  std::filesystem::remove(path);
  EXPECT_THAT(LoadShareProfiles(*shares).error().message, HasSubstr(path.string()));
  for (const std::string text : {"", "=", "50", "x=p.json", "0=p.json", "101=p.json", "nan=p.json",
                                 "50%=p.json", "=p.json"}) {
    EXPECT_THAT(ParseMeasuredShares(std::span(&text, 1)).error().message, HasSubstr("PERCENT=FILE"))
        << text;
  }
}

}  // namespace
}  // namespace tactus
