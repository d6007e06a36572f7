// Clockwork (Gujarati et al., OSDI 2020), as Symphony's Section 2.2 states it: a request gives a
// candidate for every batch size and lane; a free lane takes the candidate whose latest start comes
// first. Eager: a lane never waits while something could run.
//
// For one model a larger batch has the earlier latest start, so its first candidate is the largest
// batch that still meets its head's deadline; that is what Decide looks for. What the algorithm
// itself has to keep, (batch sizes x lanes) candidates a request, is what examined() counts.
//
// Best documented setting: every batch size (its own code profiles 1, 2, 4, 8 and 16: sizes=...),
// estimates at the 99th percentile (the scenario's percentile = 99). Left out: it sends work to a
// lane a few milliseconds ahead, which hides a network that the simulator does not charge.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/lost_heads.h"

namespace tactus {

struct ClockworkOptions {
  std::vector<int> sizes;  // rising; empty: every batch size
  double margin = 1;       // estimates are this many times the profiled latency
};

class Clockwork final : public Policy {
 public:
  Clockwork(std::string name, ClockworkOptions options);

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request&) override { CountExamined(candidates_[m.value()]); }

 private:
  // The largest allowed batch size up to `limit` that takes no longer than `slack`; 0 when none.
  int Largest(const View& view, ModelId m, LaneClass c, int limit, Duration slack) const;

  const ClockworkOptions options_;
  LostHeads lost_;
  std::vector<std::uint64_t> candidates_;  // by ModelId: those that an arrival makes
};

}  // namespace tactus
