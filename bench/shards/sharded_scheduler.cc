#include "shards/sharded_scheduler.h"

#include <algorithm>
#include <ctime>

#include <pthread.h>

namespace tactus {
namespace {

// A thread's way to wait: a moment of looking again, then sleep.
class Idling {
 public:
  explicit Idling(Duration sleep) : sleep_(sleep) {}

  void Worked() { looks_ = 0; }
  void Wait(TimePoint next_timer) {
    if (++looks_ < kLooks) return;
    const Duration left = next_timer - ShardedScheduler::Now();
    if (left > Duration::zero()) std::this_thread::sleep_for(std::min(left, sleep_));
  }

 private:
  static constexpr int kLooks = 32;
  const Duration sleep_;
  int looks_ = 0;
};

Duration CpuTimeOf(std::thread& thread) {
  clockid_t clock{};
  timespec time{};
  CHECK(pthread_getcpuclockid(thread.native_handle(), &clock) == 0, "the thread runs");
  CHECK(clock_gettime(clock, &time) == 0, "the clock of a thread that runs can be read");
  return Seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

}  // namespace

ShardedScheduler::ShardedScheduler(const SchedulerOptions& options, std::span<const Model> models,
                                   const ProfileTable& profile,
                                   std::span<ShardOutbox* const> outboxes)
    : options_(options),
      mailbox_(models.size()),
      rank_(models.size(), options.lanes, LaneRelease::kAtProfiledEnd) {
  CHECK(options.shards > 0 && outboxes.size() == options.shards, "one outbox for each shard");
  for (std::uint32_t i = 0; i < options.shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(ShardPlace{i, options.shards}, options, models,
                                              profile, mailbox_, *outboxes[i]));
  }
}

void ShardedScheduler::Start() {
  CHECK(!rank_thread_.joinable(), "started once");
  rank_thread_ = std::thread([this] { RunRank(); });
  for (const auto& shard : shards_) {
    shard->thread = std::thread([this, &s = *shard] { RunShard(s); });
  }
}

void ShardedScheduler::Stop() {
  if (!rank_thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  // What waits is launched or expires, so this ends after the longest deadline at the latest.
  for (const auto& shard : shards_) {
    while (!shard->drained.load(std::memory_order_acquire)) std::this_thread::sleep_for(Millis(1));
  }
  ended_.store(true, std::memory_order_release);
  for (const auto& shard : shards_) shard->thread.join();
  rank_thread_.join();
}

Duration ShardedScheduler::ShardCpuTime(std::uint32_t shard) {
  return CpuTimeOf(shards_[shard]->thread);
}
Duration ShardedScheduler::RankCpuTime() { return CpuTimeOf(rank_thread_); }

std::size_t ShardedScheduler::ReadArrivals(Shard& shard) {
  const std::span<const Arrival> arrivals = shard.arrivals.Readable(options_.arrivals_at_once);
  shard.shard.Arrive(arrivals);
  shard.arrivals.Consume(arrivals.size());
  return arrivals.size();
}

void ShardedScheduler::RunShard(Shard& shard) {
  Idling idling(options_.idle_sleep);
  while (!ended_.load(std::memory_order_acquire)) {
    // Looked at first: what was pushed before it was set is then seen below.
    const bool stopping = stopping_.load(std::memory_order_acquire);
    std::size_t work = ReadArrivals(shard);
    const TimePoint now = Now();
    const std::span<const Grant> grants = shard.grants.Readable(options_.lanes);
    shard.shard.OnGrants(grants, now);
    shard.grants.Consume(grants.size());
    work += grants.size();
    shard.shard.Advance(now);
    if (work > 0) {
      idling.Worked();
      continue;
    }
    if (stopping && shard.shard.waiting() == 0) {
      shard.drained.store(true, std::memory_order_release);
    }
    idling.Wait(shard.shard.NextTimer());
  }
}

void ShardedScheduler::RunRank() {
  Idling idling(options_.idle_sleep);
  while (!ended_.load(std::memory_order_acquire)) {
    const TimePoint now = Now();
    std::size_t work =
        mailbox_.ReadChanged([&](ModelId m, const CandidateNote& note) { rank_.OnNote(m, note); });
    LaneAnswer answer;
    for (const auto& shard : shards_) {
      for (; shard->answers.TryPop(answer); ++work) rank_.OnAnswer(answer, now);
    }
    rank_.Advance(now);
    while (const auto grant = rank_.NextGrant(now)) {
      CHECK(shards_[ShardOf(grant->model)]->grants.TryPush(*grant), "one grant for each lane");
      ++work;
    }
    if (work > 0) {
      idling.Worked();
    } else {
      idling.Wait(rank_.NextTimer());
    }
  }
}

}  // namespace tactus
