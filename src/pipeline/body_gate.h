// Which calls' bodies a server reads, of one model. A body that is read and whose call is refused
// or late afterwards has cost its time for nothing, and a storm of such calls would leave no time
// to read those that are answered. So no more are inside than twice what is answered in the time
// that a call has; who comes beyond hears so before its body is read. A call that was lost counts
// as inside until its deadline: however quickly it is refused, no more bodies are read for it.
// Nothing is refused before the first loss, and kLeast are always let in.
//
// Pure: instants are parameters. From one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <queue>
#include <vector>

#include "base/serving_time.h"
#include "pipeline/admission_window.h"

namespace tactus {

class BodyGate {
 public:
  // As many as a usual batch, so that what was lost once cannot keep batches small.
  static constexpr double kLeast = 16;
  // A smaller body costs about as much as its refusal: it is read without asking.
  static constexpr std::size_t kLeastBytes = std::size_t{32} << 10;

  struct Place {
    AdmissionWindow::Place window;
    TimePoint due;  // the call's deadline
  };

  // A place for a call that is due then; nothing: its body is not to be read.
  std::optional<Place> Enter(TimePoint due, TimePoint now) {
    LetGo(now);
    if (window_.IsFull()) return std::nullopt;
    return Place{window_.Enter(), due};
  }

  // The end of each place, once.
  void Leave(const Place& place, AdmissionWindow::End end, TimePoint now) {
    LetGo(now);
    if (end == AdmissionWindow::End::kInVain && place.due > now) return lost_.push(place);
    window_.Leave(place.window, end, 1);
  }

 private:
  struct Later {
    bool operator()(const Place& a, const Place& b) const { return a.due > b.due; }
  };

  void LetGo(TimePoint now) {
    while (!lost_.empty() && lost_.top().due <= now) {
      window_.Leave(lost_.top().window, AdmissionWindow::End::kInVain, 1);
      lost_.pop();
    }
  }

  AdmissionWindow window_{{.least = kLeast, .closes = 0}};
  std::priority_queue<Place, std::vector<Place>, Later> lost_;
};

}  // namespace tactus
