#include "knowledge/sqlite/sqlite_database.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <sqlite3.h>

#include "knowledge/sql/rows.h"

namespace tactus::knowledge {
namespace {

// How long a statement waits for another writer. There should be none.
constexpr std::chrono::milliseconds kBusyTimeout{2'000};
// Rows that one transaction deletes: some milliseconds.
constexpr std::int64_t kChunk = 5'000;

struct CloseFile {
  void operator()(sqlite3* file) const { sqlite3_close_v2(file); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using File = std::unique_ptr<sqlite3, CloseFile>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

struct Ailment {
  ErrorCode code;
  const char* remedy;
};

// https://sqlite.org/rescode.html
Ailment AilmentOf(int result) {
  switch (result & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable,
              "another process writes to it: stop it, or give each controller a file of its own"};
    case SQLITE_FULL:
      return {ErrorCode::kResourceExhausted, "free space on its disk"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return {ErrorCode::kUnavailable,
              "its folder must exist and, like the file, be writable by this user"};
    case SQLITE_IOERR:
      return {ErrorCode::kUnavailable,
              "see the disk's own messages (dmesg), and how large a file may be (ulimit -f)"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::kInternal,
              "the file is damaged or no knowledge base: move it away, or restore a backup"};
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
      return {ErrorCode::kInvalidArgument, "correct what wrote it"};
    default:
      return {ErrorCode::kInternal, "report it with this message"};
  }
}

class SqliteDatabase : public Database {
 public:
  SqliteDatabase(std::string place, File file) : place_(std::move(place)), file_(std::move(file)) {}

  const std::string& place() const override { return place_; }
  // BEGIN IMMEDIATE has locked the schema.
  Dialect dialect() const override { return {.partitioned = "", .lock_schema = ""}; }

  Status Begin() override { return Script("BEGIN IMMEDIATE"); }
  Status Commit() override {
    auto done = Script("COMMIT");
    if (!done) Rollback();
    return done;
  }
  void Rollback() override {
    if (sqlite3_get_autocommit(file_.get()) == 0) (void)Script("ROLLBACK");
  }

  Status Script(const std::string& sql) override {
    const int result = sqlite3_exec(file_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (result != SQLITE_OK) return std::unexpected(ErrorOf(sql));
    return {};
  }

  Expected<Answer> Run(const std::string& sql, const Row& values) override;

  Status Append(const std::string& table, const std::vector<std::string>& columns,
                const std::vector<Row>& rows) override;

  Expected<std::pair<std::int64_t, std::int64_t>> Forget(const std::string& table, UtcTime before,
                                                         std::int64_t most) override;

 private:
  // The file's last error, in that statement.
  Error ErrorOf(const std::string& sql) const {
    const Ailment ailment = AilmentOf(sqlite3_extended_errcode(file_.get()));
    return {ailment.code, fmt::format("{}: {} (in '{}'); {}", place_, sqlite3_errmsg(file_.get()),
                                      sql.substr(0, 60), ailment.remedy)};
  }
  // Prepared once, reset.
  Expected<sqlite3_stmt*> Prepared(const std::string& sql);
  int Bind(sqlite3_stmt* statement, const Row& values);

  std::string place_;
  File file_;
  std::map<std::string, Statement> statements_;  // ended before the file is closed
};

Expected<sqlite3_stmt*> SqliteDatabase::Prepared(const std::string& sql) {
  Statement& statement = statements_[sql];
  if (!statement) {
    sqlite3_stmt* made = nullptr;
    const int result =
        sqlite3_prepare_v3(file_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    if (result != SQLITE_OK) return std::unexpected(ErrorOf(sql));
    statement.reset(made);
  }
  return statement.get();
}

int SqliteDatabase::Bind(sqlite3_stmt* statement, const Row& values) {
  int result = SQLITE_OK;
  for (std::size_t i = 0; i < values.size() && result == SQLITE_OK; ++i) {
    const int at = sqlite3_bind_parameter_index(statement, fmt::format("${}", i + 1).c_str());
    if (const auto* whole = std::get_if<std::int64_t>(&values[i])) {
      result = sqlite3_bind_int64(statement, at, *whole);
    } else if (const auto* real = std::get_if<double>(&values[i])) {
      result = sqlite3_bind_double(statement, at, *real);
    } else {
      const auto& text = std::get<std::string>(values[i]);
      result =
          sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
  return result;
}

Value ValueAt(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return text ? std::string(text, size) : std::string();
    }
  }
}

Expected<Answer> SqliteDatabase::Run(const std::string& sql, const Row& values) {
  auto prepared = Prepared(sql);
  if (!prepared) return std::unexpected(prepared.error());
  sqlite3_stmt* statement = *prepared;
  int result = Bind(statement, values);
  Answer found;
  while (result == SQLITE_OK || result == SQLITE_ROW) {
    result = sqlite3_step(statement);
    if (result != SQLITE_ROW) break;
    Row row;
    const int columns = sqlite3_column_count(statement);
    for (int column = 0; column < columns; ++column) row.push_back(ValueAt(statement, column));
    found.rows.push_back(std::move(row));
  }
  // Read before the reset, which would forget it.
  found.changed = sqlite3_changes64(file_.get());
  Expected<Answer> answer = std::move(found);
  if (result != SQLITE_DONE) answer = std::unexpected(ErrorOf(sql));
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return answer;
}

Status SqliteDatabase::Append(const std::string& table, const std::vector<std::string>& columns,
                              const std::vector<Row>& rows) {
  const std::string sql = InsertSql(table, columns);
  for (const Row& row : rows) {
    if (auto put = Run(sql, row); !put) return std::unexpected(put.error());
  }
  return {};
}

Expected<std::pair<std::int64_t, std::int64_t>> SqliteDatabase::Forget(const std::string& table,
                                                                       UtcTime before,
                                                                       std::int64_t most) {
  const std::string sql = "DELETE FROM " + table + " WHERE rowid IN (SELECT rowid FROM " + table +
                          " WHERE at < $1 LIMIT $2)";
  std::int64_t deleted = 0;
  while (deleted < most) {
    const std::int64_t chunk = std::min(kChunk, most - deleted);
    // Outside of a transaction each statement is one.
    auto gone = Run(sql, {Encode(before), chunk});
    if (!gone) return std::unexpected(gone.error());
    deleted += gone->changed;
    if (gone->changed < chunk) break;
  }
  return std::pair{deleted, std::int64_t{0}};
}

}  // namespace

Expected<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int result = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  File file(opened);
  const std::string place = "sqlite " + path;
  if (result != SQLITE_OK) {
    const Ailment ailment = AilmentOf(result);
    return Fail(ailment.code,
                fmt::format("{}: {}; {}", place, sqlite3_errstr(result), ailment.remedy));
  }
  sqlite3_busy_timeout(file.get(), static_cast<int>(kBusyTimeout.count()));
  auto database = std::make_unique<SqliteDatabase>(place, std::move(file));
  // synchronous = FULL: a commit survives a power cut too, at one fsync each.
  for (const char* setting :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    if (auto set = database->Run(setting, {}); !set) return std::unexpected(set.error());
  }
  return database;
}

}  // namespace tactus::knowledge
