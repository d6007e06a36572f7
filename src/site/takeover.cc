#include "site/takeover.h"

#include <algorithm>

#include "base/check.h"

namespace tactus {

Takeover::Takeover(const Options& options, TimePoint now)
    : options_(options), due_(now + (options.rank + 1) * options.first) {
  CHECK(options.rank < options.schedulers, "a scheduler is one of the list");
}

std::uint32_t Takeover::Behind(Term leader) const {
  const auto n = options_.schedulers;
  const auto rank = static_cast<std::uint32_t>(leader % n);
  return (options_.rank + n - rank - 1) % n;
}

Term Takeover::NextTerm() const {
  const Term n = options_.schedulers;
  const Term next = highest_ - highest_ % n + options_.rank;
  return next > highest_ ? next : next + n;
}

void Takeover::OnBeat(Term term, TimePoint now) {
  OnTerm(term, now);
  if (term < highest_ || leads_) return;
  leader_ = term;
  due_ = now + (Behind(term) + 1) * options_.suspect;
}

void Takeover::OnLeaderGone(Term term, TimePoint now) {
  if (leads_ || term != leader_) return;
  due_ = std::min(due_, now + Behind(term) * options_.suspect);
}

void Takeover::OnTerm(Term term, TimePoint now) {
  if (term <= highest_) return;
  highest_ = term;
  if (!leads_) return;
  leads_ = false;
  leader_ = term;
  due_ = now + (Behind(term) + 1) * options_.suspect;
}

TimePoint Takeover::Step(TimePoint now) {
  if (leads_) return kNever;
  if (now < due_) return due_;
  leader_ = highest_ = NextTerm();
  leads_ = true;
  return kNever;
}

}  // namespace tactus
