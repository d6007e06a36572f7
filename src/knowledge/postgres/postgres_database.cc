#include "knowledge/postgres/postgres_database.h"

#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pqxx/pqxx>

#include "knowledge/postgres/connection_text.h"
#include "knowledge/postgres/postgres_error.h"

namespace tactus::knowledge {
namespace {

using Day = std::chrono::sys_days;

// Of the lock that keeps two programs from migrating at once: "tactus" in ASCII.
constexpr std::string_view kSchemaLock = "SELECT pg_advisory_xact_lock(127970252580211)";
// A statement of ours takes milliseconds; without a limit, a server that hangs would hold us too.
constexpr const char* kSettings =
    "SET client_min_messages = warning; SET statement_timeout = '30s'; SET lock_timeout = '5s'; "
    "SET synchronous_commit = on; SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'";

// PostgreSQL's numbers of its types (pg_type.dat).
constexpr unsigned kInt2 = 21, kInt4 = 23, kInt8 = 20, kFloat8 = 701;

std::string TextOf(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<std::string>(value);
}

std::vector<std::string> TextsOf(const Row& row) {
  std::vector<std::string> texts;
  for (const Value& value : row) texts.push_back(TextOf(value));
  return texts;
}

Value ValueOf(const pqxx::field& field) {
  switch (field.type()) {
    case kInt2:
    case kInt4:
    case kInt8:
      return field.as<std::int64_t>();
    case kFloat8: {
      double real = 0;
      std::from_chars(field.c_str(), field.c_str() + field.size(), real);
      return real;
    }
    default:
      return std::string(field.c_str(), field.size());
  }
}

std::vector<Row> RowsOf(const pqxx::result& result) {
  std::vector<Row> rows;
  for (const auto& each : result) {
    Row row;
    for (const auto& field : each) row.push_back(ValueOf(field));
    rows.push_back(std::move(row));
  }
  return rows;
}

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

// A row into COPY. libpqxx takes tuples, whose length is known when it is compiled.
template <std::size_t length = 1>
void PutRow(pqxx::stream_to& stream, const Row& row) {
  constexpr std::size_t kMostColumns = 12;
  if (row.size() == length) {
    [&]<std::size_t... column>(std::index_sequence<column...>) {
      stream << std::make_tuple(TextOf(row[column])...);
    }
    (std::make_index_sequence<length>());
  } else if constexpr (length < kMostColumns) {
    PutRow<length + 1>(stream, row);
  } else {
    throw std::length_error("a sample of more columns than PutRow writes");
  }
}

class PostgresDatabase : public Database {
 public:
  explicit PostgresDatabase(const std::string& uri) : uri_(WithLimits(uri)), place_(PlaceOf(uri)) {}

  const std::string& place() const override { return place_; }
  Dialect dialect() const override {
    return {.partitioned = "PARTITION BY RANGE (at)", .row_id = "ctid"};
  }

  Status Begin() override {
    return Try("BEGIN", [&] { transaction_.emplace(Connected()); });
  }
  Status Commit() override {
    auto done = Try("COMMIT", [&] { transaction_->commit(); });
    if (done) known_days_.merge(new_days_);
    Rollback();
    return done;
  }
  void Rollback() override {
    transaction_.reset();  // rolls back what was not committed
    new_days_.clear();
  }
  Status LockSchema() override {
    return Try("schema lock", [&] { transaction_->exec(std::string(kSchemaLock)); });
  }

  Status Script(const std::string& sql) override {
    return Try(sql, [&] { transaction_->exec(sql); });
  }

  Expected<std::int64_t> Execute(const std::string& sql, const Row& values) override {
    std::int64_t changed = 0;
    auto done = Try(sql, [&] { changed = std::int64_t(Run(sql, values).affected_rows()); });
    if (!done) return std::unexpected(done.error());
    return changed;
  }
  Expected<std::vector<Row>> Query(const std::string& sql, const Row& values) override {
    std::vector<Row> rows;
    auto done = Try(sql, [&] { rows = RowsOf(Run(sql, values)); });
    if (!done) return std::unexpected(done.error());
    return rows;
  }

  Status Append(const std::string& table, const std::vector<std::string>& columns,
                const std::vector<Row>& rows) override;
  Expected<std::pair<std::int64_t, std::int64_t>> Forget(const std::string& table, UtcTime before,
                                                         std::int64_t most) override;

 private:
  // Runs what may throw. A connection that is lost takes its transaction along.
  template <class Work>
  Status Try(const std::string& what, Work&& work) {
    try {
      work();
      return {};
    } catch (const std::exception& thrown) {
      Error error = PostgresError(place_, what, thrown);
      if (IsConnectionLost(thrown)) {
        Rollback();
        Disconnect();
      }
      return std::unexpected(std::move(error));
    }
  }

  pqxx::connection& Connected() {
    if (connection_ && connection_->is_open()) return *connection_;
    Disconnect();
    connection_ = std::make_unique<pqxx::connection>(uri_);
    pqxx::nontransaction(*connection_).exec(kSettings);
    return *connection_;
  }
  void Disconnect() {
    connection_.reset();
    statements_.clear();
    known_days_.clear();
  }

  // The statement, prepared once for each connection.
  pqxx::result Run(const std::string& sql, const Row& values) {
    auto& connection = transaction_ ? *connection_ : Connected();
    auto [name, is_new] = statements_.try_emplace(sql, fmt::format("s{}", statements_.size()));
    if (is_new) connection.prepare(name->second, sql);
    const std::vector<std::string> texts = TextsOf(values);
    const auto parameters = pqxx::prepare::make_dynamic_params(texts);
    if (transaction_) return transaction_->exec_prepared(name->second, parameters);
    pqxx::nontransaction alone(connection);
    return alone.exec_prepared(name->second, parameters);
  }

  std::string uri_, place_;
  std::unique_ptr<pqxx::connection> connection_;
  std::map<std::string, std::string> statements_;  // the names of those that are prepared
  std::optional<pqxx::work> transaction_;          // ends before its connection
  // Partitions that are there; those that the transaction makes.
  std::set<std::string> known_days_, new_days_;
};

Status PostgresDatabase::Append(const std::string& table, const std::vector<std::string>& columns,
                                const std::vector<Row>& rows) {
  return Try("COPY " + table, [&] {
    for (const Row& row : rows) {
      const UtcTime at{std::chrono::microseconds(std::get<std::int64_t>(row.at(0)))};
      const Day day = std::chrono::floor<std::chrono::days>(at);
      const std::string partition = PartitionOf(table, day);
      if (known_days_.contains(partition) || !new_days_.insert(partition).second) continue;
      transaction_->exec(fmt::format(
          "CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})", partition,
          table, MicrosecondsOf(day), MicrosecondsOf(day + std::chrono::days(1))));
    }
    pqxx::stream_to stream(*transaction_, table, columns);
    for (const Row& row : rows) PutRow(stream, row);
    stream.complete();
  });
}

Expected<std::pair<std::int64_t, std::int64_t>> PostgresDatabase::Forget(const std::string& table,
                                                                         UtcTime before,
                                                                         std::int64_t) {
  auto partitions = Query(
      "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
      "WHERE inhparent = CAST(CAST($1 AS TEXT) AS regclass) ORDER BY 1",
      {table});
  if (!partitions) return std::unexpected(partitions.error());
  std::int64_t days = 0;
  for (const Row& row : *partitions) {
    const std::string& name = std::get<std::string>(row.at(0));
    const auto day = DayOf(name);
    if (!day || UtcTime(*day + std::chrono::days(1)) > before) continue;
    auto transaction = Transaction::Begin(*this);
    if (!transaction) return std::unexpected(transaction.error());
    if (auto gone = Script("DROP TABLE " + name); !gone) return std::unexpected(gone.error());
    if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
    known_days_.erase(name);
    ++days;
  }
  return std::pair{std::int64_t{0}, days};
}

}  // namespace

Expected<std::unique_ptr<Database>> OpenPostgres(const std::string& uri) {
  auto database = std::make_unique<PostgresDatabase>(uri);
  if (auto here = database->Query("SELECT 1", {}); !here) return std::unexpected(here.error());
  return database;
}

}  // namespace tactus::knowledge
