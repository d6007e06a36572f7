// Who leads among the schedulers of a site, as one of them sees it: one leads, the others watch its
// beats and take over when they stop. There is no vote. Two may lead for a moment; a term tells
// them apart, everybody obeys the highest that he has seen, and the other ends his own when he
// hears of it. So a false suspicion costs work done twice, never an answer given twice.
//
// A term belongs to one scheduler: term % schedulers is its rank. Pure: no clock, no thread.
#pragma once

#include <cstdint>

#include "base/serving_time.h"
#include "site/messages.h"

namespace tactus {

class Takeover {
 public:
  struct Options {
    std::uint32_t rank = 0;        // of this one, in the list that all are started with
    std::uint32_t schedulers = 1;  // in that list
    // Without a beat for so long the leader is suspected. The one behind it takes over then, the
    // next one after as long again.
    Duration suspect = Millis(30);
    // At the start, for a leader to be heard of; again as long for each rank.
    Duration first = Millis(300);
  };

  Takeover(const Options& options, TimePoint now);

  // A scheduler leads with this term.
  void OnBeat(Term term, TimePoint now);
  // The connection to the one that leads with this term closed: it is gone at once.
  void OnLeaderGone(Term term, TimePoint now);
  // Somebody knows of this term, whether or not its leader lives.
  void OnTerm(Term term, TimePoint now);

  // Takes over where that is due. Returns when to ask again.
  TimePoint Step(TimePoint now);

  bool leads() const { return leads_; }
  // Its own where it leads; else the leader's that it heard of last. 0: none.
  Term term() const { return leader_; }

 private:
  // Between the one that led and this one, in the order of ranks.
  std::uint32_t Behind(Term leader) const;
  Term NextTerm() const;

  const Options options_;
  bool leads_ = false;
  Term highest_ = 0;
  Term leader_ = 0;
  TimePoint due_;  // when to take over
};

}  // namespace tactus
