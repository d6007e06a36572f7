// tactus cluster history: what a cluster's knowledge base remembers of its past.
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cluster/controller/history_text.h"
#include "cluster/memory/history_writer.h"
#include "commands.h"
#include "knowledge/store.h"

namespace tactus {
namespace {

struct HistoryFlags {
  std::string store;
  std::string since = "1h";
  bool plans = false, events = false, arrivals = false, links = false;
  bool json = false;
};

// "90s", "15m", "1h", "7d".
std::optional<std::chrono::seconds> SpanIn(std::string_view text) {
  constexpr std::pair<char, int> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}};
  constexpr std::int64_t kMost = std::int64_t{100} * 366 * 86'400;
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || unit + 1 != end || count <= 0) return std::nullopt;
  for (const auto& [letter, seconds] : kUnits) {
    if (letter != *unit || count > kMost / seconds) continue;
    return std::chrono::seconds(count * seconds);
  }
  return std::nullopt;
}

template <class Records>
Status Keep(Expected<Records> read, std::optional<Records>& to) {
  if (!read) return std::unexpected(read.error());
  to = *std::move(read);
  return {};
}

Expected<ClusterPast> ReadPast(const HistoryFlags& flags, knowledge::Store& store,
                               knowledge::Window window) {
  const bool all = !flags.plans && !flags.events && !flags.arrivals && !flags.links;
  ClusterPast past;
  Status read;
  if (all || flags.plans) read = Keep(store.Plans(window), past.plans);
  if (read && (all || flags.events)) read = Keep(store.Events(window), past.events);
  if (read && flags.arrivals) read = Keep(store.Arrivals(window), past.arrivals);
  if (read && flags.links) read = Keep(store.NetworkSamples(window), past.links);
  if (!read) return std::unexpected(std::move(read.error()));
  return past;
}

int RunHistory(const HistoryFlags& flags) {
  const auto span = SpanIn(flags.since);
  if (!span) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           "--since '" + flags.since + "': write a count and s, m, h or d: 90m"});
  }
  // Who reads makes no store of its own.
  constexpr std::string_view kSqlite = "sqlite:";
  if (flags.store.starts_with(kSqlite) &&
      !std::filesystem::exists(flags.store.substr(kSqlite.size()))) {
    return ReportBadInput(
        {ErrorCode::kNotFound,
         "--store " + flags.store +
             ": there is no such file; a controller's is knowledge.db in its --state"});
  }
  const auto store = knowledge::OpenStore(flags.store);
  if (!store) {
    return ReportBadInput({store.error().code, "--store: " + store.error().message});
  }
  const knowledge::UtcTime now = UtcNow();
  // What a controller wrote whose clock is ahead of this one is past too.
  const auto past = ReadPast(flags, **store, {now - *span, now + std::chrono::days(1)});
  if (!past) return ReportBadInput(past.error());
  fmt::print("{}", flags.json ? PastJson(*past) : PastTables(*past));
  return 0;
}

}  // namespace

void AddClusterHistory(CLI::App& cluster, CommandContext& context) {
  auto flags = std::make_shared<HistoryFlags>();
  CLI::App* command = cluster.add_subcommand(
      "history", "Show past plans and events from the controllers' knowledge base");
  command
      ->add_option("--store", flags->store,
                   "The controllers' --store: sqlite:PATH (knowledge.db in a controller's --state) "
                   "or postgresql://USER@HOST:PORT/DATABASE")
      ->required();
  command->add_option("--since", flags->since, "How far back: 90s, 15m, 1h, 7d")
      ->capture_default_str();
  command->add_flag("--plans", flags->plans, "Show plans, and what became of them");
  command->add_flag(
      "--events", flags->events,
      "Show nodes that came and went, trouble, leaders, plans. Without --plans, --events, "
      "--arrivals and --links: plans and events");
  command->add_flag("--arrivals", flags->arrivals,
                    "Show items a second by pipeline and stage (of the last 48 h)");
  command->add_flag("--links", flags->links, "Show what links carried (in the last 48 h)");
  command->add_flag("--json", flags->json, "Print every record as JSON");
  command->callback([flags, &context] { context.exit_code = RunHistory(*flags); });
}

}  // namespace tactus
