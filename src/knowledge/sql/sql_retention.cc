// Retention: what is old is rolled up, then deleted, in transactions that are small enough for a
// controller to write its samples between them.
#include <algorithm>
#include <string>

#include "knowledge/sql/rows.h"
#include "knowledge/sql/sql_store.h"

namespace tactus::knowledge {
namespace {

using std::chrono::microseconds;

constexpr microseconds kMinute = std::chrono::minutes(1);
constexpr microseconds kHour = std::chrono::hours(1);
// Rolled up by one transaction.
constexpr microseconds kMinutesAtOnce = std::chrono::hours(1);
constexpr microseconds kHoursAtOnce = std::chrono::days(1);

UtcTime Floored(UtcTime at, microseconds unit) {
  return UtcTime(at.time_since_epoch() / unit * unit);
}

// One table of samples with its two roll-ups.
class SampleTable {
 public:
  SampleTable(Database& database, std::string name, std::vector<Column> columns)
      : database_(database), name_(std::move(name)), columns_(std::move(columns)) {}

  Status Retain(UtcTime now, const Retention& limits, Retained& retained) {
    const std::string minutes = name_ + "_minute", hours = name_ + "_hour";
    const UtcTime settled = now - limits.settle;
    auto by_minute = RollUp({name_, minutes, kMinute, kMinutesAtOnce, false}, settled, retained);
    if (!by_minute) return std::unexpected(by_minute.error());
    // An hour is made of its minutes, so it waits for them.
    auto by_hour = RollUp({minutes, hours, kHour, kHoursAtOnce, true},
                          std::min(settled, *by_minute), retained);
    if (!by_hour) return std::unexpected(by_hour.error());

    // Nothing goes that was not rolled up.
    auto raw = database_.Forget(name_, std::min(now - limits.raw, *by_minute), limits.most_deleted);
    if (!raw) return std::unexpected(raw.error());
    retained.deleted += raw->first;
    retained.partitions += raw->second;
    if (raw->first >= limits.most_deleted) retained.done = false;
    if (auto gone = Delete(minutes, std::min(now - limits.minutes, *by_hour), limits, retained);
        !gone) {
      return gone;
    }
    return Delete(hours, now - limits.hours, limits, retained);
  }

 private:
  struct Roll {
    std::string from, to;
    microseconds unit, at_once;
    bool weighted;
  };

  // The instant in the first cell; nothing where there is no row.
  Expected<std::optional<UtcTime>> Instant(const std::string& sql, const Row& values) {
    auto rows = database_.Query(sql, values);
    if (!rows) return std::unexpected(rows.error());
    if (rows->empty()) return std::nullopt;
    UtcTime at;
    Decode(rows->at(0).at(0), at);
    return at;
  }

  // Makes the roll-up complete up to `settled`, floored to its unit. Up to when it is complete.
  Expected<UtcTime> RollUp(const Roll& roll, UtcTime settled, Retained& retained) {
    auto known = Instant("SELECT until FROM rolled WHERE name = $1", {roll.to});
    if (!known) return std::unexpected(known.error());
    UtcTime until = known->value_or(UtcTime{});
    const UtcTime end = Floored(settled, roll.unit);
    while (until < end) {
      // Where nothing was sampled, nothing is to be rolled up.
      auto first = Instant("SELECT at FROM " + roll.from + " WHERE at >= $1 ORDER BY at LIMIT 1",
                           {Encode(until)});
      if (!first) return std::unexpected(first.error());
      const UtcTime begin = *first ? std::min(Floored(**first, roll.unit), end) : end;
      const UtcTime next = std::min(begin + roll.at_once, end);
      if (auto done = RollSpan(roll, begin, next, retained); !done) {
        return std::unexpected(done.error());
      }
      until = next;
    }
    return until;
  }

  Status RollSpan(const Roll& roll, UtcTime begin, UtcTime end, Retained& retained) {
    auto transaction = Transaction::Begin(database_);
    if (!transaction) return std::unexpected(transaction.error());
    auto made = database_.Execute(RollUpSql(roll.from, roll.to, columns_, roll.unit, roll.weighted),
                                  {Encode(begin), Encode(end)});
    if (!made) return std::unexpected(made.error());
    auto noted = database_.Execute(
        "INSERT INTO rolled (name, until) VALUES ($1, $2) "
        "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
        {roll.to, Encode(end)});
    if (!noted) return std::unexpected(noted.error());
    if (auto done = transaction->Commit(); !done) return done;
    retained.rolled += *made;
    return {};
  }

  // Rows of a roll-up before that instant.
  Status Delete(const std::string& table, UtcTime before, const Retention& limits,
                Retained& retained) {
    const std::string id(database_.dialect().row_id);
    auto transaction = Transaction::Begin(database_);
    if (!transaction) return std::unexpected(transaction.error());
    auto gone = database_.Execute("DELETE FROM " + table + " WHERE " + id + " IN (SELECT " + id +
                                      " FROM " + table + " WHERE at < $1 LIMIT $2)",
                                  {Encode(before), limits.most_deleted});
    if (!gone) return std::unexpected(gone.error());
    if (auto done = transaction->Commit(); !done) return done;
    retained.deleted += *gone;
    if (*gone >= limits.most_deleted) retained.done = false;
    return {};
  }

  Database& database_;
  std::string name_;
  std::vector<Column> columns_;
};

template <class Sample>
SampleTable TableOf(Database& database) {
  return {database, Fields<Sample>::kTable, ColumnsOf<Sample>()};
}

Status ForgetPlansAndEvents(Database& database, UtcTime before, Retained& retained) {
  auto transaction = Transaction::Begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto plans = database.Execute(
      "DELETE FROM plan WHERE made < $1 AND epoch < "
      "(SELECT max(epoch) FROM plan WHERE fate = 'adopted')",
      {Encode(before)});
  if (!plans) return std::unexpected(plans.error());
  auto events = database.Execute("DELETE FROM event WHERE at < $1", {Encode(before)});
  if (!events) return std::unexpected(events.error());
  if (auto done = transaction->Commit(); !done) return done;
  retained.deleted += *plans + *events;
  return {};
}

}  // namespace

Expected<Retained> RetainSamples(Database& database, UtcTime now, const Retention& limits) {
  Retained retained;
  SampleTable tables[] = {TableOf<ArrivalSample>(database), TableOf<BatchLatencySample>(database),
                          TableOf<OutcomeSample>(database), TableOf<NetworkSample>(database),
                          TableOf<DeviceLoadSample>(database)};
  for (SampleTable& table : tables) {
    if (auto kept = table.Retain(now, limits, retained); !kept) {
      return std::unexpected(kept.error());
    }
  }
  if (auto kept = ForgetPlansAndEvents(database, now - limits.hours, retained); !kept) {
    return std::unexpected(kept.error());
  }
  return retained;
}

}  // namespace tactus::knowledge
