#include "policies/registry.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/nearest.h"
#include "policies/baselines/ranked.h"
#include "policies/clockwork/clockwork.h"
#include "policies/edgeserving/edgeserving.h"
#include "policies/horizon/horizon.h"
#include "policies/planned/planned.h"
#include "policies/policy_makers.h"
#include "policies/policy_options.h"
#include "policies/sharing/sharing.h"
#include "policies/shepherd/shepherd.h"
#include "policies/strait/strait.h"
#include "policies/symphony/symphony.h"
#include "policies/timeout/timeout.h"

namespace tactus {
namespace {

constexpr const char* kBatchOption = "batch=N: largest batch";
constexpr const char* kClockworkOptions =
    "sizes=1/2/4/8/16: batch sizes to use (all); margin=X: latencies are taken to be X times the "
    "profile's (1)";
constexpr const char* kTimeoutOptions =
    "k=MS or share=X: the delay, in ms or as a share of the SLO (0); batch=N, fill=X: largest "
    "batch, as a number or as the size whose latency is X of the SLO (1); preferred=4/8: batch "
    "sizes that start at once; drop=lost|never: whether it gives up requests that cannot be in "
    "time";
constexpr const char* kTimeoutTuned =
    "fill=0.8,share=0.2 for one model, fill=0.65,share=0.35 for many: by default it does not "
    "wait (k=0), as Triton and TensorFlow Serving do, and a batch may take the whole SLO";

constexpr const char* kShepherdTuned =
    "preempt=0: in mixes of models the work of stopped batches is lost";

constexpr const char* kNexusOptions =
    "frontends=N: front ends that route without coordination (1; 0: lanes share each model's "
    "queue); grow=yes|no: whether a batch may exceed its planned size; epoch=MS: time between "
    "plans (10000)";
constexpr const char* kPlannedOptions =
    "grow=no|yes: whether a batch may exceed its planned size; windows=order|strict|defer: time "
    "windows give the order of turns, or batches run only inside them, or as late in them as "
    "deadlines allow; epoch=MS: time between plans where none is given (10000)";
constexpr const char* kSharingOptions =
    "form=X: longest wait for a batch to form, as a share of the SLO (0.1); batch=N: largest "
    "batch";

constexpr const char* kHorizonSummary =
    "schedules the waiting and the expected requests on all lanes, with exits and priorities";

template <QueueRank kRank, ExitRule kExit>
std::unique_ptr<Policy> MakeRanked(std::string name, PolicyOptions& options) {
  const int batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  return std::make_unique<RankedPolicy>(std::move(name), kRank, kExit, batch);
}

// It has no options but those of every policy.
std::unique_ptr<Policy> MakeHorizon(std::string name, PolicyOptions&) {
  auto beside = std::make_unique<Strait>(name, StraitOptions{});
  return std::make_unique<Horizon>(std::move(name), std::move(beside));
}

std::unique_ptr<Policy> MakeClockwork(std::string name, PolicyOptions& options) {
  ClockworkOptions made;
  made.sizes = options.List("sizes", kAnyBatch);
  made.margin = options.Number("margin", 1, 1, 10);
  return std::make_unique<Clockwork>(std::move(name), std::move(made));
}

std::unique_ptr<Policy> MakeNexus(std::string name, PolicyOptions& options) {
  PlannedOptions made{.grow_alone = false};
  made.front_ends = options.Whole("frontends", 1, 0, 64);
  made.grow = options.Name("grow", {"yes", "no"}) == 0;
  made.epoch = options.Millis("epoch", 10'000, 10);
  return std::make_unique<Planned>(std::move(name), made);
}

std::unique_ptr<Policy> MakePlanned(std::string name, PolicyOptions& options) {
  PlannedOptions made;
  made.grow = options.Name("grow", {"no", "yes"}) == 1;
  using Windows = PlannedOptions::Windows;
  constexpr std::array kWindows = {Windows::kOrder, Windows::kStrict, Windows::kDefer};
  made.windows = kWindows[options.Name("windows", {"order", "strict", "defer"})];
  made.epoch = options.Millis("epoch", 10'000, 10);
  return std::make_unique<Planned>(std::move(name), made);
}

std::unique_ptr<Policy> MakeShepherd(std::string name, PolicyOptions& options) {
  return std::make_unique<Shepherd>(
      std::move(name), ShepherdOptions{.factor = options.Number("preempt", 3, 0, 1e6)});
}

template <SharingRule kRule>
std::unique_ptr<Policy> MakeSharing(std::string name, PolicyOptions& options) {
  SharingOptions made{.rule = kRule};
  made.formation = options.Number("form", made.formation, 0, 1);
  made.largest_batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  return std::make_unique<Sharing>(std::move(name), made);
}

std::unique_ptr<Policy> MakeTimeout(std::string name, PolicyOptions& options) {
  TimeoutOptions made;
  options.Overridden("k", "share");
  made.delay = options.Millis("k", 0);
  made.delay_share = options.Number("share", 0, 0, 1);
  made.max_batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  made.fill = options.Number("fill", 1, 0, 1);
  made.preferred = options.List("preferred", kAnyBatch);
  made.drop_lost = options.Name("drop", {"lost", "never"}) == 0;
  return std::make_unique<Timeout>(std::move(name), std::move(made));
}

const std::vector<PolicyEntry>& Entries() {
  static const std::vector<PolicyEntry> entries = {
      {{"horizon", "the default: exits, deferral, priorities together", kHorizonSummary, ""},
       &MakeHorizon},
      {{"edgeserving", "the published rule of EdgeServing, for comparison",
        "EdgeServing: serves the batch after which the waiting requests are least urgent",
        kEdgeServingOptions},
       &MakeEdgeServing<EdgeServing, true>},
      {{"all-final-deadline-aware", "EdgeServing's queues, always the final exit",
        "EdgeServing's choice of queue, always the final exit", kEdgeServingOptions},
       &MakeEdgeServing<EdgeServing, false>},
      {{"early-exit-edf", "earliest deadline first, the deepest exit in time",
        "earliest deadline first, the deepest exit that meets the head's deadline", kBatchOption},
       &MakeRanked<EarliestDeadlineFirst, ExitRule::kDeepestFeasible>},
      {{"early-exit-lqf", "longest queue first, the deepest exit in time",
        "longest queue first, the deepest exit that meets the head's deadline", kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kDeepestFeasible>},
      {{"all-final", "longest queue first, always the final exit",
        "longest queue first, always the final exit", kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kFinal>},
      {{"all-early", "longest queue first, always the shallowest exit",
        "longest queue first, always the shallowest exit", kBatchOption},
       &MakeRanked<LongestQueueFirst, ExitRule::kShallowest>},
      {{"fifo", "a plain server: first come, first served",
        "first come first served by model, always the final exit: a plain server", kBatchOption},
       &MakeRanked<EarliestArrivalFirst, ExitRule::kFinal>},
      {{"symphony", "Symphony with our lead and aim",
        "deferred batches: a batch starts when no further request could join it in time",
        kSymphonyOptions},
       &MakeSymphony<Symphony>},
      {{"clockwork", "the published rule of Clockwork, for comparison",
        "eager: starts the batch whose latest possible start comes first", kClockworkOptions},
       &MakeClockwork},
      {{"nexus", "the published rule of Nexus, for comparison",
        "lanes take the models of a plan in turn; a new plan every epoch (squishy bin packing)",
        kNexusOptions},
       &MakeNexus},
      {{"planned", "runs the plans of gpu-lets and of others",
        "lanes take the models of a plan in turn, in batches of the planned size", kPlannedOptions},
       &MakePlanned},
      {{"shepherd", "the published rule of Shepherd, for comparison",
        "Flex, eager: starts the largest batch; it may stop a running one a third its size",
        "preempt=X: how many times as large a batch must be to stop another (3; 0: never)",
        kShepherdTuned, 2},
       &MakeShepherd},
      {{"timeout", "batches go when full or after a delay, as Triton",
        "a batch starts when it is full or its oldest request has waited k", kTimeoutOptions,
        kTimeoutTuned},
       &MakeTimeout},
      {{"strait", "the published rule of Strait, for comparison",
        "by priority; batches share a device if all are predicted to meet their deadlines",
        kStraitOptions},
       &MakeStrait<Strait>},
      {{"temporal", "by priority, one batch at a time",
        "by priority, one batch at a time on a device", kSharingOptions},
       &MakeSharing<SharingRule::kTemporal>},
      {{"static-spatial", "by priority, at most three batches at once",
        "by priority, at most three batches at once", kSharingOptions},
       &MakeSharing<SharingRule::kStatic>},
      {{"reactive-spatial", "by priority, fewer at once after a high miss",
        "by priority, fewer low batches at once after each high miss", kSharingOptions},
       &MakeSharing<SharingRule::kReactive>},
      {{"preemptive-priority", "by priority, stops lower batches (simulated only)",
        "by priority, on a device that stops lower batches between kernels (simulated)",
        kSharingOptions},
       &MakeSharing<SharingRule::kPreemptive>},
  };
  return entries;
}

const PolicyEntry* Find(std::string_view name) {
  for (const std::span<const PolicyEntry> entries : {std::span(Entries()), PlainTwins()}) {
    for (const PolicyEntry& entry : entries) {
      if (entry.info.name == name) return &entry;
    }
  }
  return nullptr;
}

std::unexpected<Error> UnknownPolicy(std::string_view name) {
  std::vector<std::string> names;
  std::string known;
  for (const PolicyInfo& info : Policies()) {
    known += (known.empty() ? "" : ", ") + info.name;
    names.push_back(info.name);
  }
  return NotFound("no policy '" + std::string(name) + "'" + DidYouMean(name, names) +
                  "; there are " + known);
}

}  // namespace

std::vector<PolicyInfo> Policies() {
  std::vector<PolicyInfo> infos;
  for (const PolicyEntry& entry : Entries()) {
    infos.push_back(entry.info);
    for (const PolicyEntry& twin : PlainTwins()) {
      if (twin.info.name == entry.info.name + "-plain") infos.push_back(twin.info);
    }
  }
  return infos;
}

Expected<std::unique_ptr<Policy>> MakePolicy(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const PolicyEntry* found = Find(name);
  if (found == nullptr) return UnknownPolicy(name);
  const PolicyEntry& entry = *found;
  auto options = PolicyOptions::Parse(colon == std::string_view::npos ? std::string_view{}
                                                                      : text.substr(colon + 1));
  if (!options) return std::unexpected(options.error());
  // The whole text is the name: results of two option sets must not be mistaken for each other.
  const DecisionCost cost{.launch = options->MicrosIfGiven("cost"),
                          .candidate = options->MicrosIfGiven("look")};
  auto policy = entry.make(std::string(text), *options);
  policy->SetDecisionCost(cost);
  if (!options->status()) return std::unexpected(options->status().error());
  if (!options->empty()) {
    return InvalidArgument("policy '" + std::string(name) + "' has no option '" +
                           options->first_left() + "'; it has " + entry.info.options +
                           std::string(entry.info.options.empty() ? "" : "; ") +
                           std::string(kCommonOptions));
  }
  return policy;
}

}  // namespace tactus
