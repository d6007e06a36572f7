#include "server/live/live_minute.h"

#include <algorithm>
#include <utility>

namespace tactus {

void LiveMinute::Begin() {
  const std::lock_guard lock(mutex_);
  Part seen = std::exchange(now_, {});
  if (seen.length() >= kLeast) before_ = std::move(seen);
}

void LiveMinute::Add(const LiveMoments::Taken& taken, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  models_ = taken.models;
  if (taken.lost > 0) {
    now_ = before_ = {};
    return;
  }
  now_.seen = now;
  for (const LiveMoments::Answer& answer : taken.answers) {
    now_.from = std::min(now_.from, answer.record.ended);
    now_.to = std::max(now_.to, answer.record.ended);
    now_.answers.push_back(answer);
  }
  for (const LiveMoments::Batch& batch : taken.batches) {
    now_.from = std::min(now_.from, batch.ended);
    now_.to = std::max(now_.to, batch.ended);
    now_.batches.push_back(batch);
  }
  now_.DropBefore(now_.to - kKept);
  // Both are cut at one time.
  const auto& answers = now_.answers;
  const auto& batches = now_.batches;
  if (answers.size() > kMost) now_.DropBefore(answers[answers.size() - kMost].record.ended);
  if (batches.size() > kMost) now_.DropBefore(batches[batches.size() - kMost].ended);
  if (now_.length() >= kLeast) before_ = {};
}

void LiveMinute::Forget(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (Part* part : {&now_, &before_}) {
    if (now - part->seen >= kRemembered) *part = {};
  }
}

void LiveMinute::Part::DropBefore(TimePoint time) {
  if (from == kNever || time <= from) return;
  from = time;
  while (!answers.empty() && answers.front().record.ended < time) answers.pop_front();
  while (!batches.empty() && batches.front().ended < time) batches.pop_front();
}

LiveMinute::Kept LiveMinute::Copy(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const Part& part = now_.length() < kLeast && before_.length() >= kLeast ? before_ : now_;
  if (part.length() == Duration{}) return {};
  return {.models = models_,
          .answers = {part.answers.begin(), part.answers.end()},
          .batches = {part.batches.begin(), part.batches.end()},
          .from = part.from,
          .to = part.to,
          .ago = now - part.seen};
}

}  // namespace tactus
