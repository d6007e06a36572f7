// A share of the models (Symphony, Section 4.2: MODELTHREAD): their queues, their candidates and
// their timers. It has no thread and no clock: ShardedScheduler drives it on one, SteppedScheduler
// in virtual time.
//
// The paper's rank thread holds the model timers. Here the shard does, and says nothing about a
// candidate before it is schedulable: a candidate changes with every arrival, but is announced once
// a batch. The rank thread's work is then per batch and not per request.
//
// Not thread-safe. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fixed_vector.h"
#include "base/indexed_heap.h"
#include "base/ring.h"
#include "core/model.h"
#include "core/profile_table.h"
#include "core/request_queue.h"
#include "policies/symphony/arrival_rate.h"
#include "policies/symphony/symphony_options.h"
#include "shards/candidate_mailbox.h"
#include "shards/messages.h"

namespace tactus {

struct ShardOptions {
  SymphonyOptions policy;
  // Requests that may wait for one model; the next one is rejected with kQueueFull.
  std::size_t queue_capacity = 4096;
};

// Model m belongs to shard m % count.
struct ShardPlace {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

class ModelShard {
 public:
  // `models` and `profile` are those of all shards; what this one needs is copied. The lanes are
  // all of lane class 0 and run every model. `mailbox`, `answers` (room for as many as there are
  // lanes) and `outbox` outlive the shard.
  ModelShard(ShardPlace place, std::span<const Model> models, const ProfileTable& profile,
             std::size_t lanes, const ShardOptions& options, CandidateMailbox& mailbox,
             SpscRing<LaneAnswer>& answers, ShardOutbox& outbox);

  // Each of these is complete after the next Advance: the candidates it changed are renewed there,
  // once for however many events. request.arrival is the instant.
  void Arrive(ModelId m, const Request& request);
  void Arrive(std::span<const Arrival> arrivals);
  // Unknown ids (already started or dropped) are ignored.
  void Cancel(ModelId m, RequestId request, TimePoint now);
  // Finalises the batch and answers, or gives the lane back if nothing is schedulable any more.
  void OnGrant(const Grant& grant, TimePoint now);
  void OnGrants(std::span<const Grant> grants, TimePoint now);
  // Renews the candidates that changed, fires the timers up to `now`, drops what is unmeetable.
  void Advance(TimePoint now);

  // When to Advance again if nothing arrives; kNever when only an arrival can matter.
  TimePoint NextTimer() const { return timers_.empty() ? kNever : timers_.top_key(); }
  std::size_t waiting() const { return waiting_; }

 private:
  struct State {
    CandidateNote note;           // as it stands in the mailbox, but for `answered`
    std::uint32_t batch = 0;      // of the candidate, schedulable or not
    std::uint32_t next_full = 0;  // with that many requests one more full batch waits
    std::int32_t target = 1;      // b*, for window gathering
    // Whatever of this shape comes behind the others changes nothing yet, until the batch is full:
    // no size could be schedulable before the timer.
    bool quiet = false;
    std::uint32_t shape = 0;
    bool changed = false;   // listed in changed_
    bool answered = false;  // a grant, and the mailbox does not say so yet
  };

  std::uint32_t Local(ModelId m) const { return m.value() / place_.count; }
  ModelId Global(std::uint32_t local) const { return ModelId{local * place_.count + place_.index}; }
  bool Window() const { return options_.policy.candidate.gather == Gather::kWindow; }
  void MarkChanged(std::uint32_t local);
  void CountArrival(std::uint32_t local, TimePoint at);
  void RejectFront(std::uint32_t local, int count, DropReason reason, TimePoint now);
  // Drops what is unmeetable, then announces the candidate or sets its timer.
  void Renew(std::uint32_t local, TimePoint now);
  void Announce(std::uint32_t local, const SymphonyCandidate& candidate);
  // When to look at a candidate that is not schedulable yet; may make the model quiet.
  TimePoint LookAgain(std::uint32_t local, const SymphonyCandidate& candidate, TimePoint now);
  std::optional<SymphonyCandidate> CandidateAfterDrops(std::uint32_t local, TimePoint now);
  // The same, having given up the heads that hold a window's batch under its target.
  std::optional<SymphonyCandidate> CandidateToRun(std::uint32_t local, TimePoint now);
  TimePoint Launch(std::uint32_t local, const Grant& grant, int batch, TimePoint now);

  const ShardPlace place_;
  const ShardOptions options_;
  const int lanes_;
  CandidateMailbox& mailbox_;
  SpscRing<LaneAnswer>& answers_;
  ShardOutbox& outbox_;

  // By local index: m / count.
  std::vector<RequestQueue> queues_;
  std::vector<State> states_;
  std::vector<BatchCosts> costs_;
  std::vector<CandidateOptions> candidates_;
  std::vector<std::vector<Duration>> latencies_;  // l(b) at b - 1, without network delays
  std::vector<Duration> slos_;
  std::vector<ArrivalRate> rates_;  // for window gathering only

  IndexedHeap<TimePoint> timers_;       // by local index: when the candidate changes by itself
  FixedVector<std::uint32_t> changed_;  // local indices, since the last Advance
  FixedVector<Request> batch_;          // the one being launched, in one piece
  std::size_t waiting_ = 0;
};

}  // namespace tactus
