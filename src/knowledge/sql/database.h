// What the store asks of a database: transactions, statements with parameters, rows. SQLite and
// PostgreSQL understand the same statements; where they do not, it is a function here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/expected.h"
#include "knowledge/records.h"

namespace tactus::knowledge {

// Nothing is ever NULL. Instants are microseconds since 1970 UTC, durations nanoseconds.
using Value = std::variant<std::int64_t, double, std::string>;
using Row = std::vector<Value>;

// What a statement found, or else how many rows it changed.
struct Answer {
  std::vector<Row> rows;
  std::int64_t changed = 0;
};

// What differs between the two in the statements themselves.
struct Dialect {
  std::string_view partitioned;  // after CREATE TABLE of samples
  // Within a transaction: until it ends, nobody else migrates. Empty: a transaction does that.
  std::string_view lock_schema;
};

// One thread at a time. Parameters are $1, $2... in the order of their first appearance.
class Database {
 public:
  virtual ~Database() = default;
  virtual const std::string& place() const = 0;
  virtual Dialect dialect() const = 0;

  // A transaction that writes. One that was lost with its connection is over: Rollback() of it does
  // nothing, and Begin() connects again.
  virtual Status Begin() = 0;
  virtual Status Commit() = 0;
  virtual void Rollback() = 0;

  // Several statements without parameters, within a transaction.
  virtual Status Script(const std::string& sql) = 0;
  // One statement, within a transaction or outside of one.
  virtual Expected<Answer> Run(const std::string& sql, const Row& values) = 0;

  // Samples, whose first column is their instant; within a transaction.
  virtual Status Append(const std::string& table, const std::vector<std::string>& columns,
                        const std::vector<Row>& rows) = 0;
  // Deletes the table's samples before that instant, at most so many of them, or else whole days
  // however long. {rows, days}. In transactions of its own.
  virtual Expected<std::pair<std::int64_t, std::int64_t>> Forget(const std::string& table,
                                                                 UtcTime before,
                                                                 std::int64_t most) = 0;
};

// Rolls back what was not committed.
class Transaction {
 public:
  static Expected<Transaction> Begin(Database& database) {
    if (auto begun = database.Begin(); !begun) return std::unexpected(begun.error());
    return Transaction(database);
  }
  ~Transaction() {
    if (database_) database_->Rollback();
  }
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;

  Status Commit() { return std::exchange(database_, nullptr)->Commit(); }

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace tactus::knowledge
