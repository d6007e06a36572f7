// For tests of the simulator: one model, and the plainest policy there is.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/policy.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// Serves the request that waits longest, in batches of at most `batch`, at the final exit.
class FifoPolicy final : public Policy {
 public:
  explicit FifoPolicy(int batch = 1) : Policy({.name = "fifo-for-test"}), batch_(batch) {}
  Decision Decide(const View& view, TimePoint) override {
    const RequestQueue* oldest = nullptr;
    for (const RequestQueue& queue : view.queues) {
      if (queue.empty()) continue;
      if (oldest == nullptr || queue.front().arrival < oldest->front().arrival) oldest = &queue;
    }
    if (oldest == nullptr) return Wait{};
    for (const Lane& lane : view.lanes) {
      if (!lane.HasFreeSlot()) continue;
      const ModelId model{static_cast<ModelId::rep>(oldest - view.queues.data())};
      const int limit = std::min(batch_, view.profile.max_batch(model));
      const auto deepest = static_cast<ExitId::rep>(view.profile.exits(model) - 1);
      return Dispatch{model, ExitId{deepest}, oldest->Batchable(limit), lane.id};
    }
    return Wait{};
  }

 private:
  const int batch_;
};

inline ProfileCell Constant(Duration latency) {
  const double ms = ToMillis(latency);
  return {.mean_ms = ms, .min_ms = ms, .p50_ms = ms, .p95_ms = ms, .p99_ms = ms, .max_ms = ms};
}

// One exit; every batch takes `base` and `each` for each of its requests.
inline ProfiledModel AffineModelOf(const std::string& name, Duration base, Duration each,
                                   int max_batch) {
  ProfiledModel model;
  model.name = name;
  model.max_batch = max_batch;
  ProfiledExit& exit = model.exits.emplace_back();
  exit.name = "final";
  exit.accuracy = 0.5;
  for (int b = 1; b <= max_batch; ++b) exit.cells.push_back(Constant(base + b * each));
  return model;
}

inline Scenario ScenarioOf(const ProfileFile& profile, double rate_rps, double seconds) {
  Scenario scenario;
  scenario.name = "test";
  scenario.policy = "fifo-for-test";
  scenario.duration_s = seconds;
  scenario.rate_rps = rate_rps;
  scenario.queue_capacity = 1 << 16;
  for (const ProfiledModel& model : profile.models) {
    scenario.models.push_back({.name = model.name, .profile_as = model.name});
  }
  return scenario;
}

}  // namespace tactus
