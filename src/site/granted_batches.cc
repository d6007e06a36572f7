#include "site/granted_batches.h"

namespace tactus {

GrantedBatches::GrantedBatches(std::uint32_t capacity) : batches_(capacity) {
  for (std::uint32_t i = capacity; i-- > 0;) free_.push_back(i);
}

GrantedBatches::Place GrantedBatches::Enter(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  if (const auto known = index_.find(batch.key); known != index_.end()) {
    return {known->second | kGroup, batches_[known->second]->deadline};
  }
  if (free_.empty()) Sweep(batch.deadline);
  if (free_.empty()) return {0, batch.deadline};
  const std::uint32_t index = free_.back();
  free_.pop_back();
  batches_[index] = batch;
  index_[batch.key] = index;
  return {index | kGroup, batch.deadline};
}

std::optional<GrantedBatches::Batch> GrantedBatches::Find(std::uint32_t group) const {
  const std::lock_guard lock(mutex_);
  if (!IsGroup(group) || Index(group) >= batches_.size()) return std::nullopt;
  return batches_[Index(group)];
}

void GrantedBatches::Sweep(TimePoint deadline) {
  for (std::uint32_t i = 0; i < batches_.size(); ++i) {
    if (!batches_[i] || batches_[i]->deadline + kForgotten > deadline) continue;
    index_.erase(batches_[i]->key);
    batches_[i].reset();
    free_.push_back(i);
  }
}

void GrantedBatches::End(std::uint32_t group, const BatchKey& key) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = Index(group);
  if (!IsGroup(group) || index >= batches_.size() || !batches_[index]) return;
  if (batches_[index]->key != key) return;
  index_.erase(batches_[index]->key);
  batches_[index].reset();
  free_.push_back(index);
}

}  // namespace tactus
