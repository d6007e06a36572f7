// "What if", as the live page asks it: the last minute of a server, simulated again under another
// setting. Nothing of it reaches the server's lanes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "experiment/observed.h"
#include "platform/task_queue.h"
#include "server/live/live_minute.h"

namespace tactus {

// The minute as a run of `setting`, of the models of `served`; what others ran (the host's
// operators) is left out, and so are calls that their clients took back. Of pipelines the steps are
// requests of their own. Requests have their
// model's priority: what a call said of its own is not noted.
Observed ObservedOf(const LiveMinute::Kept& kept, const JournalHeader& setting,
                    const std::shared_ptr<const ServedModels>& served);

class WhatIf {
 public:
  static constexpr Duration kLeast = LiveMinute::kLeast;
  static constexpr Duration kProcessor = Seconds(2);  // for an answer
  static constexpr double kBusy = 0.9;                // of the machine: no processor is left for it

  struct Parts {
    JournalHeader setting;
    std::function<std::shared_ptr<const ServedModels>()> served;
    std::function<LiveMinute::Kept()> minute;
    // The part of the machine's processors that is used.
    std::function<double()> busy;
  };
  using Reply = std::function<void(Expected<std::string>)>;

  explicit WhatIf(Parts parts);

  // `question`: {"set": ["policy=fifo", "lanes=3"]}, as --set of `tactus simulate` has them. The
  // reply has JSON (docs/reference/page.md), on a thread of the lowest priority, or on this one:
  // kResourceExhausted while another is answered, where the machine is busy, and where it takes
  // more than kProcessor; kUnavailable without kLeast of a minute, and at a stop.
  // From any thread.
  void Ask(std::string question, Reply reply);
  // Gives up what runs. Idempotent.
  void Stop();

 private:
  Expected<std::string> Answer(std::string_view question) const;

  const Parts parts_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> asked_{false};
  TaskQueue thread_{"what if"};  // last: it uses the others
};

// The part of this machine's processors that is used, over a fifth of a second; 0 where the system
// does not say.
double BusyPart();

}  // namespace tactus
