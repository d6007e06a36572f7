// Without these an upgrade could lose what a cluster has learnt, or an older program could write
// into a schema that it does not understand.
#include "knowledge/sql/migrations.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knowledge/sqlite/sqlite_database.h"
#include "knowledge/store_case_test.h"
#ifdef TACTUS_HAVE_LIBPQXX
#include "knowledge/postgres/postgres_database.h"
#endif

namespace tactus::knowledge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MigrationsTest : public StoreCase {
 protected:
  std::unique_ptr<Database> OpenDatabase() const {
#ifdef TACTUS_HAVE_LIBPQXX
    if (GetParam() == StoreKind::kPostgres) return Must(OpenPostgres(where()));
#endif
    return Must(OpenSqlite(where().substr(std::string("sqlite:").size())));
  }
  static void Write(Database& database, const std::string& sql) {
    auto transaction = Must(Transaction::Begin(database));
    ASSERT_TRUE(database.Script(sql).has_value());
    ASSERT_TRUE(transaction.Commit().has_value());
  }
  std::int64_t Version() const {
    return std::get<std::int64_t>(
        Must(OpenDatabase()->Query("SELECT version FROM schema_version", {})).at(0).at(0));
  }
};
INSTANTIATE_TEST_SUITE_P(Both, MigrationsTest,
                         ::testing::Values(StoreKind::kSqlite, StoreKind::kPostgres), KindName);

TEST_P(MigrationsTest, TheFirstSchemaWithDataInItBecomesTheNewest) {
  {
    auto database = OpenDatabase();
    ASSERT_TRUE(Migrate(*database, 1).has_value());
    Write(*database,
          "INSERT INTO plan (epoch, made, input, plan, predicted, fate, decided, why) "
          "VALUES (41, 1772366400000000, '{}', '{}', '{}', 'adopted', 1772366400000000, 'first');"
          "INSERT INTO device (name, kind, site, accelerators, memory_mb, server, seen) "
          "VALUES ('cam1', 'nano', 'yard', 1, 3900.5, 0, 1772366400000000);"
          "INSERT INTO event (number, at, kind, subject, text) "
          "VALUES (1, 1772366400000000, 'a', 'b', 'c');"
          "UPDATE counter SET value = 1");
    auto transaction = Must(Transaction::Begin(*database));
    ASSERT_TRUE(database
                    ->Append("network", {"at", "from_site", "to_site", "mbps", "rtt_ns", "loss"},
                             {{std::int64_t{1'772'366'400'000'000}, std::string("yard"),
                               std::string("rack"), 12.5, std::int64_t{1'000}, 0.0}})
                    .has_value());
    ASSERT_TRUE(transaction.Commit().has_value());
  }
  EXPECT_EQ(Version(), 1);

  auto store = Open();
  EXPECT_EQ(Version(), Migrations().back().version);
  const Plan plan = Must(store->LastAdoptedPlan()).value();
  EXPECT_EQ(plan.epoch, 41u);
  EXPECT_EQ(plan.term, 0u);  // no term was known then
  EXPECT_EQ(plan.why, "first");
  EXPECT_EQ(plan.made, kNoon);
  EXPECT_EQ(Must(store->Devices()).at(0).memory_mb, 3'900.5);
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "rack", {kNoon, kNoon + std::chrono::hours(1)})),
            12.5);
  // And it goes on as a store of today: terms, numbers of events, roll-ups.
  Must(store->Commit(Batch{.term = 1, .events = {{0, kNoon, "d", "", ""}}}));
  EXPECT_EQ(Must(store->EventsSince(1, 10)).at(0).number, 2u);
  EXPECT_EQ(Must(store->HighestSeen()).term, 1u);
  Must(store->Retain(kNoon + std::chrono::hours(2)));
  EXPECT_THAT(
      Must(store->NetworkSamples({kNoon, kNoon + std::chrono::hours(1)}, Resolution::kMinute)),
      SizeIs(1));
}

TEST_P(MigrationsTest, EachStepLeadsToTheNext) {
  for (const Migration& step : Migrations()) {
    ASSERT_TRUE(Migrate(*OpenDatabase(), step.version).has_value()) << step.what;
    EXPECT_EQ(Version(), step.version);
  }
}

TEST_P(MigrationsTest, ANewerSchemaIsRefusedWithARemedyAndLeftAlone) {
  Open();
  const std::int64_t known = Migrations().back().version;
  Write(*OpenDatabase(), "UPDATE schema_version SET version = version + 1");
  const auto opened = OpenStore(where());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("version " + std::to_string(known + 1)),
                    HasSubstr("supports " + std::to_string(known)), HasSubstr("newer tactus")));
  EXPECT_EQ(Version(), known + 1);
}

TEST_P(MigrationsTest, AStepThatFailsChangesNothing) {
  ASSERT_TRUE(Migrate(*OpenDatabase(), 1).has_value());
  // In the way of the third step, whose first statements succeed.
  Write(*OpenDatabase(), "CREATE TABLE rolled (x BIGINT)");
  const auto opened = OpenStore(where());
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("migration 3"));
  EXPECT_EQ(Version(), 2);
  EXPECT_FALSE(OpenDatabase()->Query("SELECT * FROM arrival_minute", {}).has_value());

  Write(*OpenDatabase(), "DROP TABLE rolled");
  EXPECT_TRUE(OpenStore(where()).has_value());
}

}  // namespace
}  // namespace tactus::knowledge
