// How a policy that has a plain twin is made of its options, for both: the registry makes the quick
// one, tests/twins the one that is written as the paper states it (design/0004).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "policies/edgeserving/edgeserving.h"
#include "policies/policy_options.h"
#include "policies/registry.h"
#include "policies/strait/strait.h"
#include "policies/symphony/symphony.h"

namespace tactus {

// Errors are the options' status; then the policy is not used.
struct PolicyEntry {
  PolicyInfo info;
  std::unique_ptr<Policy> (*make)(std::string name, PolicyOptions& options);
};

// "symphony-plain" and its like, which a program has that links tests/twins. Other programs have
// none (no_twins.cc).
std::span<const PolicyEntry> PlainTwins();

inline constexpr const char* kEdgeServingOptions =
    "batch=N: largest batch; clip=C: the largest urgency of one request (10)";
inline constexpr const char* kSymphonyOptions =
    "published: as in the paper (gather=window,aim=1,lead=0); when=frontrun|eager|timeout|latest: "
    "when a batch may start; k=MS or share=X: the delay of when=timeout, in ms or as a share of "
    "the SLO; lead=X: start earlier than frontrun by this share of the SLO (derived from the "
    "load); gather=window|prefix: whether first requests that keep a batch small are given up; "
    "aim=X: the share of the target batch size that the window insists on (0.8); rate=MS: "
    "averaging time of the arrival rates (1000); ctrl=US, data=US: network delay of a batch, and "
    "of each request in it";

inline constexpr const char* kStraitOptions =
    "form=X: longest wait for a batch to form, as a share of the SLO (0.1); slack=X: its first "
    "request keeps X times the latency of a full batch (1.5); room=X: it does not wait for a "
    "device that is used less than this and has a free slot (1); least=P, step=P: lower bound and "
    "step of the cap on low priorities, in percent (75, 0.25); starve=MS: longest time that a "
    "queue goes unserved (1000; at least 1); learn=yes|no: learn from measurements; "
    "tail_percentile=P: a lower batch may join a higher one only if that is in time with the "
    "slowdown at this percentile (99.9); order=no, meet=no, protect=no, tail=no, cap=no: switch "
    "off a part of the algorithm";

inline constexpr int kAnyBatch = 1 << 20;

template <class Which, bool kEarlyExits>
std::unique_ptr<Policy> MakeEdgeServing(std::string name, PolicyOptions& options) {
  const int batch = options.Whole("batch", kAnyBatch, 1, kAnyBatch);
  const double clip = options.Number("clip", EdgeServingOptions{}.clip, 1, 1e6);
  return std::make_unique<Which>(
      std::move(name),
      EdgeServingOptions{.batch = batch, .clip = clip, .early_exits = kEarlyExits});
}

template <class Which>
std::unique_ptr<Policy> MakeSymphony(std::string name, PolicyOptions& options) {
  constexpr Schedulable kWhen[] = {Schedulable::kFrontrun, Schedulable::kEager,
                                   Schedulable::kTimeout, Schedulable::kLatest};
  constexpr Gather kGather[] = {Gather::kWindow, Gather::kPrefix};
  SymphonyOptions made;
  const bool published = options.Flag("published");
  made.candidate.schedulable =
      kWhen[options.Name("when", {"frontrun", "eager", "timeout", "latest"})];
  made.candidate.gather = kGather[options.Name("gather", {"window", "prefix"})];
  const bool timeout = made.candidate.schedulable == Schedulable::kTimeout;
  const bool window = made.candidate.gather == Gather::kWindow;
  for (const char* key : {"k", "share"}) options.Needs(key, timeout, "when=timeout");
  options.Overridden("k", "share");
  options.Needs("lead", made.candidate.schedulable == Schedulable::kFrontrun, "when=frontrun");
  for (const char* key : {"aim", "rate"}) options.Needs(key, window, "gather=window");
  made.candidate.timeout = options.Millis("k", 0);
  made.timeout_share = options.Number("share", 0, 0, 1);
  made.aim = options.Number("aim", published ? 1 : 0.8, 0.1, 1);
  made.adaptive_lead =
      !published && !options.Has("lead") && made.candidate.schedulable == Schedulable::kFrontrun;
  made.lead_share = options.Number("lead", 0, 0, 1);
  made.rate_window = options.Millis("rate", 1000, 1);
  made.delays = {.control = options.Micros("ctrl", 0), .per_request = options.Micros("data", 0)};
  return std::make_unique<Which>(std::move(name), made);
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
  options.Renamed("unlucky", "tail");
  options.Renamed("excess", "tail_percentile");
  const bool tail = with("tail");
  for (const char* key : {"tail", "tail_percentile"}) {
    options.Needs(key, made.interference.learn, "learn=yes");
    options.Needs(key, made.protects, "protect=yes");
  }
  options.Needs("tail_percentile", tail, "tail=yes");
  made.tail_quantile = options.Number("tail_percentile", 100 * made.tail_quantile, 50, 100) / 100;
  if (!tail) made.tail_quantile = 0;
  made.starve = FromMillis(options.Number("starve", ToMillis(made.starve), 1, 1e6));
  return std::make_unique<Which>(std::move(name), made);
}

}  // namespace tactus
