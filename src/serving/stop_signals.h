// The signals that a server is told by.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <signal.h>

namespace tactus {

// Signals that ask the server to stop, and SIGHUP, blocked in every thread that is started after
// this, so that one thread can wait for them.
class StopSignals {
 public:
  StopSignals();

  // While models load there is nothing to finish: a signal ends the process at once, until the
  // returned thread is stopped.
  std::jthread EndAtOnce() const;
  // What a second signal that asks to stop does.
  enum class Second { kEndsAtOnce, kIsIgnored };

  // Until one that asks to stop comes; its name. Calls `on_hangup` for each SIGHUP before.
  const char* Wait(const std::function<void()>& on_hangup, Second second = Second::kEndsAtOnce);
  // The stop has so long, and a little for what cannot be cut short. What is not over by then, in a
  // library or on a disk, is not waited for: the process ends with an error. Where the stop begins.
  static void EndWithin(std::chrono::milliseconds grace);
  // Whether one that asks to stop came within that time.
  bool CameWithin(std::chrono::milliseconds time);

 private:
  sigset_t set_;
};

}  // namespace tactus
