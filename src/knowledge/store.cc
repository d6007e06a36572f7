#include "knowledge/store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "knowledge/batch_check.h"
#include "knowledge/sql/migrations.h"
#include "knowledge/sql/rows.h"
#include "knowledge/sqlite/sqlite_database.h"
#ifdef TACTUS_HAVE_LIBPQ
#include "knowledge/postgres/postgres_database.h"
#endif

namespace tactus::knowledge {
namespace {

// Writes one batch, within a transaction.
class BatchWriter {
 public:
  explicit BatchWriter(Database& database) : database_(database) {}

  Status Write(const Batch& batch) {
    Status status;
    ForEachList(batch, [&](const auto& list) {
      if (status && !list.empty()) status = Put(list);
    });
    return status;
  }

 private:
  template <class Sample>
  Status Put(const std::vector<Sample>& samples) {
    std::vector<Row> rows;
    for (const Sample& sample : samples) rows.push_back(RowOf(sample));
    return database_.Append(Fields<Sample>::kTable, ColumnsOf<Sample>(), rows);
  }

  Status Put(const std::vector<Plan>& plans) {
    const std::string sql = InsertSql<Plan>() + " ON CONFLICT (epoch) DO NOTHING";
    for (const Plan& plan : plans) {
      auto put = database_.Run(sql, RowOf(plan));
      if (!put) return std::unexpected(put.error());
      if (put->changed == 0) {
        return Fail(ErrorCode::kAlreadyExists,
                    fmt::format("{}: a plan of epoch {} is there already; number new plans from "
                                "the highest epoch on",
                                database_.place(), plan.epoch));
      }
    }
    return {};
  }

  Status Put(const std::vector<Verdict>& verdicts) {
    for (const Verdict& verdict : verdicts) {
      auto put = database_.Run(
          "UPDATE plan SET fate = $1, decided = $2, why = $3 WHERE epoch = $4",
          {Encode(verdict.fate), Encode(verdict.decided), verdict.why, Encode(verdict.epoch)});
      if (!put) return std::unexpected(put.error());
      if (put->changed == 0) {
        return NotFound(fmt::format("{}: no plan of epoch {}, which was {}; write the plan first",
                                    database_.place(), verdict.epoch, NameOf(verdict.fate)));
      }
    }
    return {};
  }

  Status Put(const std::vector<Event>& events) {
    const auto count = static_cast<std::int64_t>(events.size());
    auto last = database_.Run(
        "UPDATE counter SET value = value + $1 WHERE name = 'event' RETURNING value", {count});
    if (!last) return std::unexpected(last.error());
    std::int64_t number = std::get<std::int64_t>(last->rows.at(0).at(0)) - count;
    for (Event event : events) {
      event.number = static_cast<std::uint64_t>(++number);
      auto put = database_.Run(InsertSql<Event>(), RowOf(event));
      if (!put) return std::unexpected(put.error());
    }
    return {};
  }

  Database& database_;
};

// In order.
template <class Record>
Expected<std::vector<Record>> Select(Database& database, std::string_view where,
                                     const Row& values) {
  auto found = database.Run(
      fmt::format("SELECT {} FROM {} WHERE {} ORDER BY {}", fmt::join(ColumnsOf<Record>(), ", "),
                  Fields<Record>::kTable, where, Fields<Record>::kOrder),
      values);
  if (!found) return std::unexpected(found.error());
  std::vector<Record> records;
  for (const Row& row : found->rows) records.push_back(RecordOf<Record>(row));
  return records;
}

template <class Record>
Expected<std::vector<Record>> Within(Database& database, Window window, const char* column = "at") {
  return Select<Record>(database, fmt::format("{0} >= $1 AND {0} < $2", column),
                        {Encode(window.begin), Encode(window.end)});
}

Expected<std::unique_ptr<Database>> OpenDatabase(std::string_view where) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    return OpenSqlite(std::string(where.substr(kSqlite.size())));
  }
  if (where.starts_with("postgresql://") || where.starts_with("postgres://")) {
#ifdef TACTUS_HAVE_LIBPQ
    return OpenPostgres(where);
#else
    return InvalidArgument(
        "a knowledge base in PostgreSQL: this tactus was built without libpq; "
        "run ./run build postgres, or take sqlite:PATH");
#endif
  }
  return InvalidArgument("no knowledge base is called '" + std::string(where) +
                         "'; write sqlite:PATH or postgresql://USER@HOST:PORT/DATABASE");
}

}  // namespace

Expected<std::unique_ptr<Store>> OpenStore(std::string_view where) {
  auto database = OpenDatabase(where);
  if (!database) return std::unexpected(database.error());
  if (auto migrated = Migrate(**database); !migrated) return std::unexpected(migrated.error());
  return std::make_unique<Store>(*std::move(database));
}

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}

Store::~Store() = default;

const std::string& Store::place() const { return database_->place(); }

Expected<Written> Store::Commit(const Batch& batch) {
  if (auto sound = CheckBatch(batch); !sound) return std::unexpected(sound.error());
  auto transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  const auto fenced = Fence(batch);
  if (!fenced || *fenced == Written::kBefore) return fenced;
  if (auto written = BatchWriter(*database_).Write(batch); !written) {
    return std::unexpected(written.error());
  }
  if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
  return Written::kNow;
}

Expected<Written> Store::Fence(const Batch& batch) {
  // One row: it also makes writers of PostgreSQL wait for each other.
  auto taken = database_->Run(
      "UPDATE leader SET "
      "sequence = CASE WHEN CAST($1 AS BIGINT) > 0 THEN CAST($1 AS BIGINT) "
      "WHEN term = CAST($2 AS BIGINT) THEN sequence ELSE 0 END, "
      "term = CAST($2 AS BIGINT) WHERE term < CAST($2 AS BIGINT) OR "
      "(term = CAST($2 AS BIGINT) AND "
      "(CAST($1 AS BIGINT) = 0 OR sequence < CAST($1 AS BIGINT)))",
      {Encode(batch.sequence), Encode(batch.term)});
  if (!taken) return std::unexpected(taken.error());
  if (taken->changed > 0) return Written::kNow;
  auto leader = database_->Run("SELECT term FROM leader", {});
  if (!leader) return std::unexpected(leader.error());
  const auto term = std::get<std::int64_t>(leader->rows.at(0).at(0));
  if (term == static_cast<std::int64_t>(batch.term)) return Written::kBefore;
  return Fail(ErrorCode::kCancelled,
              fmt::format("{}: term {} is over, a controller of term {} has written since; stop "
                          "leading, and acquire a new term",
                          place(), batch.term, term));
}

Expected<Retained> Store::Retain(UtcTime now, const Retention& limits) {
  Retained retained;
  for (const char* table : {Fields<ArrivalSample>::kTable, Fields<NetworkSample>::kTable}) {
    auto gone = database_->Forget(table, now - limits.samples, limits.most_deleted);
    if (!gone) return std::unexpected(gone.error());
    retained.deleted += gone->first;
    retained.partitions += gone->second;
    if (gone->first >= limits.most_deleted) retained.done = false;
  }
  auto transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  for (const char* sql : {"DELETE FROM plan WHERE made < $1 AND epoch < "
                          "(SELECT max(epoch) FROM plan WHERE fate = 'adopted')",
                          "DELETE FROM event WHERE at < $1"}) {
    auto gone = database_->Run(sql, {Encode(now - limits.plans_and_events)});
    if (!gone) return std::unexpected(gone.error());
    retained.deleted += gone->changed;
  }
  if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
  return retained;
}

Expected<Written> Store::Use(const TokenUse& use) {
  constexpr std::chrono::days kForgetAfter{30};
  auto transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  auto gone =
      database_->Run("DELETE FROM token_use WHERE expires < $1", {Encode(use.at - kForgetAfter)});
  if (!gone) return std::unexpected(gone.error());
  auto put = database_->Run(InsertSql<TokenUse>() + " ON CONFLICT (token) DO NOTHING", RowOf(use));
  if (!put) return std::unexpected(put.error());
  if (put->changed == 0) {
    auto found = Select<TokenUse>(*database_, "token = $1", {use.token});
    if (!found) return std::unexpected(found.error());
    if (!found->empty() && found->front().public_key == use.public_key) return Written::kBefore;
    return Fail(ErrorCode::kAlreadyExists, place() + ": the token was used before");
  }
  if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
  return Written::kNow;
}

Expected<std::vector<ArrivalSample>> Store::Arrivals(Window window) {
  return Within<ArrivalSample>(*database_, window);
}

Expected<std::vector<NetworkSample>> Store::NetworkSamples(Window window) {
  return Within<NetworkSample>(*database_, window);
}

Expected<std::optional<double>> Store::LinkBandwidth(std::string_view from_site,
                                                     std::string_view to_site, Window window,
                                                     double quantile) {
  auto found = database_->Run(
      "SELECT mbps FROM network WHERE from_site = $1 AND to_site = $2 AND at >= $3 AND at < $4 "
      "ORDER BY mbps",
      {std::string(from_site), std::string(to_site), Encode(window.begin), Encode(window.end)});
  if (!found) return std::unexpected(found.error());
  const auto count = static_cast<std::int64_t>(found->rows.size());
  if (count == 0) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(std::ceil(quantile * static_cast<double>(count)));
  const auto at = std::clamp<std::int64_t>(rank - 1, 0, count - 1);
  return std::get<double>(found->rows.at(static_cast<std::size_t>(at)).at(0));
}

Expected<std::optional<Plan>> Store::LastAdoptedPlan() {
  auto plans =
      Select<Plan>(*database_, "epoch = (SELECT max(epoch) FROM plan WHERE fate = 'adopted')", {});
  if (!plans) return std::unexpected(plans.error());
  if (plans->empty()) return std::nullopt;
  return std::move(plans->front());
}

Expected<std::vector<Plan>> Store::Plans(Window made) {
  return Within<Plan>(*database_, made, "made");
}

Expected<Plan> Store::PlanOf(std::uint64_t epoch) {
  auto plans = Select<Plan>(*database_, "epoch = $1", {Encode(epoch)});
  if (!plans) return std::unexpected(plans.error());
  if (plans->empty()) {
    return NotFound(
        fmt::format("{}: no plan of epoch {}; it was never written, or is older than "
                    "plans are kept",
                    place(), epoch));
  }
  return std::move(plans->front());
}

Expected<Highest> Store::HighestSeen() {
  auto found = database_->Run(
      "SELECT (SELECT coalesce(max(epoch), 0) FROM plan), (SELECT max(term) FROM leader)", {});
  if (!found) return std::unexpected(found.error());
  Highest highest;
  Decode(found->rows.at(0).at(0), highest.epoch);
  Decode(found->rows.at(0).at(1), highest.term);
  return highest;
}

Expected<std::vector<Event>> Store::Events(Window window) {
  return Within<Event>(*database_, window);
}

}  // namespace tactus::knowledge
