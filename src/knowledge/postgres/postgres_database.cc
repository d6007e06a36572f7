#include "knowledge/postgres/postgres_database.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "knowledge/postgres/postgres_connection.h"

namespace tactus::knowledge {
namespace {

using Day = std::chrono::sys_days;

// Keeps two programs from migrating at once: "tactus" in ASCII.
constexpr std::string_view kSchemaLock = "SELECT pg_advisory_xact_lock(127970252580211)";
// A statement of ours takes milliseconds; without a limit, a server that hangs would hold us too.
constexpr const char* kSettings =
    "SET client_min_messages = warning; SET statement_timeout = '30s'; SET lock_timeout = '5s'; "
    "SET synchronous_commit = on; SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'";

std::int64_t MicrosecondsOf(Day day) { return UtcTime(day).time_since_epoch().count(); }

std::string PartitionOf(const std::string& table, Day day) {
  return fmt::format("{}_d{:%Y%m%d}", table, std::chrono::system_clock::time_point(day));
}

// The day that PartitionOf made the name of; nothing for another name.
std::optional<Day> DayOf(const std::string& partition) {
  const std::size_t at = partition.rfind("_d");
  if (at == std::string::npos || partition.size() != at + 10) return std::nullopt;
  int number = 0;
  const char* begin = partition.data() + at + 2;
  if (std::from_chars(begin, begin + 8, number).ptr != begin + 8) return std::nullopt;
  return Day(std::chrono::year(number / 10'000) / (number / 100 % 100) / (number % 100));
}

class PostgresDatabase : public Database {
 public:
  explicit PostgresDatabase(std::string_view uri) : connection_(uri) {}

  const std::string& place() const override { return connection_.place(); }
  Dialect dialect() const override {
    return {.partitioned = "PARTITION BY RANGE (at)", .lock_schema = kSchemaLock};
  }

  Status Begin() override {
    if (auto begun = Script("BEGIN"); !begun) return begun;
    is_begun_ = true;
    return {};
  }
  Status Commit() override {
    auto done = Script("COMMIT");
    if (done) is_begun_ = false;
    Rollback();
    return done;
  }
  void Rollback() override {
    // With its connection a transaction is gone.
    if (std::exchange(is_begun_, false) && connection_.is_open()) (void)Script("ROLLBACK");
  }

  Status Script(const std::string& sql) override {
    if (auto ran = Run(sql, {}); !ran) return std::unexpected(ran.error());
    return {};
  }
  Expected<Answer> Run(const std::string& sql, const Row& values) override {
    if (auto open = Connect(); !open) return std::unexpected(open.error());
    return connection_.Run(sql, values);
  }

  Status Append(const std::string& table, const std::vector<std::string>& columns,
                const std::vector<Row>& rows) override;
  Expected<std::pair<std::int64_t, std::int64_t>> Forget(const std::string& table, UtcTime before,
                                                         std::int64_t most) override;

 private:
  // Unless it is connected. Not within a transaction, whose first half would be missing.
  Status Connect() {
    if (connection_.is_open()) return {};
    if (is_begun_) {
      return Fail(ErrorCode::kUnavailable,
                  place() + ": the connection was lost within a transaction; try again");
    }
    if (auto open = connection_.Open(); !open) return open;
    if (auto set = connection_.Run(kSettings); !set) return std::unexpected(set.error());
    return {};
  }

  PostgresConnection connection_;
  bool is_begun_ = false;  // a transaction
};

Status PostgresDatabase::Append(const std::string& table, const std::vector<std::string>& columns,
                                const std::vector<Row>& rows) {
  std::set<Day> days;
  for (const Row& row : rows) {
    const UtcTime at{std::chrono::microseconds(std::get<std::int64_t>(row.at(0)))};
    days.insert(std::chrono::floor<std::chrono::days>(at));
  }
  for (const Day day : days) {
    auto made = Script(
        fmt::format("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})",
                    PartitionOf(table, day), table, MicrosecondsOf(day),
                    MicrosecondsOf(day + std::chrono::days(1))));
    if (!made) return made;
  }
  if (auto open = Connect(); !open) return open;
  return connection_.Copy(fmt::format("COPY {} ({}) FROM STDIN", table, fmt::join(columns, ", ")),
                          rows);
}

Expected<std::pair<std::int64_t, std::int64_t>> PostgresDatabase::Forget(const std::string& table,
                                                                         UtcTime before,
                                                                         std::int64_t) {
  auto partitions =
      Run("SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
          "WHERE inhparent = CAST(CAST($1 AS TEXT) AS regclass) ORDER BY 1",
          {table});
  if (!partitions) return std::unexpected(partitions.error());
  std::int64_t days = 0;
  for (const Row& row : partitions->rows) {
    const std::string& name = std::get<std::string>(row.at(0));
    const auto day = DayOf(name);
    if (!day || UtcTime(*day + std::chrono::days(1)) > before) continue;
    auto transaction = Transaction::Begin(*this);
    if (!transaction) return std::unexpected(transaction.error());
    if (auto gone = Script("DROP TABLE " + name); !gone) return std::unexpected(gone.error());
    if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
    ++days;
  }
  return std::pair{std::int64_t{0}, days};
}

}  // namespace

Expected<std::unique_ptr<Database>> OpenPostgres(std::string_view uri) {
  auto database = std::make_unique<PostgresDatabase>(uri);
  if (auto here = database->Script("SELECT 1"); !here) return std::unexpected(here.error());
  return database;
}

}  // namespace tactus::knowledge
