#include "policies/registry.h"

#include <charconv>
#include <map>

#include "policies/baselines/ranked.h"
#include "policies/edgeserving/edgeserving.h"
#include "policies/edgeserving/edgeserving_plain.h"
#include "policies/symphony/symphony_plain.h"

namespace tactus {
namespace {

// "batch=1,clip=10" as it stands after the colon; what is read is taken out, so that what is left
// is what the policy does not know.
using Options = std::map<std::string, std::string, std::less<>>;

struct Entry {
  PolicyInfo info;
  Expected<std::unique_ptr<Policy>> (*make)(std::string name, Options& options);
};

constexpr const char* kBatchOption = "batch=N: largest batch";
constexpr const char* kEdgeServingOptions =
    "batch=N: largest batch; clip=C: the most that one request counts, 10";

Expected<double> Number(std::string_view key, std::string_view text, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) ||
      value > most) {
    return InvalidArgument("policy option " + std::string(key) + "=" + std::string(text) +
                           ": a number from " + std::to_string(static_cast<long>(least)) + " to " +
                           std::to_string(static_cast<long>(most)) + " is expected");
  }
  return value;
}

// The option's value, taken out of `options`; `otherwise` when it was not given.
Expected<double> Take(Options& options, std::string_view key, double otherwise, double least,
                      double most) {
  const auto found = options.find(key);
  if (found == options.end()) return otherwise;
  const auto value = Number(key, found->second, least, most);
  options.erase(found);
  return value;
}

constexpr int kAnyBatch = 1 << 20;

Expected<int> TakeBatch(Options& options) {
  const auto batch = Take(options, "batch", kAnyBatch, 1, kAnyBatch);
  if (!batch) return std::unexpected(batch.error());
  if (*batch != static_cast<int>(*batch)) return InvalidArgument("policy option batch: not whole");
  return static_cast<int>(*batch);
}

template <class Which, bool kEarlyExits>
Expected<std::unique_ptr<Policy>> MakeEdgeServing(std::string name, Options& options) {
  const auto batch = TakeBatch(options);
  if (!batch) return std::unexpected(batch.error());
  const auto clip = Take(options, "clip", EdgeServingOptions{}.clip, 1, 1e6);
  if (!clip) return std::unexpected(clip.error());
  return std::make_unique<Which>(
      std::move(name),
      EdgeServingOptions{.batch = *batch, .clip = *clip, .early_exits = kEarlyExits});
}

template <QueueRank kRank, ExitRule kExit>
Expected<std::unique_ptr<Policy>> MakeRanked(std::string name, Options& options) {
  const auto batch = TakeBatch(options);
  if (!batch) return std::unexpected(batch.error());
  return std::make_unique<RankedPolicy>(std::move(name), kRank, kExit, *batch);
}

// The option `key` as one of `names`, by index; the first is the default.
Expected<std::size_t> TakeName(Options& options, std::string_view key,
                               std::initializer_list<std::string_view> names) {
  const auto found = options.find(key);
  if (found == options.end()) return 0;
  std::string known;
  std::size_t i = 0;
  for (const std::string_view name : names) {
    if (name == found->second) {
      options.erase(found);
      return i;
    }
    known += (i++ == 0 ? "" : ", ") + std::string(name);
  }
  return InvalidArgument("policy option " + std::string(key) + "=" + found->second + ": one of " +
                         known + " is expected");
}

Expected<std::unique_ptr<Policy>> MakeSymphony(std::string name, Options& options) {
  const auto when = TakeName(options, "when", {"frontrun", "eager", "timeout", "latest"});
  if (!when) return std::unexpected(when.error());
  const auto gather = TakeName(options, "gather", {"prefix", "window"});
  if (!gather) return std::unexpected(gather.error());
  const auto k = Take(options, "k", 0, 0, 1e6);
  if (!k) return std::unexpected(k.error());
  constexpr Schedulable kWhen[] = {Schedulable::kFrontrun, Schedulable::kEager,
                                   Schedulable::kTimeout, Schedulable::kLatest};
  return std::make_unique<PlainSymphony>(
      std::move(name),
      SymphonyOptions{.candidate = {.schedulable = kWhen[*when], .timeout = FromMillis(*k)},
                      .gather = *gather == 0 ? Gather::kPrefix : Gather::kWindow});
}

const std::vector<Entry>& Entries() {
  static const std::vector<Entry> entries = {
      {{"edgeserving", "EdgeServing: the queue whose service leaves the least system-wide urgency",
        kEdgeServingOptions},
       &MakeEdgeServing<EdgeServing, true>},
      {{"edgeserving-plain", "the same decisions, written as the paper states them; slow",
        kEdgeServingOptions},
       &MakeEdgeServing<PlainEdgeServing, true>},
      {{"all-final-deadline-aware", "EdgeServing's choice of queue, always the final exit",
        kEdgeServingOptions},
       &MakeEdgeServing<EdgeServing, false>},
      {{"early-exit-edf",
        "earliest deadline first, the deepest exit that meets the head's deadline", kBatchOption},
       &MakeRanked<EarliestDeadlineFirst, ExitRule::kDeepestFeasible>},
      {{"early-exit-lqf", "longest queue first, the deepest exit that meets the head's deadline",
        kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kDeepestFeasible>},
      {{"all-final", "longest queue first, always the final exit", kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kFinal>},
      {{"all-early", "longest queue first, always the shallowest exit", kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kShallowest>},
      {{"fifo", "first come first served by model, always the final exit: a plain server",
        kBatchOption},
       &MakeRanked<EarliestArrivalFirst, ExitRule::kFinal>},
      {{"symphony", "deferred batches: a batch goes when no further request could join it in time",
        "when=frontrun|eager|timeout|latest; k=MS: of timeout; gather=prefix|window"},
       &MakeSymphony},
  };
  return entries;
}

Expected<Options> ParseOptions(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return InvalidArgument("policy option '" + std::string(one) + "': key=value is expected");
    }
    const auto [at, fresh] = options.emplace(one.substr(0, equals), one.substr(equals + 1));
    if (!fresh) return InvalidArgument("policy option '" + at->first + "' is given twice");
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return options;
}

std::unexpected<Error> UnknownPolicy(std::string_view name) {
  std::string known;
  for (const Entry& entry : Entries()) known += (known.empty() ? "" : ", ") + entry.info.name;
  return NotFound("no policy '" + std::string(name) + "'; there are " + known);
}

}  // namespace

std::vector<PolicyInfo> Policies() {
  std::vector<PolicyInfo> infos;
  for (const Entry& entry : Entries()) infos.push_back(entry.info);
  return infos;
}

Expected<std::unique_ptr<Policy>> MakePolicy(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Entry& entry : Entries()) {
    if (entry.info.name != name) continue;
    auto options =
        ParseOptions(colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1));
    if (!options) return std::unexpected(options.error());
    // The whole text is the name: results of two option sets must not be mistaken for each other.
    auto policy = entry.make(std::string(text), *options);
    if (policy && !options->empty()) {
      return InvalidArgument("policy '" + std::string(name) + "' has no option '" +
                             options->begin()->first + "'; it has " + entry.info.options);
    }
    return policy;
  }
  return UnknownPolicy(name);
}

}  // namespace tactus
