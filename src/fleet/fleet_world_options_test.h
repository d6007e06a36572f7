// For tests: what a whole cluster in virtual time (fleet_world_test.h) is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fleet/leader.h"

namespace tactus {

struct FleetWorldOptions {
  std::uint64_t seed = 1;
  int servers = 2;
  int edges = 3;
  bool faults = true;      // until `heal_at`
  bool transcript = true;  // and checks after each event
  TimePoint heal_at = kStart + Seconds(90);
  LeaderOptions leader;
  FleetLeader::Planning planning;                  // null: everything somewhere, at random
  std::function<void(const FromNode&)> on_report;  // each that is sent
  std::function<void(const ToNode&)> on_order;
  std::function<std::vector<ModelRate>(const std::string& node, TimePoint)> rates;  // null: none
  FleetHistory* history = nullptr;         // of all leaders
  std::function<Remembered()> remembered;  // by each that starts
};

}  // namespace tactus
