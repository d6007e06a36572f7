// What both versions of Symphony are told.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/policy_traits.h"
#include "policies/candidate.h"

namespace tactus {

struct SymphonyOptions {
  CandidateOptions candidate;
  // k of `when=timeout` as a share of each model's SLO (Figure 6b); above 0 it overrides
  // candidate.timeout.
  double timeout_share = 0;
  double lead_share = 0;       // candidate.lead as a share of each model's SLO, likewise
  bool adaptive_lead = false;  // candidate.lead as the load has it (adaptive_lead.h)
  NetworkDelays delays;
  Duration rate_window = Seconds(1);  // of the arrivals from which b* is derived
  // The share of b* that window gathering holds on to. 1 is as published. Under 1 is ours: near the
  // peak b* leaves no head any room for chance, and heads are given up for a batch larger than the
  // load needs.
  double aim = 1;

  int Target(const BatchCosts& costs, Duration slo, double rate, int lanes) const {
    return std::max(1, static_cast<int>(std::lround(aim * TargetBatch(costs, slo, rate, lanes))));
  }
  // BatchCosts of a batch of one.
  LeastService Least() const { return {.delay = delays.control + delays.per_request}; }
  CandidateOptions For(Duration slo) const {
    CandidateOptions own = candidate;
    if (timeout_share > 0) own.timeout = FromSeconds(timeout_share * ToSeconds(slo));
    if (lead_share > 0) own.lead = FromSeconds(lead_share * ToSeconds(slo));
    return own;
  }
};

}  // namespace tactus
