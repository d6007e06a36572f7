// What both versions of Symphony are told.
#pragma once

#include "policies/symphony/candidate.h"

namespace tactus {

struct SymphonyOptions {
  CandidateOptions candidate;
  // k of `when=timeout` as a share of each model's SLO (Figure 6b); above 0 it overrides
  // candidate.timeout.
  double timeout_share = 0;
  NetworkDelays delays;
  Duration rate_window = Seconds(1);  // of the arrivals from which b* is derived

  CandidateOptions For(Duration slo) const {
    CandidateOptions own = candidate;
    if (timeout_share > 0) own.timeout = FromSeconds(timeout_share * ToSeconds(slo));
    return own;
  }
};

}  // namespace tactus
