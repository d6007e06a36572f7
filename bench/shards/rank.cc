#include "shards/rank.h"

#include <algorithm>

namespace tactus {
namespace {

constexpr std::uint32_t kGroup = 0;  // lanes are equal

}  // namespace

Rank::Rank(std::size_t models, std::size_t lanes, LaneRelease release)
    : release_(release), models_(models), lanes_(lanes) {
  CHECK(lanes > 0, "a scheduler without lanes can serve nothing");
  match_.Resize(models, std::vector<std::uint32_t>(lanes, kGroup), 1);
  ends_.Resize(lanes);
  for (std::size_t i = 0; i < lanes; ++i) Update(LaneId{static_cast<LaneId::rep>(i)}, kStart);
}

void Rank::OnNote(ModelId m, const CandidateNote& note) {
  ModelState& model = models_[m.value()];
  const std::uint32_t unanswered = model.granted - note.answered;
  model.left = note.batches > unanswered ? note.batches - unanswered : 0;
  model.since = note.since;
  if (model.left == 0) return match_.Erase(m, kGroup);
  // Its shard has found it schedulable: no need to wait here.
  match_.Put(m, kGroup, {.exec = TimePoint{Duration::min()}, .latest = note.latest});
}

void Rank::OnAnswer(const LaneAnswer& answer, TimePoint now) {
  if (!answer.used) {
    lanes_[answer.lane.value()].busy = false;
    Update(answer.lane, now);
  } else if (release_ == LaneRelease::kAtProfiledEnd) {
    ends_.Put(answer.lane.value(), answer.free_at);
  }
}

void Rank::OnLaneFree(LaneId lane, TimePoint now) {
  CHECK(lanes_[lane.value()].busy, "a lane reports each batch once");
  lanes_[lane.value()].busy = false;
  Update(lane, now);
}

void Rank::SetLaneOpen(LaneId lane, bool open, TimePoint now) {
  lanes_[lane.value()].open = open;
  Update(lane, now);
}

void Rank::Update(LaneId lane, TimePoint at) {
  LaneState& state = lanes_[lane.value()];
  const bool free = state.open && !state.busy;
  if (free == state.free) return;
  state.free = free;
  match_.SetFree(lane, free);
  if (!free) {
    --free_;
  } else if (++free_ == 1) {
    free_since_ = at;
  }
}

void Rank::Advance(TimePoint now) {
  while (!ends_.empty() && ends_.top_key() <= now) {
    const LaneId lane{ends_.top()};
    const TimePoint end = ends_.top_key();
    ends_.Erase(lane.value());
    lanes_[lane.value()].busy = false;
    Update(lane, end);
  }
}

std::optional<Grant> Rank::NextGrant(TimePoint now) {
  Match::Outcome next = match_.Next(now);
  for (; next.kind == Match::Outcome::Kind::kStale; next = match_.Next(now)) {
    // Its shard will tell of a smaller batch, or of another head.
    models_[next.model.value()].left = 0;
    match_.Erase(next.model, kGroup);
  }
  if (next.kind != Match::Outcome::Kind::kGrant) return std::nullopt;
  lanes_[next.lane.value()].busy = true;
  Update(next.lane, now);
  ModelState& model = models_[next.model.value()];
  ++model.granted;
  if (--model.left == 0) match_.Erase(next.model, kGroup);
  return Grant{next.model, next.lane, now, std::min(now, std::max(model.since, free_since_))};
}

}  // namespace tactus
