#include "knowledge/write_buffer.h"

#include <utility>

namespace tactus::knowledge {

void WriteBuffer::Add(Batch batch, UtcTime now) {
  batch.sequence = ++sequence_;
  const std::size_t bytes = batch.bytes();
  waiting_.push_back({std::make_shared<Batch>(std::move(batch)), now, bytes});
  bytes_ += bytes;
  KeepLimits(now);
}

std::shared_ptr<const Batch> WriteBuffer::Oldest() {
  if (waiting_.empty()) return nullptr;
  oldest_is_out_ = true;
  return waiting_.front().batch;
}

void WriteBuffer::Remove() {
  oldest_is_out_ = false;
  if (waiting_.empty()) return;
  bytes_ -= waiting_.front().bytes;
  waiting_.pop_front();
}

void WriteBuffer::Clear() {
  for (const Waiting& waiting : waiting_) dropped_ += waiting.batch->records();
  waiting_.clear();
  bytes_ = 0;
  oldest_is_out_ = false;
}

void WriteBuffer::KeepLimits(UtcTime now) {
  const std::size_t first = oldest_is_out_ ? 1 : 0;
  for (std::size_t i = first; i < waiting_.size();) {
    const bool is_old = waiting_[i].added + limits_.age < now;
    if (!is_old && !IsFull()) break;
    if (waiting_[i].has_samples) DropSamples(waiting_[i]);
    if (waiting_[i].batch->records() > 0) {
      ++i;
      continue;
    }
    bytes_ -= waiting_[i].bytes;
    waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
  }
  // Plans and events alone are too many: the oldest go.
  while (IsFull() && waiting_.size() > first) {
    dropped_ += waiting_[first].batch->records();
    bytes_ -= waiting_[first].bytes;
    waiting_.erase(waiting_.begin() + std::ptrdiff_t(first));
  }
}

void WriteBuffer::DropSamples(Waiting& waiting) {
  // A copy: whoever was handed the old one may still hold it.
  auto kept = std::make_shared<Batch>(*waiting.batch);
  const std::size_t before = kept->records();
  kept->arrivals.clear();
  kept->network.clear();
  dropped_ += before - kept->records();
  bytes_ -= waiting.bytes;
  waiting = {kept, waiting.added, kept->bytes(), false};
  bytes_ += waiting.bytes;
}

}  // namespace tactus::knowledge
