#include "knowledge/postgres/postgres_error.h"

#include <string_view>

#include <fmt/format.h>
#include <pqxx/pqxx>

namespace tactus::knowledge {
namespace {

struct Cause {
  std::string_view state;  // SQLSTATE, or its beginning
  ErrorCode code;
  const char* remedy;
};

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
};

std::string MessageOf(const std::exception& thrown) {
  std::string text = thrown.what();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

bool IsConnectionLost(const std::exception& thrown) {
  if (dynamic_cast<const pqxx::broken_connection*>(&thrown)) return true;
  if (dynamic_cast<const pqxx::in_doubt_error*>(&thrown)) return true;
  const auto* sql = dynamic_cast<const pqxx::sql_error*>(&thrown);
  return sql && (sql->sqlstate().starts_with("57P") || sql->sqlstate().starts_with("08"));
}

Error PostgresError(const std::string& place, const std::string& what,
                    const std::exception& thrown) {
  ErrorCode code = ErrorCode::kInternal;
  std::string remedy = "report it with this message";
  if (IsConnectionLost(thrown)) {
    code = ErrorCode::kUnavailable;
    remedy = "see that the server runs, that the database is there and that this user may connect";
  }
  if (const auto* sql = dynamic_cast<const pqxx::sql_error*>(&thrown)) {
    for (const Cause& cause : kCauses) {
      if (!sql->sqlstate().starts_with(cause.state)) continue;
      code = cause.code;
      remedy = cause.remedy;
      break;
    }
  }
  return {code, fmt::format("{}: {} (in '{}'); {}", place, MessageOf(thrown), what.substr(0, 60),
                            remedy)};
}

}  // namespace tactus::knowledge
