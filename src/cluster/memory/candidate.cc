#include "cluster/memory/candidate.h"

#include <algorithm>
#include <utility>

namespace tactus {

Candidate::Candidate(std::unique_ptr<Candidacy> candidacy)
    : candidacy_(std::move(candidacy)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Candidate::~Candidate() = default;

std::uint64_t Candidate::term() const {
  const std::scoped_lock lock(mutex_);
  return clock_.Now() < until_ ? term_ : 0;
}

std::string Candidate::leader() const {
  const std::scoped_lock lock(mutex_);
  return leader_;
}

void Candidate::StandAgain(std::uint64_t above) {
  const std::scoped_lock lock(mutex_);
  again_above_ = std::max(again_above_, above);
  again_ = true;
  term_ = 0;
  changed_.notify_all();
}

void Candidate::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const bool again = std::exchange(again_, false);
    const std::uint64_t above = again_above_;
    lock.unlock();
    if (again) candidacy_->StandAgain(above, clock_.Now());
    candidacy_->Step(clock_.Now());
    lock.lock();
    if (!again_) {
      term_ = candidacy_->term();
      until_ = candidacy_->until();
    }
    leader_ = candidacy_->leader();
    changed_.wait_until(lock, stop, clock_.RealAt(candidacy_->Next()), [&] { return again_; });
  }
}

}  // namespace tactus
