#include "server/live/live_minute.h"

#include <algorithm>

namespace tactus {

void LiveMinute::Clear() {
  const std::lock_guard lock(mutex_);
  answers_.clear();
  batches_.clear();
  from_ = kNever;
  to_ = kStart;
}

void LiveMinute::Add(const LiveMoments::Taken& taken) {
  if (taken.lost > 0) return Clear();
  const std::lock_guard lock(mutex_);
  models_ = taken.models;
  for (const LiveMoments::Answer& answer : taken.answers) {
    from_ = std::min(from_, answer.record.ended);
    to_ = std::max(to_, answer.record.ended);
    answers_.push_back(answer);
  }
  for (const LiveMoments::Batch& batch : taken.batches) {
    from_ = std::min(from_, batch.ended);
    to_ = std::max(to_, batch.ended);
    batches_.push_back(batch);
  }
  DropBefore(to_ - kKept);
  // Both are cut at one time.
  if (answers_.size() > kMost) DropBefore(answers_[answers_.size() - kMost].record.ended);
  if (batches_.size() > kMost) DropBefore(batches_[batches_.size() - kMost].ended);
}

void LiveMinute::DropBefore(TimePoint time) {
  if (from_ == kNever || time <= from_) return;
  from_ = time;
  while (!answers_.empty() && answers_.front().record.ended < time) answers_.pop_front();
  while (!batches_.empty() && batches_.front().ended < time) batches_.pop_front();
}

LiveMinute::Kept LiveMinute::Copy() const {
  const std::lock_guard lock(mutex_);
  return {.models = models_,
          .answers = {answers_.begin(), answers_.end()},
          .batches = {batches_.begin(), batches_.end()},
          .from = std::min(from_, to_),
          .to = to_};
}

}  // namespace tactus
