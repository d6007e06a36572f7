#include "knowledge/sql/sql_store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "knowledge/batch_check.h"
#include "knowledge/sql/migrations.h"
#include "knowledge/sql/rows.h"

namespace tactus::knowledge {
namespace {

std::vector<std::string> ColumnNames(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

// Writes one batch, within a transaction.
class BatchWriter {
 public:
  explicit BatchWriter(Database& database) : database_(database) {}

  Status Write(const Batch& batch) {
    Status status;
    ForEachList(batch, [&](const auto& list) {
      if (status) status = Put(list);
    });
    return status;
  }

 private:
  template <class Record>
  static constexpr bool kIsSample = requires(Record r) {
    r.at;
  }
  &&!std::same_as<Record, Event>;

  Status Run(const std::string& sql, const Row& row) {
    auto ran = database_.Execute(sql, row);
    if (!ran) return std::unexpected(ran.error());
    return {};
  }

  template <class Record>
  Status Put(const std::vector<Record>& list) {
    if (list.empty()) return {};
    const std::vector<Column> columns = ColumnsOf<Record>();
    if constexpr (kIsSample<Record>) {
      std::vector<Row> rows;
      for (const Record& record : list) rows.push_back(RowOf(record));
      return database_.Append(Fields<Record>::kTable, ColumnNames(columns), rows);
    } else {
      const std::string sql = UpsertSql(Fields<Record>::kTable, columns);
      for (const Record& record : list) {
        if (auto put = Run(sql, RowOf(record)); !put) return put;
      }
      return {};
    }
  }

  Status Put(const std::vector<Pipeline>& pipelines) {
    if (auto put = Put<Pipeline>(pipelines); !put) return put;
    const std::string sql = InsertSql("stage", ColumnsOf<StageOfPipeline>());
    for (const Pipeline& pipeline : pipelines) {
      auto gone = Run("DELETE FROM stage WHERE pipeline = $1", {pipeline.name});
      if (!gone) return gone;
      for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        const StageOfPipeline stage{pipeline.name, static_cast<std::int64_t>(i),
                                    pipeline.stages[i]};
        if (auto put = Run(sql, RowOf(stage)); !put) return put;
      }
    }
    return {};
  }

  Status Put(const std::vector<Plan>& plans) {
    const std::string sql =
        InsertSql("plan", ColumnsOf<Plan>()) + " ON CONFLICT (epoch) DO NOTHING";
    for (const Plan& plan : plans) {
      auto put = database_.Execute(sql, RowOf(plan));
      if (!put) return std::unexpected(put.error());
      if (*put == 0) {
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
      auto put = database_.Execute(
          "UPDATE plan SET fate = $1, decided = $2, why = $3 WHERE epoch = $4",
          {Encode(verdict.fate), Encode(verdict.decided), verdict.why, Encode(verdict.epoch)});
      if (!put) return std::unexpected(put.error());
      if (*put == 0) {
        return NotFound(fmt::format("{}: no plan of epoch {}, which was {}; write the plan first",
                                    database_.place(), verdict.epoch, NameOf(verdict.fate)));
      }
    }
    return {};
  }

  Status Put(const std::vector<Event>& events) {
    if (events.empty()) return {};
    const auto count = static_cast<std::int64_t>(events.size());
    auto last = database_.Query(
        "UPDATE counter SET value = value + $1 WHERE name = 'event' RETURNING value", {count});
    if (!last) return std::unexpected(last.error());
    std::int64_t number = std::get<std::int64_t>(last->at(0).at(0)) - count;
    const std::string sql = InsertSql("event", ColumnsOf<Event>());
    for (Event event : events) {
      event.number = static_cast<std::uint64_t>(++number);
      if (auto put = Run(sql, RowOf(event)); !put) return put;
    }
    return {};
  }

  Database& database_;
};

class SqlStore : public Store {
 public:
  explicit SqlStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  const std::string& place() const override { return database_->place(); }

  Expected<Written> Commit(const Batch& batch) override;
  Expected<Written> Use(const TokenUse& use) override;

  Expected<std::vector<Device>> Devices() override { return All<Device>(); }
  Expected<std::vector<Link>> Links() override { return All<Link>(); }
  Expected<std::vector<Model>> Models() override { return All<Model>(); }
  Expected<std::vector<Pipeline>> Pipelines() override;
  Expected<std::vector<Profile>> Profiles() override { return All<Profile>(); }

  Expected<std::vector<ArrivalSample>> Arrivals(Window window, Resolution by) override {
    return Samples<ArrivalSample>(window, by);
  }
  Expected<std::vector<BatchLatencySample>> BatchLatencies(Window window, Resolution by) override {
    return Samples<BatchLatencySample>(window, by);
  }
  Expected<std::vector<OutcomeSample>> Outcomes(Window window, Resolution by) override {
    return Samples<OutcomeSample>(window, by);
  }
  Expected<std::vector<NetworkSample>> NetworkSamples(Window window, Resolution by) override {
    return Samples<NetworkSample>(window, by);
  }
  Expected<std::vector<DeviceLoadSample>> DeviceLoads(Window window, Resolution by) override {
    return Samples<DeviceLoadSample>(window, by);
  }
  Expected<std::optional<double>> LinkBandwidth(std::string_view from_site,
                                                std::string_view to_site, Window window,
                                                double quantile) override;

  Expected<std::optional<Plan>> LastAdoptedPlan() override;
  Expected<std::vector<Plan>> Plans(Window made) override {
    return Select<Plan>("", "made >= $1 AND made < $2", {Encode(made.begin), Encode(made.end)});
  }
  Expected<Plan> PlanOf(std::uint64_t epoch) override;
  Expected<Highest> HighestSeen() override;
  Expected<std::vector<Event>> Events(Window window) override {
    return Select<Event>("", "at >= $1 AND at < $2", {Encode(window.begin), Encode(window.end)});
  }
  Expected<std::vector<Event>> EventsSince(std::uint64_t number, std::size_t most) override;

  Expected<Retained> Retain(UtcTime now, const Retention& limits) override {
    return RetainSamples(*database_, now, limits);
  }

 private:
  // `table` empty: the record's own.
  template <class Record>
  Expected<std::vector<Record>> Select(std::string table, const std::string& where,
                                       const Row& values, const std::string& limit = "") {
    if (table.empty()) table = Fields<Record>::kTable;
    auto rows = database_->Query(SelectSql(table, ColumnsOf<Record>(), where) + limit, values);
    if (!rows) return std::unexpected(rows.error());
    std::vector<Record> records;
    for (const Row& row : *rows) records.push_back(RecordOf<Record>(row));
    return records;
  }
  template <class Record>
  Expected<std::vector<Record>> All() {
    return Select<Record>("", "", {});
  }
  template <class Record>
  Expected<std::vector<Record>> Samples(Window window, Resolution by) {
    std::string table = Fields<Record>::kTable;
    if (by == Resolution::kMinute) table += "_minute";
    if (by == Resolution::kHour) table += "_hour";
    return Select<Record>(std::move(table), "at >= $1 AND at < $2",
                          {Encode(window.begin), Encode(window.end)});
  }
  // Takes the term and the sequence number, or says why not.
  Expected<Written> Fence(const Batch& batch);

  std::unique_ptr<Database> database_;
};

Expected<Written> SqlStore::Commit(const Batch& batch) {
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

Expected<Written> SqlStore::Use(const TokenUse& use) {
  constexpr std::chrono::days kForgetAfter{30};
  auto transaction = Transaction::Begin(*database_);
  if (!transaction) return std::unexpected(transaction.error());
  auto gone = database_->Execute("DELETE FROM token_use WHERE expires < $1",
                                 {Encode(use.at - kForgetAfter)});
  if (!gone) return std::unexpected(gone.error());
  auto put = database_->Execute(
      InsertSql("token_use", ColumnsOf<TokenUse>()) + " ON CONFLICT (token) DO NOTHING",
      RowOf(use));
  if (!put) return std::unexpected(put.error());
  if (*put == 0) {
    auto found = database_->Query("SELECT public_key FROM token_use WHERE token = $1", {use.token});
    if (!found) return std::unexpected(found.error());
    if (!found->empty() && std::get<std::string>(found->at(0).at(0)) == use.public_key) {
      return Written::kBefore;
    }
    return Fail(ErrorCode::kAlreadyExists, place() + ": the token was used before");
  }
  if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
  return Written::kNow;
}

Expected<Written> SqlStore::Fence(const Batch& batch) {
  // One row: it also makes writers of PostgreSQL wait for each other.
  auto taken = database_->Execute(
      "UPDATE leader SET "
      "sequence = CASE WHEN CAST($1 AS BIGINT) > 0 THEN CAST($1 AS BIGINT) "
      "WHEN term = CAST($2 AS BIGINT) THEN sequence ELSE 0 END, "
      "term = CAST($2 AS BIGINT) WHERE term < CAST($2 AS BIGINT) OR "
      "(term = CAST($2 AS BIGINT) AND "
      "(CAST($1 AS BIGINT) = 0 OR sequence < CAST($1 AS BIGINT)))",
      {Encode(batch.sequence), Encode(batch.term)});
  if (!taken) return std::unexpected(taken.error());
  if (*taken > 0) return Written::kNow;
  auto rows = database_->Query("SELECT term FROM leader", {});
  if (!rows) return std::unexpected(rows.error());
  const auto term = std::get<std::int64_t>(rows->at(0).at(0));
  if (term == static_cast<std::int64_t>(batch.term)) return Written::kBefore;
  return Fail(ErrorCode::kCancelled,
              fmt::format("{}: term {} is over, a controller of term {} has written since; stop "
                          "leading, and acquire a new term",
                          place(), batch.term, term));
}

Expected<std::vector<Pipeline>> SqlStore::Pipelines() {
  auto pipelines = All<Pipeline>();
  if (!pipelines) return pipelines;
  auto stages = All<StageOfPipeline>();
  if (!stages) return std::unexpected(stages.error());
  for (StageOfPipeline& stage : *stages) {
    auto owner = std::ranges::find(*pipelines, stage.pipeline, &Pipeline::name);
    if (owner != pipelines->end()) owner->stages.push_back(std::move(stage.stage));
  }
  return pipelines;
}

Expected<std::optional<double>> SqlStore::LinkBandwidth(std::string_view from_site,
                                                        std::string_view to_site, Window window,
                                                        double quantile) {
  const Row link = {std::string(from_site), std::string(to_site), Encode(window.begin),
                    Encode(window.end)};
  const std::string of_link =
      " FROM network WHERE from_site = $1 AND to_site = $2 AND at >= $3 AND at < $4";
  auto counted = database_->Query("SELECT count(*)" + of_link, link);
  if (!counted) return std::unexpected(counted.error());
  const auto count = std::get<std::int64_t>(counted->at(0).at(0));
  if (count == 0) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(std::ceil(quantile * static_cast<double>(count)));
  Row values = link;
  values.push_back(std::clamp<std::int64_t>(rank - 1, 0, count - 1));
  auto found =
      database_->Query("SELECT mbps" + of_link + " ORDER BY mbps LIMIT 1 OFFSET $5", values);
  if (!found) return std::unexpected(found.error());
  // Retention may have taken samples between the two.
  if (found->empty()) return std::nullopt;
  return std::get<double>(found->at(0).at(0));
}

Expected<std::optional<Plan>> SqlStore::LastAdoptedPlan() {
  auto plans = Select<Plan>("", "epoch = (SELECT max(epoch) FROM plan WHERE fate = 'adopted')", {});
  if (!plans) return std::unexpected(plans.error());
  if (plans->empty()) return std::nullopt;
  return std::move(plans->front());
}

Expected<Plan> SqlStore::PlanOf(std::uint64_t epoch) {
  auto plans = Select<Plan>("", "epoch = $1", {Encode(epoch)});
  if (!plans) return std::unexpected(plans.error());
  if (plans->empty()) {
    return NotFound(
        fmt::format("{}: no plan of epoch {}; it was never written, or is older than "
                    "plans are kept",
                    place(), epoch));
  }
  return std::move(plans->front());
}

Expected<Highest> SqlStore::HighestSeen() {
  auto rows = database_->Query(
      "SELECT (SELECT coalesce(max(epoch), 0) FROM plan), (SELECT max(term) FROM leader)", {});
  if (!rows) return std::unexpected(rows.error());
  Highest highest;
  Decode(rows->at(0).at(0), highest.epoch);
  Decode(rows->at(0).at(1), highest.term);
  return highest;
}

Expected<std::vector<Event>> SqlStore::EventsSince(std::uint64_t number, std::size_t most) {
  return Select<Event>("", "number > $1", {Encode(number), Encode(most)}, " LIMIT $2");
}

}  // namespace

Expected<std::unique_ptr<Store>> OpenSqlStore(std::unique_ptr<Database> database) {
  if (auto migrated = Migrate(*database); !migrated) return std::unexpected(migrated.error());
  return std::make_unique<SqlStore>(std::move(database));
}

}  // namespace tactus::knowledge
