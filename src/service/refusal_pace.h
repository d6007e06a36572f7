// When a client hears that its call was refused. One that asks again as soon as it is refused could
// keep the server busy with nothing but refusals: reading the call, and saying no, takes time from
// the calls that are answered. So the refusals of such clients go out one after the other, at a
// pace that costs a twentieth of a core; a client waits for its own at most until the moment at
// which the one before invited it to come back (Retry-After: a second later). A client that was not
// refused during the last second hears at once.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/serving_time.h"

namespace tactus {

// Pure: the instant is a parameter.
class RefusalPace {
 public:
  // When `client`, which waits no longer than `patience`, hears of the refusal of a call of `bytes`
  // that is decided `now`: now or later, and well before its patience ends.
  TimePoint When(const std::string& client, std::size_t bytes, Duration patience, TimePoint now);

  static constexpr Duration kInvited = Seconds(1);   // as Retry-After says
  static constexpr Duration kCall = Micros(25);      // a refused call takes this ...
  static constexpr double kNsPerByte = 1.2;          // ... and this for each of its bytes
  static constexpr int kShare = 20;                  // of a core's time: one part in so many
  static constexpr std::size_t kMostClients = 4096;  // remembered; beyond, all are forgotten

 private:
  TimePoint next_;  // of clients that come back too soon
  std::unordered_map<std::string, TimePoint> told_;
};

}  // namespace tactus
