#include "knowledge/postgres/postgres_connection.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "knowledge/postgres/connection_text.h"

namespace tactus::knowledge {
namespace {

// PostgreSQL's numbers of its types (pg_type.dat).
constexpr Oid kInt2 = 21, kInt4 = 23, kInt8 = 20, kFloat8 = 701;

struct Cause {
  std::string_view state;  // SQLSTATE, or its beginning
  ErrorCode code;
  const char* remedy;
};

constexpr Cause kLost = {
    "", ErrorCode::kUnavailable,
    "see that the server runs, that the database is there and that this user may connect"};

// https://www.postgresql.org/docs/15/errcodes-appendix.html; the first that fits.
constexpr Cause kCauses[] = {
    {"08", ErrorCode::kUnavailable, "see that the server runs and can be reached"},
    {"57P", ErrorCode::kUnavailable, "wait for the server to be up again"},
    {"57014", ErrorCode::kUnavailable, "find out what keeps the server busy (pg_stat_activity)"},
    {"55P03", ErrorCode::kUnavailable, "find out which session holds the lock (pg_locks)"},
    {"40", ErrorCode::kUnavailable, "try again"},
    {"53", ErrorCode::kResourceExhausted, "free the server's disk, memory or connections"},
    {"22", ErrorCode::kInvalidArgument, "correct what wrote it"},
    {"23", ErrorCode::kInvalidArgument, "correct what wrote it"},
    {"42501", ErrorCode::kUnavailable,
     "give this user the database: ALTER DATABASE name OWNER TO user"},
    {"", ErrorCode::kInternal, "report it with this message"},
};

std::string TextOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::to_string(std::get<std::int64_t>(value));
}

template <class Number>
Number NumberIn(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Value ValueAt(const PGresult* result, int row, int column) {
  const std::string_view text(PQgetvalue(result, row, column),
                              static_cast<std::size_t>(PQgetlength(result, row, column)));
  switch (PQftype(result, column)) {
    case kInt2:
    case kInt4:
    case kInt8:
      return NumberIn<std::int64_t>(text);
    case kFloat8:
      return NumberIn<double>(text);
    default:
      return std::string(text);
  }
}

Answer AnswerOf(PGresult* result) {
  Answer answer{.rows = {}, .changed = NumberIn<std::int64_t>(PQcmdTuples(result))};
  for (int row = 0; row < PQntuples(result); ++row) {
    Row& read = answer.rows.emplace_back();
    for (int column = 0; column < PQnfields(result); ++column) {
      read.push_back(ValueAt(result, row, column));
    }
  }
  return answer;
}

// A value in COPY's text format.
void AppendCopied(const Value& value, std::string& line) {
  for (const char c : TextOf(value)) {
    constexpr std::string_view kSpecial = "\\\n\r\t", kSpelled = "\\nrt";
    const std::size_t at = kSpecial.find(c);
    if (at != std::string_view::npos) line += '\\';
    line += at == std::string_view::npos ? c : kSpelled[at];
  }
}

}  // namespace

void PostgresConnection::End::operator()(pg_conn* connection) const { PQfinish(connection); }
void PostgresConnection::End::operator()(pg_result* result) const { PQclear(result); }

PostgresConnection::PostgresConnection(std::string_view uri)
    : uri_(WithLimits(uri)), place_(PlaceOf(uri)) {}

Status PostgresConnection::Open() {
  connection_.reset(PQconnectdb(uri_.c_str()));
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    return std::unexpected(ErrorOf(nullptr, "connecting"));
  }
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  return {};
}

Expected<Answer> PostgresConnection::Run(const std::string& sql, const Row& values) {
  Result result;
  if (values.empty()) {
    result.reset(PQexec(connection_.get(), sql.c_str()));
  } else {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(TextOf(value));
    std::vector<const char*> parameters;
    for (const std::string& text : texts) parameters.push_back(text.c_str());
    result.reset(PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(values.size()),
                              nullptr, parameters.data(), nullptr, nullptr, 0));
  }
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    return std::unexpected(ErrorOf(result.get(), sql));
  }
  return AnswerOf(result.get());
}

Status PostgresConnection::Copy(const std::string& sql, const std::vector<Row>& rows) {
  Result result(PQexec(connection_.get(), sql.c_str()));
  if (PQresultStatus(result.get()) != PGRES_COPY_IN) {
    return std::unexpected(ErrorOf(result.get(), sql));
  }
  int sent = 1;
  for (const Row& row : rows) {
    if (sent != 1) break;
    std::string line;
    for (const Value& value : row) {
      AppendCopied(value, line);
      line += '\t';
    }
    line.back() = '\n';
    sent = PQputCopyData(connection_.get(), line.data(), static_cast<int>(line.size()));
  }
  if (sent == 1) sent = PQputCopyEnd(connection_.get(), nullptr);
  if (sent != 1) return std::unexpected(ErrorOf(nullptr, sql));
  Status copied;
  while (result.reset(PQgetResult(connection_.get())), result) {
    if (copied && PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
      copied = std::unexpected(ErrorOf(result.get(), sql));
    }
  }
  return copied;
}

Error PostgresConnection::ErrorOf(const pg_result* result, const std::string& sql) {
  const char* const said = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const std::string_view state = said ? said : "";
  const bool lost = PQstatus(connection_.get()) != CONNECTION_OK || state.starts_with("57P") ||
                    state.starts_with("08");
  const Cause* cause =
      std::ranges::find_if(kCauses, [&](const Cause& c) { return state.starts_with(c.state); });
  if (lost && state.empty()) cause = &kLost;
  std::string text = result ? PQresultErrorMessage(result) : PQerrorMessage(connection_.get());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  if (lost) Close();
  return {cause->code,
          fmt::format("{}: {} (in '{}'); {}", place_, text, sql.substr(0, 60), cause->remedy)};
}

}  // namespace tactus::knowledge
