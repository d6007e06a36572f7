#include "knowledge/postgres/advisory_lock.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

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

AdvisoryLock::AdvisoryLock(std::string_view uri, const LeaseOptions& options)
    : options_(options), session_(uri) {}

AdvisoryLock::~AdvisoryLock() { Resign(); }

Expected<Value> AdvisoryLock::Ask(const std::string& sql, const Row& values) {
  auto answer = session_.Run(sql, values);
  if (!answer) return std::unexpected(answer.error());
  if (answer->rows.empty()) return std::string();
  return answer->rows.front().at(0);
}

Expected<std::uint64_t> AdvisoryLock::Acquire(TimePoint now, std::uint64_t above) {
  Resign();
  if (auto open = session_.Open(); !open) return std::unexpected(open.error());
  const auto term = TryLock(above);
  if (term && *term > 0) {
    Hold(*term, now + options_.length);
    return term;
  }
  const Expected<Value> holder = term ? Ask(kHolder) : std::unexpected(term.error());
  Resign();
  if (!holder) return std::unexpected(holder.error());
  const std::string& name = std::get<std::string>(*holder);
  constexpr std::string_view kNames = "tactus controller ";
  Heard(name.starts_with(kNames) ? name.substr(kNames.size()) : "");
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: another controller leads ({}); it is this one's turn when that one "
                          "ends",
                          place(), name.empty() ? "it ended just now" : name));
}

Expected<std::uint64_t> AdvisoryLock::TryLock(std::uint64_t above) {
  // The server must not take us for dead before we do: its limit is longer than the lease.
  const std::int64_t limit = InMillis(options_.length) * 5 / 4;
  const std::int64_t probe = std::max<std::int64_t>(1, limit / 4'000);  // seconds
  auto set = session_.Run(fmt::format(
      "SET client_min_messages = warning; SET statement_timeout = {}; "
      "SET idle_session_timeout = {}; SET tcp_user_timeout = {}; SET tcp_keepalives_idle = {}; "
      "SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = 2",
      InMillis(options_.length) / 2, limit, limit, probe, probe));
  if (!set) return std::unexpected(set.error());
  auto named = Ask("SELECT set_config('application_name', $1, false)",
                   {"tactus controller " + options_.name});
  if (!named) return std::unexpected(named.error());
  const auto locked = Ask(kTryLock);
  if (!locked) return std::unexpected(locked.error());
  if (std::get<std::string>(*locked) != "t") return 0;
  auto made = session_.Run("CREATE SEQUENCE IF NOT EXISTS controller_term AS BIGINT");
  if (!made) return std::unexpected(made.error());
  auto term = Ask("SELECT nextval('controller_term')");
  if (term && static_cast<std::uint64_t>(std::get<std::int64_t>(*term)) <= above) {
    term = Ask(fmt::format("SELECT setval('controller_term', {})", above + 1));
  }
  if (!term) return std::unexpected(term.error());
  return static_cast<std::uint64_t>(std::get<std::int64_t>(*term));
}

Status AdvisoryLock::Renew(TimePoint now) {
  std::string why = "this controller does not lead";
  if (IsHeld() && now < Until()) {
    const auto held = Ask(kHeldHere);
    if (held && std::get<std::int64_t>(*held) == 1) {
      Extend(now + options_.length);
      return {};
    }
    // Without its session there is no lock.
    if (!held && session_.is_open()) return std::unexpected(held.error());
    why = held ? "the session that held the lock has ended" : held.error().message;
  }
  Resign();
  return Fail(ErrorCode::kCancelled,
              fmt::format("{}: leadership is lost: {}; acquire a new term", place(), why));
}

void AdvisoryLock::Resign() {
  // The server frees the lock with its session, but a moment after it was closed.
  if (IsHeld() && session_.is_open()) (void)session_.Run(kUnlock);
  Lose();
  session_.Close();
}

}  // namespace tactus::knowledge
