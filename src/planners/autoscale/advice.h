// How many lanes the load needs, from what they did lately (Symphony, Section 3.5). The rule is
// only as good as the scheduler: it takes the violation ratio to be the part of the load that did
// not fit, and the idle ratio the part of the lanes that nobody needed, which holds under a
// scheduler with a flat top that uses lanes in proportion to the load. Eager ones keep every lane
// busy with small batches.
#pragma once

#include <cstdint>

#include "base/expected.h"

namespace tactus {

struct AutoscaleOptions {
  // Lanes are added when more than this fraction of the requests are violations. Symphony's own
  // limit.
  double bad_threshold = 0.01;
  // Lanes are given back when they were idle for more than this part of the time, and no lanes are
  // being added. The gap down to `idle_kept` is the hysteresis: after giving back, the lanes that
  // stay are idle for `idle_kept`, so a load must fall further before more of them go.
  double idle_threshold = 0.2;
  // What giving back leaves idle, as room for the next rise; in [0, idle_threshold]. 0 is the
  // paper's rule, which leaves none.
  double idle_kept = 0.1;
  // At most this many times the present lanes at once: a violation ratio near 1 says only that
  // there are far too few.
  double most_growth = 2;
  int least = 1;
  int most = 4096;
};

// kInvalidArgument, with the option's name, for options that contradict each other.
Status Validate(const AutoscaleOptions& options);

// What N lanes did over a window.
struct LoadReading {
  int lanes = 0;
  std::int64_t requests = 0;  // that ended, cancelled ones apart
  double bad_ratio = 0;       // of them; 0 for none
  double idle_ratio = 1;      // of the lanes' time
  // Lanes that ran nothing in all that time. Each was free for every violation.
  int untouched = 0;
};

// The lanes to have in all, in [least, most]. Same reading, same answer:
//   violation ratio r above its threshold:   N + N r / (1 - r) = N / (1 - r), rounded up
//   idle ratio f above its threshold:  N (1 - f) / (1 - idle_kept), rounded up
//   else N.
// Not the paper's: where some lanes are untouched, what was violated did not lack a lane, but a
// processor in time, say. Then none is added, and given back are untouched ones at the most.
int AdviseLanes(const LoadReading& reading, const AutoscaleOptions& options);

}  // namespace tactus
