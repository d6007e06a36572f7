#include "cluster/memory/candidacy.h"

#include <algorithm>
#include <utility>

namespace tactus {

Candidacy::Candidacy(std::unique_ptr<knowledge::Coordination> coordination, std::string name,
                     CandidacyOptions options, Log log)
    : coordination_(std::move(coordination)),
      name_(std::move(name)),
      options_(std::move(options)),
      log_(std::move(log)) {}

void Candidacy::Say(const std::string& what) {
  if (what != said_) log_(what);
  said_ = what;
}

void Candidacy::Step(TimePoint now) {
  if (now < next_) return;
  if (coordination_->term() == 0) {
    Try(now);
  } else {
    Renew(now);
  }
}

void Candidacy::Try(TimePoint now) {
  if (options_.above) above_ = std::max(above_, options_.above());
  const auto term = coordination_->Acquire(now, above_);
  next_ = now + (term ? options_.renew_every : options_.try_every);
  if (term) {
    Say(name_ + " is elected, term " + std::to_string(*term));
  } else {
    Say(name_ + " waits: " + term.error().message);
  }
}

void Candidacy::Renew(TimePoint now) {
  const Status renewed = coordination_->Renew(now);
  if (renewed) {
    next_ = now + options_.renew_every;
    return;
  }
  Say(renewed.error().message);
  const bool lost = coordination_->term() == 0 || renewed.error().code == ErrorCode::kCancelled;
  next_ = now + (lost ? options_.try_every : options_.renew_again);
  if (lost) coordination_->Resign();
}

void Candidacy::StandAgain(std::uint64_t above, TimePoint now) {
  above_ = std::max(above_, above);
  coordination_->Resign();
  next_ = now + options_.try_every;  // another may be quicker
}

}  // namespace tactus
