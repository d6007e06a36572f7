// What a simulated server spends on calls beside running them (a scenario's [front]): the work of
// its I/O threads, which read calls and write answers, one piece after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/serving_time.h"
#include "pipeline/body_gate.h"
#include "service/loop_delay.h"
#include "service/refusal_pace.h"
#include "workload/scenario.h"

namespace tactus {

class Front {
 public:
  struct Read {
    TimePoint begun;                       // the call's header is there: its time begins
    TimePoint done;                        // its body is
    std::optional<BodyGate::Place> place;  // of a large body, that is read
    bool unread = false;                   // it is not: the call is refused by its header
  };

  explicit Front(const Scenario& scenario);

  // False: calls and answers take no time, and nothing here is to be asked.
  bool costs() const { return costs_; }
  // A call comes to this source: a model or, behind the models, a pipeline.
  Read Take(std::uint32_t source, Duration slo, TimePoint now);
  // What became of a call that was read.
  void Leave(std::uint32_t source, const BodyGate::Place& place, bool answered, TimePoint at) {
    using End = AdmissionWindow::End;
    const bool met = answered && at + BothWays() <= place.due;
    gates_[source].Leave(place, met ? End::kInTime : End::kInVain, at);
  }
  // When its client has an answer that is there `now`.
  TimePoint Answer(TimePoint now);
  // When it hears of a refusal; all clients have one address. `read`: the call's body was; `slo`:
  // of the call.
  TimePoint Refuse(std::uint32_t source, bool read, Duration slo, TimePoint now);
  // As the server leaves it before a deadline.
  Duration BothWays() const { return delay_.BothWays(); }
  // How long a batch takes that needs `alone`, where lanes and I/O threads share a core.
  Duration Stretched(Duration alone, TimePoint now) const;

 private:
  // Begun and done.
  Read Work(Duration cost, TimePoint now);
  double Load(TimePoint now) const;

  const bool costs_;
  const bool shared_core_;
  const bool reads_all_;
  const Duration half_;  // of a call, beside its body
  const double ns_per_byte_;
  const std::size_t unread_bytes_;
  std::vector<std::size_t> bytes_;  // of a call, by source
  std::vector<BodyGate> gates_;     // by source
  std::vector<TimePoint> free_;     // by thread: when it has done what it was given
  LoopDelay delay_;
  RefusalPace pace_;
  double load_ = 0;  // of a core, lately ...
  TimePoint at_;     // ... as of then
};

}  // namespace tactus
