// The world of a policy as a table that a test fills in by hand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/feasible.h"
#include "core/policy.h"

namespace tactus {

constexpr TimePoint At(int ms) { return kStart + Millis(ms); }

struct TableForTest {
  std::vector<Model> models;
  std::vector<ProfileTable::ModelRows> rows;
  ProfileTable profile;
  std::vector<RequestQueue> queues;
  std::vector<Lane> lanes;
  Plan plan;
  bool planned = false;
  std::uint64_t next_id = 0;

  static ModelId M(std::size_t i) { return ModelId{static_cast<ModelId::rep>(i)}; }

  // l(b) = base + b * each.
  void AddModel(Duration slo, Duration base, Duration each, int max_batch) {
    Model model{.name = "m", .slo = slo, .max_batch = max_batch};
    model.exits.resize(1);
    models.push_back(model);
    ProfileTable::ModelRows row{.exits = 1, .max_batch = max_batch};
    for (int b = 1; b <= max_batch; ++b) row.latency.push_back(base + b * each);
    rows.push_back(row);
    queues.emplace_back(256);
    profile = ProfileTable(1, rows);
  }
  void AddLanes(int count) {
    for (int i = 0; i < count; ++i) {
      Lane& lane = lanes.emplace_back();
      lane.id = LaneId{static_cast<LaneId::rep>(lanes.size() - 1)};
      lane.batches = FixedVector<RunningBatch>(1);
    }
  }
  View view() const { return {models, queues, lanes, profile, planned ? &plan : nullptr}; }

  // `count` requests that are due at `deadline`.
  void Push(Policy& policy, std::size_t m, TimePoint deadline, int count = 1) {
    for (int i = 0; i < count; ++i) {
      const Request request{
          .id = RequestId{next_id++}, .arrival = deadline - models[m].slo, .deadline = deadline};
      queues[m].Push(request);
      policy.OnArrive(M(m), request);
    }
  }
  void Pop(Policy& policy, ModelId m, int count) {
    policy.OnPopFront(m, count);
    queues[m.value()].PopFront(count);
  }
  void Run(std::size_t lane, std::size_t m, int batch, TimePoint started) {
    lanes[lane].batches.push_back({.id = BatchId{next_id++},
                                   .model = M(m),
                                   .batch = batch,
                                   .started = started,
                                   .priority = models[m].priority});
  }
  void CarryOut(Policy& policy, const Dispatch& d, TimePoint now) {
    Pop(policy, d.model, d.batch);
    Run(d.lane.value(), d.model.value(), d.batch, now);
  }
};

inline Decision Launch(std::size_t m, int batch, std::size_t lane) {
  return Dispatch{.model = TableForTest::M(m),
                  .exit = ExitId{0},
                  .batch = batch,
                  .lane = LaneId{static_cast<LaneId::rep>(lane)}};
}
inline Decision GiveUp(std::size_t m, int count, DropReason reason) {
  return Drop{.model = TableForTest::M(m), .count = count, .reason = reason};
}

}  // namespace tactus
