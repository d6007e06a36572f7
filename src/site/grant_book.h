// What a front end's link to its scheduler and the front end's policy tell each other: notes go in
// from the link's thread and are taken in a turn of the dispatcher; offers go out of a turn through
// a port. It also knows which batch of the dispatcher is which granted one, for the engine that
// sends its rows. Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "site/messages.h"

namespace tactus {

// Where a front end's offers go. Called in a turn of its dispatcher: must be quick.
class OfferPort {
 public:
  virtual ~OfferPort() = default;
  virtual void Send(const Offer& offer) = 0;
  virtual void Send(const VoidRows& rows) = 0;
};

class GrantBook {
 public:
  struct Notes {
    Term lead = 0;  // not 0: this term leads from here on
    std::vector<Grant> grants;
    std::vector<Refusal> refusals;
  };
  // A batch of the front end's dispatcher, as the worker is to know it.
  struct Launched {
    BatchKey key;
    std::uint32_t worker = 0;
    ExitId exit{0};
    std::uint32_t rows = 0;
  };

  // The link's. Grants and refusals of a term that no longer leads are dropped.
  void Lead(Term term) {
    const std::lock_guard lock(mutex_);
    if (term < term_) return;
    term_ = term;
    notes_ = {};
    notes_.lead = term;
    waits_.store(true, std::memory_order_release);
  }
  void Take(Grant grant) {
    const std::lock_guard lock(mutex_);
    if (grant.key.term != term_) return;
    notes_.grants.push_back(std::move(grant));
    waits_.store(true, std::memory_order_release);
  }
  void Take(Term term, const Refusal& refusal) {
    const std::lock_guard lock(mutex_);
    if (term != term_) return;
    notes_.refusals.push_back(refusal);
    waits_.store(true, std::memory_order_release);
  }

  // The policy's.
  bool HasNotes() const { return waits_.load(std::memory_order_acquire); }
  Notes TakeNotes() {
    const std::lock_guard lock(mutex_);
    waits_.store(false, std::memory_order_relaxed);
    return std::exchange(notes_, {});
  }
  void SetLaunched(BatchId batch, const Launched& launched) {
    const std::lock_guard lock(mutex_);
    launched_[batch.value()] = launched;
  }

  // The engine's, once for each batch.
  std::optional<Launched> TakeLaunched(BatchId batch) {
    const std::lock_guard lock(mutex_);
    const auto it = launched_.find(batch.value());
    if (it == launched_.end()) return std::nullopt;
    const Launched launched = it->second;
    launched_.erase(it);
    return launched;
  }

 private:
  std::atomic<bool> waits_{false};
  std::mutex mutex_;
  Term term_ = 0;
  Notes notes_;
  std::unordered_map<std::uint64_t, Launched> launched_;
};

}  // namespace tactus
