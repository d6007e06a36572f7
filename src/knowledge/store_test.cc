// Without these a planner would be told different things by SQLite and by PostgreSQL, or something
// that nobody wrote.
#include "knowledge/store.h"

#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knowledge/store_case_test.h"

namespace tactus::knowledge {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Batch EverythingOnce() {
  Batch batch{.term = 2, .sequence = 1};
  batch.arrivals = {
      {kNoon, "", "détection\t人", "cam\\1\r\n", Nanos(1), 0.30000000000000004, 1.5, 1, -1, 300},
      {kNoon, "street", "detect", "cam1", Seconds(1), 14.75, 0, 1, 4'000'000'000, 0}};
  batch.network = {{kNoon, "yard", "rack", 40.125, Millis(21), 0.001}};
  batch.plans = {{7, 2, kNoon, R"({"devices": ["détection", "人"]})", "{}", "{\"on_time\": 0.99}",
                  PlanFate::kProposed, UtcTime{}, ""}};
  batch.events = {{0, kNoon, "node-lost", "cam2", "silent for 3 s\n\tand \"more\" \\ 'it'"}};
  return batch;
}

const Window kDay{kNoon - hours(12), kNoon + hours(12)};

// As `token`, for `key`.
TokenUse TokenUsed(std::string token, std::string key) {
  return {std::move(token), "north", std::move(key), kNoon, kNoon + hours(24)};
}

class StoreTest : public StoreCase {};
INSTANTIATE_TEST_SUITE_P(Both, StoreTest,
                         ::testing::Values(StoreKind::kSqlite, StoreKind::kPostgres), KindName);

TEST_P(StoreTest, EveryRecordIsReadAsItWasWrittenAlsoByTheNextProgram) {
  const Batch written = EverythingOnce();
  const Window noon{kNoon, kNoon + seconds(1)};
  ASSERT_EQ(Must(Open()->Commit(written)), Written::kNow);

  auto store = Open();
  EXPECT_EQ(Must(store->Arrivals(noon)), written.arrivals);
  EXPECT_EQ(Must(store->NetworkSamples(noon)), written.network);
  EXPECT_EQ(Must(store->PlanOf(7)), written.plans[0]);
  Event numbered = written.events[0];
  numbered.number = 1;
  EXPECT_THAT(Must(store->Events(noon)), ElementsAre(numbered));
  EXPECT_THAT(Must(store->Events({noon.end, noon.end + hours(1)})), IsEmpty());
}

TEST_P(StoreTest, ABatchWithOneBadRecordLeavesNothingBehind) {
  auto store = Open();
  Batch batch = EverythingOnce();
  batch.verdicts = {{8, PlanFate::kAdopted, kNoon, ""}};  // no such plan
  const auto refused = store->Commit(batch);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr(store->place()), HasSubstr("epoch 8")));

  EXPECT_THAT(Must(store->NetworkSamples(kDay)), IsEmpty());
  EXPECT_THAT(Must(store->Arrivals(kDay)), IsEmpty());
  EXPECT_EQ(Must(store->HighestSeen()).epoch, 0u);
  // The sequence number is still free, and so is the event's.
  batch.verdicts.clear();
  EXPECT_EQ(Must(store->Commit(batch)), Written::kNow);
  EXPECT_EQ(Must(store->Events(kDay)).at(0).number, 1u);
}

TEST_P(StoreTest, WhatOneDatabaseWouldTakeAndTheOtherNotIsRefusedByBoth) {
  auto store = Open();
  const auto refuses = [&](auto change, const char* column) {
    Batch batch = EverythingOnce();
    change(batch);
    const auto refused = store->Commit(batch);
    ASSERT_FALSE(refused.has_value()) << column;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr(column));
  };
  refuses([](Batch& b) { b.arrivals[1].stage = std::string("a\0b", 3); }, "arrival.stage");
  refuses([](Batch& b) { b.events[0].kind = "\xC3("; }, "event.kind");
  refuses([](Batch& b) { b.events[0].text = "\xED\xA0\x80"; }, "event.text");  // a surrogate
  refuses([](Batch& b) { b.plans[0].why = "\xC0\x80"; }, "plan.why");          // overlong
  refuses([](Batch& b) { b.network[0].to_site = "\xFF"; }, "network.to_site");
  refuses([](Batch& b) { b.network[0].mbps = std::numeric_limits<double>::quiet_NaN(); },
          "network.mbps");
  refuses([](Batch& b) { b.arrivals[0].at = UtcTime{}; }, "arrival.at");
  refuses([](Batch& b) { b.plans[0].epoch = std::numeric_limits<std::uint64_t>::max(); },
          "plan.epoch");
  refuses([](Batch& b) { b.term = std::uint64_t{1} << 63; }, "term");
  EXPECT_THAT(Must(store->NetworkSamples(kDay)), IsEmpty());
}

TEST_P(StoreTest, ABatchThatIsWrittenAgainIsWrittenOnce) {
  auto store = Open();
  const Batch batch = EverythingOnce();
  Batch samples{.term = 2, .sequence = 2};
  samples.arrivals = batch.arrivals;
  EXPECT_EQ(Must(store->Commit(batch)), Written::kNow);
  EXPECT_EQ(Must(store->Commit(samples)), Written::kNow);
  EXPECT_EQ(Must(store->Commit(samples)), Written::kBefore);
  EXPECT_EQ(Must(store->Commit(batch)), Written::kBefore);
  EXPECT_THAT(Must(store->Arrivals(kDay)), SizeIs(4));
  // Numbers begin anew with the next term.
  samples.term = 3, samples.sequence = 1;
  EXPECT_EQ(Must(store->Commit(samples)), Written::kNow);
}

TEST_P(StoreTest, AControllerThatNoLongerLeadsCannotWrite) {
  auto old_leader = Open(), new_leader = Open();
  Must(old_leader->Commit(Batch{.term = 4, .sequence = 9}));
  Must(new_leader->Commit(Batch{.term = 5, .sequence = 1}));
  Batch late{.term = 4, .sequence = 10};
  late.events = {{0, kNoon, "late", "x", "y"}};
  const auto refused = old_leader->Commit(late);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(refused.error().message, HasSubstr("term 4 is over"));
  EXPECT_THAT(Must(new_leader->Events(kDay)), IsEmpty());
  EXPECT_EQ(Must(new_leader->HighestSeen()).term, 5u);
}

TEST_P(StoreTest, PlansMeetTheirFate) {
  auto store = Open();
  EXPECT_EQ(Must(store->LastAdoptedPlan()), std::nullopt);
  Batch plans{.term = 1};
  for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
    plans.plans.push_back({epoch, 1, kNoon, "{}", "{}", "{}", PlanFate::kProposed, UtcTime{}, ""});
  }
  Must(store->Commit(plans));
  EXPECT_EQ(Must(store->LastAdoptedPlan()), std::nullopt);

  Batch fates{.term = 1};
  fates.verdicts = {{1, PlanFate::kAdopted, kNoon + seconds(1), ""},
                    {3, PlanFate::kAdopted, kNoon + seconds(2), ""},
                    {4, PlanFate::kAbandoned, kNoon + seconds(3), "cam2 died in PREPARE"}};
  Must(store->Commit(fates));
  EXPECT_EQ(Must(store->LastAdoptedPlan())->epoch, 3u);
  EXPECT_EQ(Must(store->HighestSeen()).epoch, 4u);
  EXPECT_EQ(Must(store->PlanOf(4)).why, "cam2 died in PREPARE");
  EXPECT_EQ(Must(store->PlanOf(4)).fate, PlanFate::kAbandoned);

  const auto made = Must(store->Plans({kNoon, kNoon + seconds(1)}));
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made.back().epoch, 4u);
  EXPECT_THAT(Must(store->Plans({kNoon + seconds(1), kNoon + hours(1)})), IsEmpty());

  const auto twice = store->Commit(plans);
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, ErrorCode::kAlreadyExists);
  const auto missing = store->PlanOf(9);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST_P(StoreTest, TheBandwidthOfALinkIsAQuantileOfItsWindow) {
  auto store = Open();
  Batch batch{.term = 1};
  for (int i = 1; i <= 10; ++i) {
    batch.network.push_back({kNoon + seconds(i), "yard", "rack", 10.0 * i, Millis(20), 0});
    batch.network.push_back({kNoon + seconds(i), "rack", "yard", 1'000, Millis(20), 0});
  }
  batch.network.push_back({kNoon, "yard", "rack", 0.5, Millis(20), 0});
  Must(store->Commit(batch));
  const Window ten{kNoon + seconds(1), kNoon + seconds(11)};
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "rack", ten)), 30);  // rank ceil(2.5) of 10
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "rack", ten, 0)), 10);
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "rack", ten, 1)), 100);
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "attic", ten)), std::nullopt);
}

TEST_P(StoreTest, EventsAreNumberedWithoutGapsAndReadInOrder) {
  auto store = Open();
  for (int round = 0; round < 3; ++round) {
    Batch batch{.term = 1};
    batch.events = {{0, kNoon - hours(round), "a", "", ""}, {0, kNoon, "b", "", ""}};
    Must(store->Commit(batch));
  }
  std::vector<std::uint64_t> numbers;
  for (const Event& event : Must(store->Events(kDay))) numbers.push_back(event.number);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_P(StoreTest, SamplesAreForgottenAfterTwoDays) {
  auto store = Open();
  Batch batch = EverythingOnce();
  batch.network.push_back({kNoon + hours(24), "yard", "rack", 10, Millis(20), 0});
  Must(store->Commit(batch));
  EXPECT_EQ(Must(store->Retain(kNoon + hours(48))).deleted, 0);
  EXPECT_THAT(Must(store->Arrivals(kDay)), SizeIs(2));
  // PostgreSQL's go with their day.
  const Retained retained = Must(store->Retain(kNoon + hours(61)));
  EXPECT_EQ(retained.deleted + retained.partitions, GetParam() == StoreKind::kSqlite ? 3 : 2);
  EXPECT_THAT(Must(store->Arrivals(kDay)), IsEmpty());
  EXPECT_THAT(Must(store->NetworkSamples({kNoon, kNoon + hours(48)})), SizeIs(1));
  EXPECT_EQ(Must(store->Retain(kNoon + hours(61))).deleted, 0);
  EXPECT_THAT(Must(store->Events(kDay)), SizeIs(1));
  // Samples of a day that was dropped may still come.
  EXPECT_EQ(Must(store->Commit({.term = 2, .arrivals = batch.arrivals})), Written::kNow);
  EXPECT_THAT(Must(store->Arrivals(kDay)), SizeIs(2));
}

TEST_P(StoreTest, ACallForgetsOnlySoManySamplesOfSqlite) {
  if (GetParam() != StoreKind::kSqlite) GTEST_SKIP() << "a day goes at once";
  auto store = Open();
  Batch batch{.term = 1};
  for (int i = 0; i < 10; ++i) {
    batch.network.push_back({kNoon, "yard", "rack", 10, Millis(20), 0});
  }
  Must(store->Commit(batch));
  const Retention four_at_once{.most_deleted = 4};
  for (const bool done : {false, false, true}) {
    EXPECT_EQ(Must(store->Retain(kNoon + hours(72), four_at_once)).done, done);
  }
  EXPECT_THAT(Must(store->NetworkSamples(kDay)), IsEmpty());
}

TEST_P(StoreTest, TheLastAdoptedPlanAndTheHighestEpochOutliveRetention) {
  auto store = Open();
  Batch batch{.term = 1};
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    batch.plans.push_back({epoch, 1, kNoon, "{}", "{}", "{}",
                           epoch < 3 ? PlanFate::kAdopted : PlanFate::kAbandoned, kNoon, ""});
  }
  batch.events = {{0, kNoon, "a", "", ""}};
  Must(store->Commit(batch));
  Must(store->Retain(kNoon + hours(24 * 1'000)));
  EXPECT_EQ(Must(store->LastAdoptedPlan())->epoch, 2u);
  EXPECT_EQ(Must(store->HighestSeen()).epoch, 3u);
  EXPECT_FALSE(store->PlanOf(1).has_value());
  EXPECT_THAT(Must(store->Events(kDay)), IsEmpty());
  // Numbers of events go on.
  Must(store->Commit(Batch{.term = 1, .events = {{0, kNoon, "b", "", ""}}}));
  EXPECT_EQ(Must(store->Events(kDay)).at(0).number, 2u);
}

TEST(StoreAddress, AnUnknownStoreOrPlaceIsRefusedWithARemedy) {
  const auto unknown = OpenStore("mysql://x/y");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("mysql://x/y"), HasSubstr("sqlite:PATH")));
  const auto nowhere = OpenStore("sqlite:/nonexistent/folder/a.db");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_THAT(nowhere.error().message,
              AllOf(HasSubstr("/nonexistent/folder/a.db"), HasSubstr("must exist")));
}

TEST(StoreAddress, PostgresThatIsAwayOrNotBuiltInIsSaidWithoutThePassword) {
  const auto opened =
      OpenStore("postgresql://ann:secret@127.0.0.1:" + std::to_string(FreePort()) + "/know?x=y");
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, Not(HasSubstr("secret")));
#ifdef TACTUS_HAVE_LIBPQ
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("127.0.0.1:"), HasSubstr("/know")));
#else
  EXPECT_THAT(opened.error().message, HasSubstr("./run build postgres"));
#endif
}

TEST(StoreAddress, AFileThatIsNoDatabaseIsRefusedAndLeftAsItIs) {
  const TemporaryFolder folder;
  const std::string text(8'192, 'x');
  std::FILE* file = std::fopen((folder / "a.db").c_str(), "wb");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  const auto opened = OpenStore("sqlite:" + (folder / "a.db").string());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("no knowledge base"));
  EXPECT_EQ(std::filesystem::file_size(folder / "a.db"), text.size());
}

// A token that two controllers take would admit two nodes of one name.
TEST_P(StoreTest, ATokenIsUsedForOneKeyByWhoeverWrites) {
  auto one = Open();
  auto other = Open();
  EXPECT_EQ(Must(one->Use(TokenUsed("t1", "k1"))), Written::kNow);
  EXPECT_EQ(Must(other->Use(TokenUsed("t1", "k1"))), Written::kBefore);  // nobody heard the answer
  EXPECT_EQ(other->Use(TokenUsed("t1", "k2")).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(Must(other->Use(TokenUsed("t2", "k2"))), Written::kNow);
  // It takes no number of a batch: those that a leader has not written yet still come.
  EXPECT_EQ(Must(one->Commit({.term = 1, .sequence = 1, .events = {{0, kNoon, "a", "", ""}}})),
            Written::kNow);
}

TEST_P(StoreTest, OfTwoThatUseATokenAtOnceOneIsTheFirst) {
  for (int round = 0; round < 20; ++round) {
    const std::string token = "token" + std::to_string(round);
    std::vector<ErrorCode> refused;
    int taken = 0;
    std::mutex mutex;
    std::vector<std::jthread> users;
    for (const char* const key : {"k1", "k2", "k3"}) {
      users.emplace_back([&, key, store = std::shared_ptr(Open())] {
        const auto used = store->Use(TokenUsed(token, key));
        const std::scoped_lock lock(mutex);
        if (used) {
          ++taken;
        } else {
          refused.push_back(used.error().code);
        }
      });
    }
    users.clear();
    EXPECT_EQ(taken, 1);
    EXPECT_THAT(refused, ElementsAre(ErrorCode::kAlreadyExists, ErrorCode::kAlreadyExists));
  }
}

TEST_P(StoreTest, ATokenIsForgottenWhenNoClockTakesItAnyMore) {
  auto store = Open();
  EXPECT_EQ(Must(store->Use(TokenUsed("old", "k1"))), Written::kNow);
  TokenUse later = TokenUsed("new", "k2");
  later.at = kNoon + hours(24) + hours(24 * 29);
  EXPECT_EQ(Must(store->Use(later)), Written::kNow);
  EXPECT_EQ(store->Use(TokenUsed("old", "k3")).error().code, ErrorCode::kAlreadyExists);
  later = TokenUsed("newer", "k2");
  later.at = kNoon + hours(24) + hours(24 * 31);
  EXPECT_EQ(Must(store->Use(later)), Written::kNow);
  EXPECT_EQ(Must(store->Use(TokenUsed("old", "k3"))), Written::kNow);
}

}  // namespace
}  // namespace tactus::knowledge
