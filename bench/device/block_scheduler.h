// Which blocks of which kernels a device has on its SMs at a time, by the rules that NVIDIA states:
// a block stays where it is until it ends; where there is room, the kernel whose stream has the
// highest priority comes first, and of one priority the one that came first; streams of a part of
// the device put blocks on the SMs of that part alone. What it leaves out is that blocks slow each
// other: caches, memory and a block's place among others change nothing. Without a clock and
// without a device: it is what the fake device of `./run bench gpu --fake` and its tests go by.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// A block that ended.
struct EndedBlock {
  int block = 0;
  int sm = 0;
  Duration begin{};
  Duration end{};
};

struct Grid {
  int priority = 0;      // as the driver counts: less is more urgent
  std::set<int> groups;  // of SMs that it may use; empty: all
  int blocks = 1;
  int threads = 1024;  // of a block
  Duration each{};     // that a block takes
  std::function<void(const EndedBlock&)> on_end = nullptr;
};

class BlockScheduler {
 public:
  struct Options {
    int sms = 132;
    int group_sms = 8;          // SM s is of group s / group_sms
    int threads_per_sm = 1024;  // of all its blocks together
  };

  explicit BlockScheduler(Options options);

  // Time never goes back: `now` is at least that of each call before. The grid's number.
  std::uint64_t Add(Grid grid, Duration now);
  // Ends what ends until `now` and begins what then has room, in the order of time.
  void Advance(Duration now);
  bool Done(std::uint64_t grid) const { return !grids_.contains(grid); }
  // When the next block ends; none: nothing runs.
  std::optional<Duration> Next() const;

 private:
  struct Running {
    Grid grid;
    int begun = 0;
    int ended = 0;
  };
  // Blocks of one grid that began together, and so end together.
  struct Wave {
    std::uint64_t grid = 0;
    Duration begin{};
    std::vector<int> sms;  // of each block
    int first = 0;         // block
  };
  bool MayUse(const Grid& grid, int sm) const;
  void Fill(Duration now);
  void Begin(std::uint64_t id, Running& running, Duration now);
  void End(const Wave& wave, Duration now);

  const Options options_;
  std::vector<int> free_threads_;                    // by SM
  std::map<std::uint64_t, Running> grids_;           // by number
  std::set<std::pair<int, std::uint64_t>> waiting_;  // priority, number: blocks that have no room
  std::multimap<Duration, Wave> waves_;              // by their ends
  std::uint64_t last_ = 0;
};

}  // namespace tactus
