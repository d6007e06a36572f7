#include "knowledge/postgres/advisory_lock.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <pqxx/pqxx>

#include "knowledge/postgres/connection_text.h"
#include "knowledge/postgres/postgres_error.h"

namespace tactus::knowledge {
namespace {

// The two halves of the lock's key: "tact" in ASCII, and 1, the controllers' lock.
constexpr const char* kTryLock = "SELECT pg_try_advisory_lock(1952539508, 1)";
constexpr const char* kUnlock = "SELECT pg_advisory_unlock(1952539508, 1)";
constexpr const char* kHeldHere =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1952539508 "
    "AND objid = 1 AND objsubid = 2 AND granted AND pid = pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
constexpr const char* kHolder =
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND classid = 1952539508 AND objid = 1 AND objsubid = 2 "
    "AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

std::int64_t InMillis(Duration length) {
  return std::chrono::ceil<std::chrono::milliseconds>(length).count();
}

}  // namespace

struct AdvisoryLock::Session {
  explicit Session(const std::string& uri) : connection(uri) {}
  pqxx::result Ask(const std::string& sql) { return pqxx::nontransaction(connection).exec(sql); }

  pqxx::connection connection;
};

AdvisoryLock::AdvisoryLock(std::string_view uri, const LeaseOptions& options)
    : uri_(WithLimits(uri)), place_(PlaceOf(uri)), options_(options) {}

AdvisoryLock::~AdvisoryLock() { Resign(); }

Expected<std::uint64_t> AdvisoryLock::Acquire(TimePoint now, std::uint64_t above) {
  Resign();
  try {
    session_ = std::make_unique<Session>(uri_);
    if (const std::uint64_t term = TryLock(above); term > 0) {
      Hold(term, now + options_.length);
      return term;
    }
    const std::string holder = Holder();
    constexpr std::string_view kNames = "tactus controller ";
    Heard(holder.starts_with(kNames) ? holder.substr(kNames.size()) : "");
    Resign();
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{}: another controller leads ({}); it is this one's turn when that one "
                    "ends",
                    place_, holder));
  } catch (const std::exception& thrown) {
    Resign();
    return std::unexpected(PostgresError(place_, "acquiring the controllers' lock", thrown));
  }
}

std::uint64_t AdvisoryLock::TryLock(std::uint64_t above) {
  // The server must not take us for dead before we do: its limit is longer than the lease.
  const std::int64_t limit = InMillis(options_.length) * 5 / 4;
  const std::int64_t probe = std::max<std::int64_t>(1, limit / 4'000);  // seconds
  const std::string name = session_->connection.quote("tactus controller " + options_.name);
  session_->Ask(fmt::format(
      "SET client_min_messages = warning; SET application_name = {}; "
      "SET statement_timeout = {}; SET idle_session_timeout = {}; SET tcp_user_timeout = {}; "
      "SET tcp_keepalives_idle = {}; SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = "
      "2",
      name, InMillis(options_.length) / 2, limit, limit, probe, probe));
  if (session_->Ask(kTryLock).at(0).at(0).as<std::string>() != "t") return 0;
  session_->Ask("CREATE SEQUENCE IF NOT EXISTS controller_term AS BIGINT");
  const auto next = session_->Ask("SELECT nextval('controller_term')").at(0).at(0);
  const auto term = next.as<std::uint64_t>();
  if (term > above) return term;
  const auto set = session_->Ask(fmt::format("SELECT setval('controller_term', {})", above + 1));
  return set.at(0).at(0).as<std::uint64_t>();
}

std::string AdvisoryLock::Holder() {
  const pqxx::result rows = session_->Ask(kHolder);
  return rows.empty() ? "it ended just now" : rows.at(0).at(0).as<std::string>();
}

Status AdvisoryLock::Renew(TimePoint now) {
  std::string why = "this controller does not lead";
  if (IsHeld() && now < Until()) {
    try {
      if (session_->Ask(kHeldHere).at(0).at(0).as<int>() == 1) {
        Extend(now + options_.length);
        return {};
      }
      why = "the session that held the lock has ended";
    } catch (const std::exception& thrown) {
      Error error = PostgresError(place_, "renewing the controllers' lock", thrown);
      // Without its session there is no lock.
      if (!IsConnectionLost(thrown)) return std::unexpected(std::move(error));
      why = error.message;
    }
  }
  Resign();
  return Fail(ErrorCode::kCancelled,
              fmt::format("{}: leadership is lost: {}; acquire a new term", place_, why));
}

void AdvisoryLock::Resign() {
  const bool was_held = IsHeld();
  Lose();
  // The server frees the lock with its session, but a moment after it was closed.
  try {
    if (was_held && session_->connection.is_open()) session_->Ask(kUnlock);
  } catch (const std::exception&) {
  }
  session_.reset();
}

}  // namespace tactus::knowledge
