#include "device/block_scheduler.h"

#include <utility>

#include "base/check.h"

namespace tactus {

BlockScheduler::BlockScheduler(Options options)
    : options_(options),
      free_threads_(static_cast<std::size_t>(options.sms), options.threads_per_sm) {}

std::uint64_t BlockScheduler::Add(Grid grid, Duration now) {
  CHECK(grid.blocks >= 1 && grid.threads >= 1 && grid.threads <= options_.threads_per_sm,
        "a block fits on an SM");
  Advance(now);
  const std::uint64_t id = ++last_;
  waiting_.emplace(grid.priority, id);
  grids_.emplace(id, Running{std::move(grid)});
  Fill(now);
  return id;
}

void BlockScheduler::Advance(Duration now) {
  while (!waves_.empty() && waves_.begin()->first <= now) {
    const Duration at = waves_.begin()->first;
    // All that end at one instant, before anything begins there.
    while (!waves_.empty() && waves_.begin()->first == at) {
      const Wave wave = std::move(waves_.begin()->second);
      waves_.erase(waves_.begin());
      End(wave, at);
    }
    Fill(at);
  }
}

std::optional<Duration> BlockScheduler::Next() const {
  if (waves_.empty()) return std::nullopt;
  return waves_.begin()->first;
}

bool BlockScheduler::MayUse(const Grid& grid, int sm) const {
  return grid.groups.empty() || grid.groups.contains(sm / options_.group_sms);
}

void BlockScheduler::Fill(Duration now) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Running& running = grids_.at(at->second);
    Begin(at->second, running, now);
    at = running.begun == running.grid.blocks ? waiting_.erase(at) : std::next(at);
  }
}

// One block to each SM that has room, and round again.
void BlockScheduler::Begin(std::uint64_t id, Running& running, Duration now) {
  Wave wave{.grid = id, .begin = now, .sms = {}, .first = running.begun};
  for (bool placed = true; placed;) {
    placed = false;
    for (int sm = 0; sm < options_.sms && running.begun < running.grid.blocks; ++sm) {
      int& room = free_threads_[static_cast<std::size_t>(sm)];
      if (room < running.grid.threads || !MayUse(running.grid, sm)) continue;
      room -= running.grid.threads;
      wave.sms.push_back(sm);
      ++running.begun;
      placed = true;
    }
  }
  if (!wave.sms.empty()) waves_.emplace(now + running.grid.each, std::move(wave));
}

void BlockScheduler::End(const Wave& wave, Duration now) {
  const auto found = grids_.find(wave.grid);
  Running& running = found->second;
  int block = wave.first;
  for (const int sm : wave.sms) {
    free_threads_[static_cast<std::size_t>(sm)] += running.grid.threads;
    if (running.grid.on_end) running.grid.on_end({block, sm, wave.begin, now});
    ++block;
    ++running.ended;
  }
  if (running.ended == running.grid.blocks) grids_.erase(found);
}

}  // namespace tactus
