// A device of the simulated world that runs several batches at once: inputs go up one after another
// through one link, then the kernels run together and slow each other (sim/devices/contention.h).
// What is left of each is timed anew whenever a neighbour comes or goes; each ends exactly once.
//
//   device.Begin(slot, now, now, work);
//   ... at device.next(): while ((slot = device.Advance(now)) != SharedDevice::kNone) Ended(slot);
#pragma once

#include <vector>

#include "base/serving_time.h"
#include "sim/devices/contention.h"

namespace tactus {

struct SharedWork {
  Duration transfer{};  // on the link, alone
  Duration kernel{};    // on the device, alone; > 0
  Contender contender;
  int priority = 1;
};

struct SharedDeviceOptions {
  Contention contention;
  // Fixed-priority preemption at the granularity of kernels: only the highest level that is there
  // runs, the others stand still and go on where they were. It costs whoever stops others
  // `preemption`, the time that the kernels under way take to end.
  bool suspends = false;
  Duration preemption{};
};

class SharedDevice {
 public:
  static constexpr int kNone = -1;

  SharedDevice(const SharedDeviceOptions& options, int slots)
      : options_(options), places_(slots), contenders_(slots), slowdown_(slots) {}

  // `slot` is free; the upload begins at `at` (not before `now`) or when the link is free.
  void Begin(int slot, TimePoint now, TimePoint at, const SharedWork& work);
  // The batch is stopped and reports no end. An upload under way keeps the link.
  void Stop(int slot, TimePoint now);

  // The next instant at which something happens; kNever when nothing runs.
  TimePoint next() const;
  // Takes the world to `now`, which must not lie after next(). Returns a slot whose batch ended, or
  // kNone; call again until it is kNone.
  int Advance(TimePoint now);

  // When the input of the batch that is or was last in the slot was on the device.
  TimePoint uploaded(int slot) const { return places_[slot].uploaded; }

 private:
  enum class State { kFree, kUploading, kRunning };
  struct Place {
    State state = State::kFree;
    SharedWork work;
    TimePoint uploaded;
    double left_ns = 0;  // of its kernels, had it the device alone, at `settled_`
    double slowdown = 1;
    TimePoint end = kNever;  // if nobody comes or goes
  };

  static Duration Rest(const Place& place);
  void Settle(TimePoint now);
  void Retime(TimePoint now);
  void Join(Place& place);
  int HighestRunning() const;

  SharedDeviceOptions options_;
  std::vector<Place> places_;
  std::vector<Contender> contenders_;  // scratch of Retime, taken once
  std::vector<double> slowdown_;
  TimePoint link_free_ = kStart;
  TimePoint settled_ = kStart;
};

}  // namespace tactus
