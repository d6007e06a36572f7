// A connection to PostgreSQL by libpq, whose errors are ours.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "knowledge/sql/database.h"

struct pg_conn;
struct pg_result;

namespace tactus::knowledge {

// One thread at a time. Errors name the server and what was done; one that is kUnavailable may have
// closed the connection (see is_open()).
class PostgresConnection {
 public:
  // postgresql://USER@HOST:PORT/DATABASE. Connects when it is told to.
  explicit PostgresConnection(std::string_view uri);

  // For messages; never a password.
  const std::string& place() const { return place_; }
  bool is_open() const { return connection_ != nullptr; }
  Status Open();
  void Close() { connection_.reset(); }

  // One statement with parameters, or several without. The answer is that of the last.
  Expected<Answer> Run(const std::string& sql, const Row& values = {});
  // `sql` is "COPY table (columns) FROM STDIN".
  Status Copy(const std::string& sql, const std::vector<Row>& rows);

 private:
  struct End {
    void operator()(pg_conn* connection) const;
    void operator()(pg_result* result) const;
  };
  using Result = std::unique_ptr<pg_result, End>;
  // What the server said of `sql`; the connection's own message where the result is null.
  Error ErrorOf(const pg_result* result, const std::string& sql);

  const std::string uri_, place_;
  std::unique_ptr<pg_conn, End> connection_;
};

}  // namespace tactus::knowledge
