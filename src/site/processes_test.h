// Virtual time for processes that speak to each other: each with a clock of its own, over
// connections that delay and break.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/serving_time.h"

namespace tactus::site_test {

// Events in the order of their instants; those of one instant in the order in which they were made.
class WorldClock {
 public:
  void At(TimePoint at, std::function<void()> run) {
    events_.push({std::max(at, now_), made_++, std::move(run)});
  }
  TimePoint now() const { return now_; }
  void RunUntil(TimePoint end) {
    while (!events_.empty() && events_.top().at <= end) {
      Event next = events_.top();
      events_.pop();
      now_ = next.at;
      next.run();
    }
    now_ = end;
  }

 private:
  struct Event {
    TimePoint at;
    std::uint64_t made;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : made > other.made;
    }
  };
  std::priority_queue<Event> events_;
  TimePoint now_ = kStart;
  std::uint64_t made_ = 0;
};

class World;

// What became of the requests of all front ends.
struct Counts {
  std::uint64_t accepted = 0, ended = 0, doubled = 0;
  std::uint64_t met = 0, late = 0, refused = 0, cancelled = 0;
};

// One process: it may stall, and it may die and begin again, as another `life`.
struct Process {
  explicit Process(World& of) : world(of) {}
  World& world;
  Duration ahead{};  // its clock, of the world's
  std::uint32_t life = 1;
  bool alive = true;
  TimePoint stalled_until = kStart;
  TimePoint wake = kNever;  // when Step is due

  TimePoint Now() const;
  void WakeAt(TimePoint local, const std::function<void()>& step);
};

struct Connection {
  bool open = true;
  std::array<TimePoint, 2> last{};  // by direction: when what was sent last arrives
};

// Processes and what passes between them: messages that delay, connections that break.
class World {
 public:
  explicit World(std::uint64_t seed, Duration delay)
      : random_(Rng::Stream(seed, "site")), delay_(delay) {}

  WorldClock& clock() { return clock_; }
  Rng& random() { return random_; }

  bool keep_transcript = false;
  std::string transcript;

  void Note(const std::string& line) {
    if (keep_transcript)
      transcript += std::to_string(clock_.now().time_since_epoch().count()) + " " + line + "\n";
  }
  void After(Process& process, Duration wait, std::function<void()> run) {
    clock_.At(clock_.now() + wait, [this, &process, life = process.life, run = std::move(run)] {
      Run(process, life, run);
    });
  }
  // Runs it in the process as it was, later if it stalls.
  void Run(Process& process, std::uint32_t life, const std::function<void()>& run) {
    if (!process.alive || process.life != life) return;
    if (process.stalled_until > clock_.now()) {
      return clock_.At(process.stalled_until, [=, this, &process] { Run(process, life, run); });
    }
    run();
  }
  void Deliver(const std::shared_ptr<Connection>& connection, int way, Process& to,
               std::function<void()> run) {
    TimePoint& last = connection->last[static_cast<std::size_t>(way)];
    last = std::max(last + Nanos(1), clock_.now() + Delay());
    clock_.At(last, [this, connection, &to, life = to.life, run = std::move(run)] {
      Run(to, life, [connection, run] {
        if (connection->open) run();
      });
    });
  }
  void Die(Process& process) {
    process.alive = false;
    ++process.life;
    process.wake = kNever;
  }
  void Break(Connection& connection, std::function<void()> tell) {
    connection.open = false;
    clock_.At(clock_.now() + Delay(), std::move(tell));
  }
  Duration Delay() {
    return delay_ + Nanos(static_cast<std::int64_t>(random_.Below(2 * delay_.count() + 1)));
  }

 protected:
  friend struct Process;
  Rng random_;
  WorldClock clock_;

 private:
  const Duration delay_;
};

inline TimePoint Process::Now() const { return world.clock().now() + ahead; }

inline void Process::WakeAt(TimePoint local, const std::function<void()>& step) {
  if (local == kNever) return;
  const TimePoint at = std::max(local - ahead, world.clock().now());
  if (at >= wake && wake > world.clock().now()) return;
  wake = at;
  world.After(*this, at - world.clock().now(), [this, at, step] {
    if (wake != at) return;
    wake = kNever;
    step();
  });
}

}  // namespace tactus::site_test
