#include "cluster/memory/candidate.h"

#include <algorithm>
#include <utility>

namespace tactus {

Candidate::Candidate(std::unique_ptr<Candidacy> candidacy)
    : candidacy_(std::move(candidacy)), thread_("candidate", [this] { return Step(); }) {}

std::uint64_t Candidate::term() const {
  const std::scoped_lock lock(mutex_);
  return clock_.Now() < until_ ? term_ : 0;
}

std::string Candidate::leader() const {
  const std::scoped_lock lock(mutex_);
  return leader_;
}

void Candidate::StandAgain(std::uint64_t above) {
  {
    const std::scoped_lock lock(mutex_);
    again_above_ = std::max(again_above_, above);
    again_ = true;
    term_ = 0;
  }
  thread_.Wake();
}

// Until when the next is due.
Duration Candidate::Step() {
  std::unique_lock lock(mutex_);
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
  return candidacy_->Next() - clock_.Now();
}

}  // namespace tactus
