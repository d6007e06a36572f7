// A Candidacy on a thread of its own, in real time: its service may be slow, and nobody waits.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "cluster/memory/candidacy.h"
#include "platform/repeated_task.h"
#include "platform/wall_clock.h"

namespace tactus {

// Its end waits for the attempt that is under way, and resigns.
class Candidate {
 public:
  explicit Candidate(std::unique_ptr<Candidacy> candidacy);

  // The term in which it leads now; 0: it does not lead. From any thread; 0 from the instant at
  // which its lease ends, whatever the service does.
  std::uint64_t term() const;
  // Who leads, as far as it heard; empty: nobody knows.
  std::string leader() const;
  // Gives up what it leads, and stands for a term above this one.
  void StandAgain(std::uint64_t above);

 private:
  Duration Step();

  const WallClock clock_;
  const std::unique_ptr<Candidacy> candidacy_;  // the thread's
  mutable std::mutex mutex_;
  std::uint64_t term_ = 0;  // under the mutex, as what follows
  TimePoint until_ = kStart;
  std::string leader_;
  std::uint64_t again_above_ = 0;
  bool again_ = false;
  RepeatedTask thread_;  // last: it uses the others
};

}  // namespace tactus
