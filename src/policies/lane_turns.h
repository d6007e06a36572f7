// The models that a plan has a lane run, in turn: what policies that follow a plan do with a lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/decision.h"
#include "core/feasible.h"
#include "core/view.h"
#include "policies/model_routes.h"

namespace tactus {

struct LaneTurns {
  struct Turn {
    ModelId model;
    int batch = 1;            // as planned
    std::uint32_t route = 0;  // the lane's place in the model's routes
    Duration offset{};        // its window in the lane's cycle, where somebody minds
    Duration length{};
  };
  static constexpr Duration kAnyRoom = Duration::max();
  std::vector<Turn> turns;
  std::size_t next = 0;

  // The next in turn that has something to do, and what; after heads that are given up it is still
  // that model's turn. `mine(turn)` says how many of its model's requests the lane may take. With
  // `grow` a batch may exceed the planned size where the head's deadline allows it. No batch takes
  // longer than `room(turn)`. `heads(queue, planned, mine, fits)`: how many to give up first.
  struct Taken {
    Turn turn;
    Decision decision;  // a Dispatch or a Drop
  };
  std::optional<Taken> Take(const View& view, const Lane& lane, bool grow, TimePoint now, auto mine,
                            auto room, auto heads) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const std::size_t at = (next + i) % turns.size();
      const Duration longest = room(turns[at]);
      if (longest <= Duration{}) continue;
      const auto decision = Run(view, lane, turns[at], mine(turns[at]), grow, longest, now, heads);
      if (!decision) continue;
      next = std::holds_alternative<Dispatch>(*decision) ? (at + 1) % turns.size() : at;
      return Taken{turns[at], *decision};
    }
    return std::nullopt;
  }

 private:
  static std::optional<Decision> Run(const View& view, const Lane& lane, const Turn& turn, int mine,
                                     bool grow, Duration longest, TimePoint now, auto heads) {
    const ModelId m = turn.model;
    const RequestQueue& queue = view.queues[m.value()];
    mine = std::min(mine, static_cast<int>(queue.size()));
    if (mine == 0) return std::nullopt;
    const ExitId exit = FinalExit(view.profile, m);
    const auto fits = [&](int head, int batch) {
      return now + view.profile.Latency(m, exit, batch, lane.lane_class) <= queue[head].deadline;
    };
    if (const int head = heads(queue, turn.batch, mine, fits); head > 0) {
      return Drop{.model = m, .count = head, .reason = DropReason::kShed};
    }
    const int most = grow ? LargestBatch(view, m) : turn.batch;
    int batch = queue.Batchable(std::min(mine, most));
    const auto has_room = [&](int size) {
      return view.profile.Latency(m, exit, size, lane.lane_class) <= longest;
    };
    while (batch > 0 && !(fits(0, batch) && has_room(batch))) --batch;
    if (batch == 0) return std::nullopt;  // a quicker lane, or the next window, may still meet it
    return Dispatch{.model = m, .exit = exit, .batch = batch, .lane = lane.id};
  }
};

}  // namespace tactus
