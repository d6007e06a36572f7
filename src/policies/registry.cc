#include "policies/registry.h"

#include <algorithm>

#include "policies/baselines/ranked.h"
#include "policies/clockwork/clockwork.h"
#include "policies/edgeserving/edgeserving.h"
#include "policies/edgeserving/edgeserving_plain.h"
#include "policies/nexus/nexus.h"
#include "policies/planned/planned.h"
#include "policies/policy_options.h"
#include "policies/sharing/sharing.h"
#include "policies/shepherd/shepherd.h"
#include "policies/strait/strait.h"
#include "policies/strait/strait_plain.h"
#include "policies/symphony/symphony.h"
#include "policies/symphony/symphony_plain.h"
#include "policies/timeout/timeout.h"

namespace tactus {
namespace {

// Errors are the options' status; then the policy is not used.
struct Entry {
  PolicyInfo info;
  std::unique_ptr<Policy> (*make)(std::string name, PolicyOptions& options);
};

constexpr const char* kBatchOption = "batch=N: largest batch";
constexpr const char* kEdgeServingOptions =
    "batch=N: largest batch; clip=C: the most that one request counts, 10";
// The setting of docs/papers/symphony.md.
constexpr const char* kSymphonyTuned =
    "gather=window,aim=0.8,lead=0.1: a flat top under overload, and larger batches";
constexpr const char* kTimeoutTuned =
    "fill=0.8,share=0.2 for one model, fill=0.65,share=0.35 for many: by default it waits for "
    "nothing (k=0), as Triton and TensorFlow Serving do, and its batches may take the whole SLO";

constexpr const char* kShepherdTuned =
    "preempt=0: in mixes of models what it stops is work lost; but Flex is about stopping";

constexpr const char* kSymphonyOptions =
    "when=frontrun|eager|timeout|latest; k=MS or share=X of the SLO: of timeout; lead=X: before "
    "frontrun, as a share of the SLO, 0; gather=prefix|window; aim=X: share of b* that the window "
    "holds on to, 1; rate=MS: window of the rate from which b* is, 1000; ctrl=US, data=US: delay "
    "of a batch and of each of its requests";

constexpr const char* kStraitOptions =
    "form=X: longest wait for a batch to form, of the SLO, 0.1; slack=X: what its first request "
    "keeps, times a full batch's latency, 1.5; room=X: a device that is used less and keeps a slot "
    "free does not make it wait, 1; "
    "least=P, step=P: of the cap on low levels, 75 and 0.25 percent; starve=MS: the longest that a "
    "queue goes unserved, 1000, and 1 at least (with 0 the one that waited longest would always be "
    "first, whatever its priority); learn=yes|no; excess=P: lower batches join a higher one only "
    "if it is still in time where neighbours cost it more than they cost P percent of batches, "
    "99.9; and to leave parts away: order=no, meet=no, protect=no, unlucky=no, cap=no";
constexpr const char* kSharingOptions =
    "form=X: wait for a batch to form, of the SLO, 0.1; batch=N: largest batch";

constexpr int kAnyBatch = 1 << 20;

template <class Which, bool kEarlyExits>
std::unique_ptr<Policy> MakeEdgeServing(std::string name, PolicyOptions& options) {
  const int batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  const double clip = options.Number("clip", EdgeServingOptions{}.clip, 1, 1e6);
  return std::make_unique<Which>(
      std::move(name),
      EdgeServingOptions{.batch = batch, .clip = clip, .early_exits = kEarlyExits});
}

template <QueueRank kRank, ExitRule kExit>
std::unique_ptr<Policy> MakeRanked(std::string name, PolicyOptions& options) {
  const int batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  return std::make_unique<RankedPolicy>(std::move(name), kRank, kExit, batch);
}

template <class Which>
std::unique_ptr<Policy> MakeSymphony(std::string name, PolicyOptions& options) {
  constexpr Schedulable kWhen[] = {Schedulable::kFrontrun, Schedulable::kEager,
                                   Schedulable::kTimeout, Schedulable::kLatest};
  constexpr Gather kGather[] = {Gather::kPrefix, Gather::kWindow};
  SymphonyOptions made;
  made.candidate.schedulable =
      kWhen[options.Name("when", {"frontrun", "eager", "timeout", "latest"})];
  made.candidate.gather = kGather[options.Name("gather", {"prefix", "window"})];
  const bool timeout = made.candidate.schedulable == Schedulable::kTimeout;
  const bool window = made.candidate.gather == Gather::kWindow;
  for (const char* key : {"k", "share"}) options.Needs(key, timeout, "when=timeout");
  options.Overridden("k", "share");
  options.Needs("lead", made.candidate.schedulable == Schedulable::kFrontrun, "when=frontrun");
  for (const char* key : {"aim", "rate"}) options.Needs(key, window, "gather=window");
  made.candidate.timeout = options.Millis("k", 0);
  made.timeout_share = options.Number("share", 0, 0, 1);
  made.aim = options.Number("aim", 1, 0.1, 1);
  made.lead_share = options.Number("lead", 0, 0, 1);
  made.rate_window = options.Millis("rate", 1000, 1);
  made.delays = {.control = options.Micros("ctrl", 0), .per_request = options.Micros("data", 0)};
  return std::make_unique<Which>(std::move(name), made);
}

std::unique_ptr<Policy> MakeClockwork(std::string name, PolicyOptions& options) {
  ClockworkOptions made;
  made.sizes = options.List("sizes", kAnyBatch);
  made.margin = options.Number("margin", 1, 1, 10);
  return std::make_unique<Clockwork>(std::move(name), std::move(made));
}

std::unique_ptr<Policy> MakeNexus(std::string name, PolicyOptions& options) {
  NexusOptions made;
  made.front_ends = options.Whole("frontends", 1, 0, 64);
  made.grow = options.Name("grow", {"yes", "no"}) == 0;
  made.epoch = options.Millis("epoch", 10'000, 10);
  return std::make_unique<Nexus>(std::move(name), made);
}

std::unique_ptr<Policy> MakePlanned(std::string name, PolicyOptions& options) {
  PlannedOptions made;
  made.grow = options.Name("grow", {"no", "yes"}) == 1;
  made.epoch = options.Millis("epoch", 10'000, 10);
  return std::make_unique<Planned>(std::move(name), made);
}

std::unique_ptr<Policy> MakeShepherd(std::string name, PolicyOptions& options) {
  return std::make_unique<Shepherd>(
      std::move(name), ShepherdOptions{.factor = options.Number("preempt", 3, 0, 1e6)});
}

template <class Which>
std::unique_ptr<Policy> MakeStrait(std::string name, PolicyOptions& options) {
  const auto with = [&](const char* part) { return options.Name(part, {"yes", "no"}) == 0; };
  StraitOptions made;
  made.interference.learn = with("learn");
  made.ordered = with("order");
  made.meets = with("meet");
  made.protects = with("protect");
  made.capped = with("cap");
  for (const char* key : {"least", "step"}) options.Needs(key, made.capped, "cap=yes");
  made.throttle.least = options.Number("least", 75, 1, 100) / 100;
  made.throttle.step = options.Number("step", 0.25, 0, 100) / 100;
  made.formation = options.Number("form", made.formation, 0, 1);
  for (const char* key : {"slack", "room"}) options.Needs(key, made.formation > 0, "form above 0");
  made.slack = options.Number("slack", made.slack, 0, 100);
  made.room = options.Number("room", made.room, 0, 100);
  const bool unlucky = with("unlucky");
  for (const char* key : {"unlucky", "excess"}) {
    options.Needs(key, made.interference.learn, "learn=yes");
    options.Needs(key, made.protects, "protect=yes");
  }
  options.Needs("excess", unlucky, "unlucky=yes");
  made.excess = options.Number("excess", 100 * made.excess, 50, 100) / 100;
  if (!unlucky) made.excess = 0;
  made.starve = FromMillis(options.Number("starve", ToMillis(made.starve), 1, 1e6));
  return std::make_unique<Which>(std::move(name), made);
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
        kSymphonyOptions, kSymphonyTuned},
       &MakeSymphony<Symphony>},
      {{"symphony-plain", "the same decisions, written as the paper states them; slow",
        kSymphonyOptions, kSymphonyTuned},
       &MakeSymphony<PlainSymphony>},
      {{"clockwork", "eager: the batch whose latest start comes first",
        "sizes=1/2/4/8/16: batch sizes, all; margin=X: estimates over the profile's, 1"},
       &MakeClockwork},
      {{"nexus", "lanes run the models of a plan in turn, new every epoch (squishy bin packing)",
        "frontends=N: that route without coordination, 1 (0: lanes share each model's queue); "
        "grow=yes|no: beyond the planned batch; epoch=MS, 10000"},
       &MakeNexus},
      {{"planned", "lanes run the models of any plan in turn, in batches of the planned size",
        "grow=no|yes: beyond the planned batch; epoch=MS, 10000: of plans where none is given"},
       &MakePlanned},
      {{"shepherd", "Flex, eager: the largest batch first; it may stop one a third its size",
        "preempt=X: times as large, 3 (0: never)", kShepherdTuned, 2},
       &MakeShepherd},
      {{"timeout", "a batch goes when it is full or its oldest request has waited k",
        "k=MS or share=X of the SLO, 0; batch=N, fill=X of the SLO: largest batch; preferred=4/8: "
        "sizes that go at once; drop=lost|never",
        kTimeoutTuned},
       &MakeTimeout},
      {{"strait",
        "by priority; batches share a device where all are predicted to meet their deadlines",
        kStraitOptions},
       &MakeStrait<Strait>},
      {{"strait-plain", "the same decisions, written as the paper states them; slow",
        kStraitOptions},
       &MakeStrait<PlainStrait>},
      {{"temporal", "by priority, one batch at a time on a device", kSharingOptions},
       &MakeSharing<SharingRule::kTemporal>},
      {{"static-spatial", "by priority, at most three batches at once", kSharingOptions},
       &MakeSharing<SharingRule::kStatic>},
      {{"reactive-spatial", "by priority, fewer low batches at once after each high miss",
        kSharingOptions},
       &MakeSharing<SharingRule::kReactive>},
      {{"preemptive-priority",
        "by priority, on a device that stops lower batches between kernels (simulated)",
        kSharingOptions},
       &MakeSharing<SharingRule::kPreemptive>},
  };
  return entries;
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
  return UnknownPolicy(name);
}

}  // namespace tactus
