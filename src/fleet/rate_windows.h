// Requests a second of each model, out of counts that only rise: the most of the last 15, 30 and 60
// seconds, since planners size instances for the busiest of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "fleet/messages.h"

namespace tactus {

class RateWindows {
 public:
  // `counts` since the worker's start; a smaller one than before begins anew. `now` rises.
  void Add(TimePoint now, const std::map<std::string, std::uint64_t>& counts);
  // The rates of models that were ever asked for, once 15 seconds have been seen.
  std::vector<ModelRate> Rates() const;

 private:
  struct Sample {
    TimePoint at;
    std::map<std::string, std::uint64_t> counts;  // of this object: they never fall
  };
  std::deque<Sample> samples_;  // of the last minute
  std::map<std::string, std::uint64_t> last_;
};

}  // namespace tactus
