// When requests arrive: one stream of instants for each model, from named random streams, so that
// two policies see the same arrivals, and adding a model moves no other.
#pragma once

#include <memory>
#include <vector>

#include "base/expected.h"
#include "base/rng.h"
#include "base/serving_time.h"
#include "workload/scenario.h"

namespace tactus {

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // The next instant, never before the one returned last; kNever when the stream has ended.
  virtual TimePoint Next() = 0;
};

// An error where callers wait for their answers, which only the simulator drives.
Status CheckOpenLoop(const Scenario& scenario);

// One stream for each model of the scenario, by index, then one for each pipeline's requests
// (ArrivalRates), each ending at `end`.
// Where callers wait for their answers: the first call of each; the others are the driver's.
Expected<std::vector<std::unique_ptr<Arrivals>>> MakeArrivals(const Scenario& scenario,
                                                              TimePoint end);

}  // namespace tactus
