#include "load/ledger.h"

#include <utility>

#include "base/check.h"
#include "workload/dataset.h"

namespace tactus {

Ledger::Ledger(std::vector<Model> models, std::span<const PreparedInputs> inputs,
               std::size_t expected)
    : inputs_(inputs), models_(std::move(models)), recorder_(expected) {
  CHECK(models_.size() == inputs_.size(), "one set of inputs for each model");
}

std::uint64_t Ledger::Open(std::uint32_t model, std::uint32_t sample, TimePoint intended,
                           TimePoint deadline) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Entry& entry = entries_[index];
  entry.open = true;
  entry.sample = sample;
  entry.record = {.arrival = intended, .deadline = deadline, .started = kNever, .model = model};
  ++counts_.opened;
  return std::uint64_t{entry.generation} << 32 | index;
}

void Ledger::OnAnswer(const Answer& answer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::uint32_t>(answer.token);
  if (index >= entries_.size() || !entries_[index].open ||
      entries_[index].generation != answer.token >> 32) {
    ++counts_.unexpected;
    return;
  }
  Entry& entry = entries_[index];
  RequestRecord& record = entry.record;
  const TimePoint ended{std::chrono::duration_cast<Duration>(answer.received - zero_)};
  Outcome outcome = Outcome::kError;
  switch (answer.kind) {
    case Answered::kServed:
      outcome = ended <= record.deadline ? Outcome::kMet : Outcome::kLate;
      record.exit = ExitIndex(models_[record.model], answer.exit);
      record.batch = static_cast<std::uint16_t>(answer.batch);
      record.correct = Judge(entry, answer.first_output);
      break;
    case Answered::kShed:
      outcome = Outcome::kShed;
      break;
    case Answered::kExpired:
      outcome = Outcome::kExpired;
      break;
    case Answered::kCancelled:
      outcome = Outcome::kCancelled;
      break;
    case Answered::kError:
      if (first_error_.empty()) first_error_ = std::string(answer.error);
      break;
  }
  Close(entry, outcome, ended);
}

void Ledger::Close(Entry& entry, Outcome outcome, TimePoint ended) {
  entry.record.outcome = outcome;
  entry.record.ended = ended;
  recorder_.Add(entry.record);
  entry.open = false;
  ++entry.generation;
  free_.push_back(static_cast<std::uint32_t>(&entry - entries_.data()));
  ++counts_.closed;
  const bool served = outcome == Outcome::kMet || outcome == Outcome::kLate;
  if (served) ++counts_.served;
  if (outcome != Outcome::kMet && outcome != Outcome::kCancelled) ++counts_.bad;
  if (counts_.in_flight() == 0) idle_.notify_all();
}

bool Ledger::WaitIdle(SteadyTime until) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, until, [this] { return counts_.in_flight() == 0; });
}

void Ledger::CloseUnanswered(TimePoint now) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (!entry.open) continue;
    ++counts_.unanswered;
    if (first_error_.empty()) first_error_ = "no answer until the end of the run";
    Close(entry, Outcome::kError, now);
  }
}

LedgerCounts Ledger::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string Ledger::first_error() const {
  const std::lock_guard lock(mutex_);
  return first_error_;
}

std::uint16_t Ledger::ExitIndex(Model& model, std::string_view name) {
  // A server that names no exits still ran the whole of what is configured.
  if (name.empty() && !model.exits.empty()) {
    return static_cast<std::uint16_t>(model.exits.size() - 1);
  }
  if (name.empty()) name = "1";
  for (std::size_t i = 0; i < model.exits.size(); ++i) {
    if (model.exits[i].name == name) return static_cast<std::uint16_t>(i);
  }
  model.exits.push_back({std::string(name), 0});
  return static_cast<std::uint16_t>(model.exits.size() - 1);
}

std::int8_t Ledger::Judge(const Entry& entry, std::span<const std::byte> output) const {
  const auto& labels = inputs_[entry.record.model].labels;
  if (!labels || output.empty()) return -1;
  return ArgMax(output) == (*labels)[entry.sample] ? 1 : 0;
}

}  // namespace tactus
