// One direction of a link: a FIFO with a rate that follows a trace, and a latency behind it. What
// cannot be there in time is dropped when its turn comes, before it takes any of the link; what
// finds the queue full is dropped at once. As nobody overtakes in the queue, what becomes of a
// message is known as soon as it is given. Packets that are lost are sent again: they take so much
// more of the link, and the message is there a round trip later for each time that some of its own
// are.
#pragma once

#include <cstdint>
#include <deque>

#include "base/rng.h"
#include "sim/network/rate_trace.h"

namespace tactus {

struct LinkOptions {
  RateTrace rate{1000};
  Duration latency{};         // from the last bit's departure to its arrival: half the round trip
  double most_waiting = 4e6;  // bytes behind the message that is being sent
  double loss = 0;            // of its packets (FleetLink), from 0 to below 1
  Rng luck = Rng::Stream(0, "link");  // which of them
};

enum class SendOutcome : std::uint8_t {
  kDelivered,
  kDead,  // it would have come too late: when its turn came, or as the link stands still
  kFull,  // the queue held all that it may
};

// What becomes of a message, and when: its last bit's arrival, or the drop.
struct Sending {
  SendOutcome outcome = SendOutcome::kDelivered;
  TimePoint at;

  bool operator==(const Sending&) const = default;
};

struct LinkTotals {
  std::int64_t delivered = 0;
  std::int64_t dead = 0;
  std::int64_t full = 0;
  double bytes = 0;  // delivered
  Duration busy{};
};

class Link {
 public:
  explicit Link(LinkOptions options) : options_(std::move(options)) {}

  // `now` does not fall. `latest`: when it must be there to be of use, which the sender judges by
  // the rate of the instant at which its turn comes, as if none of its packets were lost.
  Sending Send(TimePoint now, double bytes, TimePoint latest);

  void AddOutage(TimePoint from, TimePoint to) { options_.rate.AddOutage(from, to); }
  const RateTrace& rate() const { return options_.rate; }
  const LinkTotals& totals() const { return totals_; }

 private:
  // How often some of the message's packets are sent again.
  double Rounds(double bytes);

  struct Waiting {
    TimePoint begins;  // to be sent
    double bytes = 0;
  };

  LinkOptions options_;
  TimePoint free_at_ = kStart;
  std::deque<Waiting> waiting_;
  double waiting_bytes_ = 0;
  LinkTotals totals_;
};

}  // namespace tactus
