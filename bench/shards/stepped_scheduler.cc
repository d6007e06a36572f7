#include "shards/stepped_scheduler.h"

#include <algorithm>

namespace tactus {

SteppedScheduler::SteppedScheduler(std::uint32_t shards, std::span<const Model> models,
                                   const ProfileTable& profile, std::size_t lanes,
                                   const ShardOptions& options, LaneRelease release,
                                   ShardOutbox& outbox)
    : mailbox_(models.size()), rank_(models.size(), lanes, release) {
  CHECK(shards > 0, "every model needs a shard");
  for (std::uint32_t i = 0; i < shards; ++i) {
    answers_.emplace_back(lanes);
    shards_.push_back(std::make_unique<ModelShard>(ShardPlace{i, shards}, models, profile, lanes,
                                                   options, mailbox_, answers_.back(), outbox));
  }
}

TimePoint SteppedScheduler::Step(TimePoint now) {
  for (const auto& shard : shards_) shard->Advance(now);
  rank_.Advance(now);
  for (;;) {
    mailbox_.ReadChanged([&](ModelId m, const CandidateNote& note) { rank_.OnNote(m, note); });
    const auto grant = rank_.NextGrant(now);
    if (!grant) break;
    ModelShard& shard = ShardOf(grant->model);
    shard.OnGrant(*grant, now);
    shard.Advance(now);
    LaneAnswer answer;
    CHECK(answers_[grant->model.value() % shards_.size()].TryPop(answer), "answered at once");
    rank_.OnAnswer(answer, now);
  }
  TimePoint next = rank_.NextTimer();
  for (const auto& shard : shards_) next = std::min(next, shard->NextTimer());
  return next;
}

std::size_t SteppedScheduler::waiting() const {
  std::size_t waiting = 0;
  for (const auto& shard : shards_) waiting += shard->waiting();
  return waiting;
}

}  // namespace tactus
