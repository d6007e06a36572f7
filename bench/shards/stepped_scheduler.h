// The sharded scheduler without threads: the same shards, mailbox and rank, driven in virtual time
// and in one fixed order of delivery. Under that order it takes the decisions of one Dispatcher
// with the policy `symphony` (the joined form), for the same journal:
//
//   all events of an instant reach the shards and the rank before Step;
//   Step lets every shard advance, then repeats: the rank reads the mailbox, grants one lane, the
//   shard of that model answers at once; until the rank has nothing to grant.
//
// On threads the rank may grant a second lane before it has the answer about the first, so a model
// whose next batch expires first may be overtaken by another: docs/design/0005.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "shards/model_shard.h"
#include "shards/rank.h"

namespace tactus {

class SteppedScheduler {
 public:
  // `outbox` outlives the scheduler.
  SteppedScheduler(std::uint32_t shards, std::span<const Model> models, const ProfileTable& profile,
                   std::size_t lanes, const ShardOptions& options, LaneRelease release,
                   ShardOutbox& outbox);

  void Arrive(ModelId m, const Request& request) { ShardOf(m).Arrive(m, request); }
  void Cancel(ModelId m, RequestId request, TimePoint now) { ShardOf(m).Cancel(m, request, now); }
  void OnLaneFree(LaneId lane, TimePoint now) { rank_.OnLaneFree(lane, now); }
  void SetLaneOpen(LaneId lane, bool open, TimePoint now) { rank_.SetLaneOpen(lane, open, now); }

  // Takes all decisions of this instant. Returns when to step again if nothing happens before.
  TimePoint Step(TimePoint now);

  std::size_t waiting() const;

 private:
  ModelShard& ShardOf(ModelId m) { return *shards_[m.value() % shards_.size()]; }

  CandidateMailbox mailbox_;
  Rank rank_;
  std::deque<SpscRing<LaneAnswer>> answers_;  // by shard
  std::vector<std::unique_ptr<ModelShard>> shards_;
};

}  // namespace tactus
