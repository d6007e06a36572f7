#include "server/live/live_moments.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tactus {

void LiveMoments::Watch(bool watched) {
  const std::lock_guard lock(mutex_);
  batches_.clear();
  answers_.clear();
  late_.clear();
  lost_ = 0;
  if (watched) {
    batches_.reserve(kMostBatches);
    answers_.reserve(kMostAnswers);
    late_.reserve(kMostAnswers);
  }
  watched_.store(watched, std::memory_order_relaxed);
}

LiveMoments::Taken LiveMoments::Take() {
  Taken taken;
  taken.batches.reserve(kMostBatches);
  taken.answers.reserve(kMostAnswers);
  std::vector<Late> late;
  late.reserve(kMostAnswers);
  {
    const std::lock_guard lock(mutex_);
    taken.batches.swap(batches_);
    taken.answers.swap(answers_);
    late.swap(late_);
    taken.models = names_;
    taken.lost = std::exchange(lost_, 0);
  }
  std::ranges::sort(late, {}, &Late::started);
  for (Batch& batch : taken.batches) {
    for (const Late& answer : std::ranges::equal_range(late, batch.started, {}, &Late::started)) {
      batch.late = true;
      batch.waited = std::max(batch.waited, answer.waited);
      batch.late_by = std::max(batch.late_by, answer.late_by);
    }
  }
  return taken;
}

std::uint32_t LiveMoments::NumberOf(const std::string& name) {
  const auto [found, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) names_.push_back(name);
  return found->second;
}

void LiveMoments::OnAnswered(const ModelSpec& model, const RequestRecord& record, int rows) {
  next_.OnAnswered(model, record, rows);
  if (watched_.load(std::memory_order_relaxed)) Note(model, record, rows, false);
}

void LiveMoments::OnStepAnswered(const ModelSpec& model, const RequestRecord& record, int rows) {
  next_.OnStepAnswered(model, record, rows);
  if (watched_.load(std::memory_order_relaxed)) Note(model, record, rows, true);
}

void LiveMoments::Note(const ModelSpec& model, const RequestRecord& record, int rows, bool step) {
  try {
    const std::lock_guard lock(mutex_);
    if (answers_.size() >= kMostAnswers) {
      ++lost_;
      return;
    }
    answers_.push_back({.model = NumberOf(model.name),
                        .rows = static_cast<std::uint32_t>(rows),
                        .record = record,
                        .step = step,
                        .pipeline = model.platform == "ensemble"});
    if (record.outcome == Outcome::kLate && record.batch > 0) {
      late_.push_back(
          {record.started, record.started - record.arrival, record.ended - record.deadline});
    }
  } catch (const std::bad_alloc&) {  // it is for show
  }
}

void LiveMoments::OnBatch(const ModelSpec& model, const BatchRecord& record) {
  next_.OnBatch(model, record);
  if (!watched_.load(std::memory_order_relaxed)) return;
  try {
    const std::lock_guard lock(mutex_);
    if (batches_.size() >= kMostBatches) {
      ++lost_;
      return;
    }
    batches_.push_back({.model = NumberOf(model.name),
                        .lane = static_cast<std::uint16_t>(record.lane.value()),
                        .exit = static_cast<std::uint16_t>(record.exit.value()),
                        .rows = static_cast<std::uint16_t>(record.batch),
                        .failed = record.status != BatchStatus::kOk,
                        .decided = record.decided,
                        .started = record.started,
                        .ended = record.ended,
                        .learnt = record.learnt,
                        .predicted = record.predicted()});
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace tactus
