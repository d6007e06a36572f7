// What a service says of its lanes at one instant, for those who show it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/serving_time.h"
#include "core/plan.h"

namespace tactus {

struct LaneLoad {
  Duration busy{};  // time spent running batches since the start, the one under way included
  std::int64_t batches = 0;
  std::int64_t stuck_runs = 0;  // that took far longer than their profile, ever
  bool stuck = false;           // such runs hold all of it now
  std::int64_t deaths = 0;      // of its engine's process or device, ever
  bool held = false;            // that, or its engine is silent, or dead for a while
};

// How a device is split.
struct DeviceLayout {
  // Lanes by LaneId, with their share and who is there; without entries: closed. Null before the
  // first.
  std::shared_ptr<const Plan> plan;
  std::vector<std::string> models;  // by the plan's ModelId
  std::int64_t changes = 0;         // plans that were adopted
  std::int64_t given_up = 0;        // plans that failed for want of a lane
  // Lanes that finish their batches before they close or lose a model, and for how long the first
  // of them has been draining.
  int draining = 0;
  Duration drain{};
};

// How the frames of a video stream ended.
struct StreamFrames {
  struct Ended {
    std::string_view stage;   // decode, pace, queue, encode, server or answer
    std::string_view reason;  // "served" is the good one
    std::uint64_t count = 0;
  };
  std::string stream;
  std::uint64_t read = 0;  // that the source brought
  std::vector<Ended> ended;
  std::uint64_t reconnects = 0;
  bool running = false;  // frames come now
  // Answers by what became of them at its webhook; empty: it has none.
  std::vector<std::pair<std::string_view, std::uint64_t>> webhook;
};

// What a planning server has done, and counts on. Times are of the real clock.
struct PlanningReading {
  std::int64_t questions = 0;   // to the planner
  std::int64_t infeasible = 0;  // of them, where no plan sustains all of the load
  Duration asked{};             // time that the questions took, in all
  Duration changed{};           // time that changes took, from the decision to the old lanes' end
  std::string shortage;         // now: which model lacks how much; empty: nothing
  std::map<std::string, double> rates_rps;  // by model, averaged
};

}  // namespace tactus
