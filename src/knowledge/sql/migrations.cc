#include "knowledge/sql/migrations.h"

#include <array>

#include <fmt/format.h>

namespace tactus::knowledge {
namespace {

constexpr std::string_view kFirstSchema = R"sql(
CREATE TABLE device (
  name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, site TEXT NOT NULL,
  accelerators BIGINT NOT NULL, memory_mb DOUBLE PRECISION NOT NULL, server BIGINT NOT NULL,
  seen BIGINT NOT NULL);
CREATE TABLE link (
  from_site TEXT NOT NULL, to_site TEXT NOT NULL, mbps DOUBLE PRECISION NOT NULL,
  rtt_ns BIGINT NOT NULL, PRIMARY KEY (from_site, to_site));
CREATE TABLE model (
  digest TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, bytes BIGINT NOT NULL);
CREATE TABLE pipeline (
  name TEXT NOT NULL PRIMARY KEY, source TEXT NOT NULL, slo_ns BIGINT NOT NULL,
  declaration TEXT NOT NULL);
CREATE TABLE stage (
  pipeline TEXT NOT NULL REFERENCES pipeline (name), number BIGINT NOT NULL, name TEXT NOT NULL,
  model TEXT NOT NULL, items DOUBLE PRECISION NOT NULL, in_kb DOUBLE PRECISION NOT NULL,
  out_kb DOUBLE PRECISION NOT NULL, PRIMARY KEY (pipeline, number));
CREATE TABLE profile (
  model TEXT NOT NULL, kind TEXT NOT NULL, exit BIGINT NOT NULL, batch BIGINT NOT NULL,
  pre_p50_ns BIGINT NOT NULL, pre_p95_ns BIGINT NOT NULL, pre_p99_ns BIGINT NOT NULL,
  infer_p50_ns BIGINT NOT NULL, infer_p95_ns BIGINT NOT NULL, infer_p99_ns BIGINT NOT NULL,
  post_p50_ns BIGINT NOT NULL, post_p95_ns BIGINT NOT NULL, post_p99_ns BIGINT NOT NULL,
  memory_mb DOUBLE PRECISION NOT NULL,
  use_l1 DOUBLE PRECISION NOT NULL, use_l2 DOUBLE PRECISION NOT NULL,
  use_dram DOUBLE PRECISION NOT NULL, use_tensor DOUBLE PRECISION NOT NULL,
  use_fma DOUBLE PRECISION NOT NULL,
  source TEXT NOT NULL, made BIGINT NOT NULL, PRIMARY KEY (model, kind, exit, batch));

CREATE TABLE arrival (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, source TEXT NOT NULL,
  window_ns BIGINT NOT NULL, rate_rps DOUBLE PRECISION NOT NULL, cv DOUBLE PRECISION NOT NULL,
  items DOUBLE PRECISION NOT NULL, bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL
) {partitioned};
CREATE INDEX arrival_at ON arrival (at);
CREATE TABLE batch_latency (
  at BIGINT NOT NULL, device TEXT NOT NULL, model TEXT NOT NULL, exit BIGINT NOT NULL,
  batch BIGINT NOT NULL, batches BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL
) {partitioned};
CREATE INDEX batch_latency_at ON batch_latency (at);
CREATE TABLE outcome (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, on_time BIGINT NOT NULL,
  late BIGINT NOT NULL, dropped BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL
) {partitioned};
CREATE INDEX outcome_at ON outcome (at);
CREATE TABLE network (
  at BIGINT NOT NULL, from_site TEXT NOT NULL, to_site TEXT NOT NULL,
  mbps DOUBLE PRECISION NOT NULL, rtt_ns BIGINT NOT NULL, loss DOUBLE PRECISION NOT NULL
) {partitioned};
CREATE INDEX network_at ON network (at);
CREATE INDEX network_link ON network (from_site, to_site, at);
CREATE TABLE device_load (
  at BIGINT NOT NULL, device TEXT NOT NULL, accelerator BIGINT NOT NULL,
  use DOUBLE PRECISION NOT NULL, memory_mb DOUBLE PRECISION NOT NULL,
  host_cores DOUBLE PRECISION NOT NULL
) {partitioned};
CREATE INDEX device_load_at ON device_load (at);

CREATE TABLE plan (
  epoch BIGINT NOT NULL PRIMARY KEY, made BIGINT NOT NULL, input TEXT NOT NULL,
  plan TEXT NOT NULL, predicted TEXT NOT NULL, fate TEXT NOT NULL, decided BIGINT NOT NULL,
  why TEXT NOT NULL);
CREATE TABLE event (
  number BIGINT NOT NULL PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL,
  subject TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX event_at ON event (at);
CREATE TABLE counter (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO counter (name, value) VALUES ('event', 0);
)sql";

// Terms fence off controllers that no longer lead; a plan says whose it is.
constexpr std::string_view kTerms = R"sql(
CREATE TABLE leader (term BIGINT NOT NULL, sequence BIGINT NOT NULL);
INSERT INTO leader (term, sequence) VALUES (0, 0);
ALTER TABLE plan ADD COLUMN term BIGINT NOT NULL DEFAULT 0;
)sql";

// Samples by minute and by hour. `until`: the roll-up is complete up to that instant.
constexpr std::string_view kRollUps = R"sql(
CREATE TABLE arrival_minute (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, source TEXT NOT NULL,
  window_ns BIGINT NOT NULL, rate_rps DOUBLE PRECISION NOT NULL, cv DOUBLE PRECISION NOT NULL,
  items DOUBLE PRECISION NOT NULL, bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL,
  samples BIGINT NOT NULL, PRIMARY KEY (at, pipeline, stage, source));
CREATE TABLE arrival_hour (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, source TEXT NOT NULL,
  window_ns BIGINT NOT NULL, rate_rps DOUBLE PRECISION NOT NULL, cv DOUBLE PRECISION NOT NULL,
  items DOUBLE PRECISION NOT NULL, bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL,
  samples BIGINT NOT NULL, PRIMARY KEY (at, pipeline, stage, source));
CREATE TABLE batch_latency_minute (
  at BIGINT NOT NULL, device TEXT NOT NULL, model TEXT NOT NULL, exit BIGINT NOT NULL,
  batch BIGINT NOT NULL, batches BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL, samples BIGINT NOT NULL, PRIMARY KEY (at, device, model, exit, batch));
CREATE TABLE batch_latency_hour (
  at BIGINT NOT NULL, device TEXT NOT NULL, model TEXT NOT NULL, exit BIGINT NOT NULL,
  batch BIGINT NOT NULL, batches BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL, samples BIGINT NOT NULL, PRIMARY KEY (at, device, model, exit, batch));
CREATE TABLE outcome_minute (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, on_time BIGINT NOT NULL,
  late BIGINT NOT NULL, dropped BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL, samples BIGINT NOT NULL, PRIMARY KEY (at, pipeline, stage));
CREATE TABLE outcome_hour (
  at BIGINT NOT NULL, pipeline TEXT NOT NULL, stage TEXT NOT NULL, on_time BIGINT NOT NULL,
  late BIGINT NOT NULL, dropped BIGINT NOT NULL, p50_ns BIGINT NOT NULL, p95_ns BIGINT NOT NULL,
  p99_ns BIGINT NOT NULL, samples BIGINT NOT NULL, PRIMARY KEY (at, pipeline, stage));
CREATE TABLE network_minute (
  at BIGINT NOT NULL, from_site TEXT NOT NULL, to_site TEXT NOT NULL,
  mbps DOUBLE PRECISION NOT NULL, rtt_ns BIGINT NOT NULL, loss DOUBLE PRECISION NOT NULL,
  samples BIGINT NOT NULL, PRIMARY KEY (at, from_site, to_site));
CREATE TABLE network_hour (
  at BIGINT NOT NULL, from_site TEXT NOT NULL, to_site TEXT NOT NULL,
  mbps DOUBLE PRECISION NOT NULL, rtt_ns BIGINT NOT NULL, loss DOUBLE PRECISION NOT NULL,
  samples BIGINT NOT NULL, PRIMARY KEY (at, from_site, to_site));
CREATE TABLE device_load_minute (
  at BIGINT NOT NULL, device TEXT NOT NULL, accelerator BIGINT NOT NULL,
  use DOUBLE PRECISION NOT NULL, memory_mb DOUBLE PRECISION NOT NULL,
  host_cores DOUBLE PRECISION NOT NULL, samples BIGINT NOT NULL,
  PRIMARY KEY (at, device, accelerator));
CREATE TABLE device_load_hour (
  at BIGINT NOT NULL, device TEXT NOT NULL, accelerator BIGINT NOT NULL,
  use DOUBLE PRECISION NOT NULL, memory_mb DOUBLE PRECISION NOT NULL,
  host_cores DOUBLE PRECISION NOT NULL, samples BIGINT NOT NULL,
  PRIMARY KEY (at, device, accelerator));
CREATE TABLE rolled (name TEXT NOT NULL PRIMARY KEY, until BIGINT NOT NULL);
)sql";

constexpr std::string_view kTokens = R"sql(
CREATE TABLE token_use (
  token TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, public_key TEXT NOT NULL,
  at BIGINT NOT NULL, expires BIGINT NOT NULL);
)sql";

// What was never filled, what a plan's input says too, and how far samples were rolled up. The
// roll-ups of arrival and network stay with what an earlier tactus put into them.
constexpr std::string_view kUnused = R"sql(
DROP TABLE stage;
DROP TABLE pipeline;
DROP TABLE device;
DROP TABLE link;
DROP TABLE model;
DROP TABLE profile;
DROP TABLE batch_latency;
DROP TABLE batch_latency_minute;
DROP TABLE batch_latency_hour;
DROP TABLE outcome;
DROP TABLE outcome_minute;
DROP TABLE outcome_hour;
DROP TABLE device_load;
DROP TABLE device_load_minute;
DROP TABLE device_load_hour;
DROP TABLE rolled;
)sql";

constexpr std::array<Migration, 5> kMigrations = {{
    {1, "records, samples, plans and events", kFirstSchema},
    {2, "terms of controllers", kTerms},
    {3, "roll-ups by minute and hour", kRollUps},
    {4, "tokens that were used", kTokens},
    {5, "without what nobody reads", kUnused},
}};

std::string Spelled(std::string_view sql, const Dialect& dialect) {
  constexpr std::string_view kMark = "{partitioned}";
  std::string text(sql);
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.replace(at, kMark.size(), dialect.partitioned);
  }
  return text;
}

Expected<std::int64_t> VersionOf(Database& database) {
  auto found = database.Run("SELECT version FROM schema_version", {});
  if (!found) return std::unexpected(found.error());
  return found->rows.empty() ? 0 : std::get<std::int64_t>(found->rows.front().at(0));
}

Error Newer(const Database& database, std::int64_t found, std::int64_t known) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: its schema has version {}, and this tactus supports {}; run the newer "
                      "tactus that wrote it, or give this one a knowledge base of its own",
                      database.place(), found, known)};
}

// One step up, unless another program took it meanwhile. The version now.
Expected<std::int64_t> Step(Database& database, std::int64_t last) {
  auto transaction = Transaction::Begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (const std::string lock(database.dialect().lock_schema); !lock.empty()) {
    if (auto locked = database.Script(lock); !locked) return std::unexpected(locked.error());
  }
  auto made =
      database.Script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)");
  if (!made) return std::unexpected(made.error());
  auto version = VersionOf(database);
  if (!version) return version;
  if (*version > last) return std::unexpected(Newer(database, *version, last));
  if (*version < last) {
    const Migration& next = kMigrations.at(static_cast<std::size_t>(*version));
    if (auto ran = database.Script(Spelled(next.sql, database.dialect())); !ran) {
      return Fail(ran.error().code, fmt::format("{} (migration {}, {})", ran.error().message,
                                                next.version, next.what));
    }
    auto noted = database.Run(*version == 0 ? "INSERT INTO schema_version (version) VALUES ($1)"
                                            : "UPDATE schema_version SET version = $1",
                              {next.version});
    if (!noted) return std::unexpected(noted.error());
    version = next.version;
  }
  if (auto done = transaction->Commit(); !done) return std::unexpected(done.error());
  return version;
}

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

Status Migrate(Database& database, std::int64_t last) {
  for (;;) {
    auto version = Step(database, last);
    if (!version) return std::unexpected(version.error());
    if (*version == last) return {};
  }
}

}  // namespace tactus::knowledge
