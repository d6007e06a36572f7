// The scheduler on threads (Symphony, Section 4.2): each shard on one, the rank on another.
//
//   source --(arrival ring)--> shard --(mailbox: latest candidate)--> rank
//                              shard <--------(grant ring)----------- rank
//                              shard ---(answer ring: lane used?)---> rank
//
// No lock, and nothing allocates between Start and Stop but what the outboxes do. A thread that
// finds nothing to do looks again a few times and then sleeps for `idle_sleep`, or until its next
// timer if that is sooner.
//
// Lanes are emulated: one is free again when the profiled latency of its batch has passed.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/ring.h"
#include "shards/model_shard.h"
#include "shards/rank.h"

namespace tactus {

struct SchedulerOptions {
  std::uint32_t shards = 1;
  std::size_t lanes = 1;
  ShardOptions shard;
  std::size_t arrival_ring = 8192;     // requests that a shard has not read yet
  std::size_t arrivals_at_once = 256;  // read between two looks at the clock and the grants
  Duration idle_sleep = Micros(20);
};

class ShardedScheduler {
 public:
  // Serving time is the steady clock's.
  static TimePoint Now() { return TimePoint{std::chrono::steady_clock::now().time_since_epoch()}; }

  // One outbox for each shard, called on its thread; they outlive the scheduler.
  ShardedScheduler(const SchedulerOptions& options, std::span<const Model> models,
                   const ProfileTable& profile, std::span<ShardOutbox* const> outboxes);
  ~ShardedScheduler() { Stop(); }
  ShardedScheduler(const ShardedScheduler&) = delete;
  ShardedScheduler& operator=(const ShardedScheduler&) = delete;

  // Where the requests of the models of that shard go in; one producer each.
  SpscRing<Arrival>& arrivals(std::uint32_t shard) { return shards_[shard]->arrivals; }
  std::uint32_t ShardOf(ModelId m) const { return m.value() % options_.shards; }

  void Start();
  // After the last arrival: every request is launched or rejected, then the threads end.
  void Stop();

  // Processor time of a thread so far. Between Start and Stop.
  Duration ShardCpuTime(std::uint32_t shard);
  Duration RankCpuTime();

 private:
  struct Shard {
    Shard(ShardPlace place, const SchedulerOptions& options, std::span<const Model> models,
          const ProfileTable& profile, CandidateMailbox& mailbox, ShardOutbox& outbox)
        : arrivals(options.arrival_ring),
          grants(2 * options.lanes),
          answers(options.lanes),
          shard(place, models, profile, options.lanes, options.shard, mailbox, answers, outbox) {}
    SpscRing<Arrival> arrivals;
    // A lane is in one unanswered grant at most. As many that are answered may still lie in the
    // ring, since those read together are given back together.
    SpscRing<Grant> grants;
    SpscRing<LaneAnswer> answers;
    ModelShard shard;
    std::atomic<bool> drained{false};
    std::thread thread;
  };

  void RunShard(Shard& shard);
  void RunRank();
  std::size_t ReadArrivals(Shard& shard);

  const SchedulerOptions options_;
  CandidateMailbox mailbox_;
  Rank rank_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::thread rank_thread_;
  std::atomic<bool> stopping_{false};  // nothing more arrives
  std::atomic<bool> ended_{false};     // nothing waits any more
};

}  // namespace tactus
