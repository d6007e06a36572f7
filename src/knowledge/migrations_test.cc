// Without these an upgrade could lose what a cluster has learnt, or an older program could write
// into a schema that it does not understand.
#include "knowledge/sql/migrations.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knowledge/sqlite/sqlite_database.h"
#include "knowledge/store_case_test.h"
#ifdef TACTUS_HAVE_LIBPQ
#include "knowledge/postgres/postgres_database.h"
#endif

namespace tactus::knowledge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MigrationsTest : public StoreCase {
 protected:
  std::unique_ptr<Database> OpenDatabase() const {
#ifdef TACTUS_HAVE_LIBPQ
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
        Must(OpenDatabase()->Run("SELECT version FROM schema_version", {})).rows.at(0).at(0));
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
          "INSERT INTO pipeline (name, source, slo_ns, declaration) "
          "VALUES ('street', 'cam1', 200000000, '{}');"
          "INSERT INTO stage (pipeline, number, name, model, items, in_kb, out_kb) "
          "VALUES ('street', 0, 'detect', 'nanodet', 1, 900, 30.25);"
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
  EXPECT_EQ(Must(store->LinkBandwidth("yard", "rack", {kNoon, kNoon + std::chrono::hours(1)})),
            12.5);
  // And it goes on as a store of today: terms, numbers of events.
  Must(store->Commit(Batch{.term = 1, .events = {{0, kNoon, "d", "", ""}}}));
  EXPECT_EQ(Must(store->Events({kNoon, kNoon + std::chrono::hours(1)})).back().number, 2u);
  EXPECT_EQ(Must(store->HighestSeen()).term, 1u);
}

// A year of rates is worth more than a tidy schema.
TEST_P(MigrationsTest, TheRollUpsOfAnEarlierTactusStay) {
  ASSERT_TRUE(Migrate(*OpenDatabase(), 4).has_value());
  Write(*OpenDatabase(),
        "INSERT INTO network_hour (at, from_site, to_site, mbps, rtt_ns, loss, samples) "
        "VALUES (1772366400000000, 'yard', 'rack', 12.5, 1000, 0, 360);"
        "INSERT INTO rolled (name, until) VALUES ('network_hour', 1772366400000000)");
  Open();
  EXPECT_EQ(
      Must(OpenDatabase()->Run("SELECT samples FROM network_hour WHERE mbps = $1", {12.5})).rows,
      std::vector<Row>{{std::int64_t{360}}});
  EXPECT_FALSE(OpenDatabase()->Run("SELECT * FROM outcome_hour", {}).has_value());
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
  EXPECT_FALSE(OpenDatabase()->Run("SELECT * FROM arrival_minute", {}).has_value());

  Write(*OpenDatabase(), "DROP TABLE rolled");
  EXPECT_TRUE(OpenStore(where()).has_value());
}

}  // namespace
}  // namespace tactus::knowledge
