// For tests of the dispatcher: a policy that follows a script, two small models, and verbs.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/learner.h"
#include "dispatch/dispatcher.h"
#include "dispatch/transcript_for_test.h"

namespace tactus {

inline constexpr ModelId kA{0};
inline constexpr ModelId kB{1};
inline constexpr LaneId kLane{0};

// Answers from a list, then waits; writes down what it is told.
class Script final : public Policy, public Learner {
 public:
  Script() : Policy({.name = "script"}) {}
  Decision Decide(const View&, TimePoint) override {
    if (answers.empty()) return Wait{until};
    const Decision next = answers.front();
    answers.pop_front();
    return next;
  }
  void Prepare(const View&) override { heard.push_back("prepare"); }
  void OnArrive(ModelId m, const Request& r) override {
    heard.push_back("arrive " + std::to_string(m.value()) + "/" + std::to_string(r.id.value()));
  }
  void OnPopFront(ModelId m, int count) override {
    heard.push_back("pop " + std::to_string(m.value()) + " x" + std::to_string(count));
  }
  void OnQueueChange(ModelId m) override { heard.push_back("change " + std::to_string(m.value())); }
  void OnBatchDone(LaneId, const RunningBatch& batch, const BatchReport& report,
                   TimePoint) override {
    heard.push_back("done b" + std::to_string(batch.id.value()) + " x" +
                    std::to_string(batch.batch) + " " +
                    std::to_string(static_cast<int>(report.status)));
  }

  std::deque<Decision> answers;
  TimePoint until = kNever;
  std::vector<std::string> heard;
};

// Two models with an SLO of 50 ms and two exits (10 and 20 ms, whatever the batch).
inline std::shared_ptr<ServedModels> TwoModels(int max_batch = 4) {
  auto served_models = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  for (const char* name : {"a", "b"}) {
    served_models->models.push_back(
        {.name = name, .slo = Millis(50), .max_batch = max_batch, .exits = {{}, {}}});
    ProfileTable::ModelRows row{.exits = 2, .max_batch = max_batch};
    row.latency.assign(max_batch, Millis(10));
    row.latency.insert(row.latency.end(), max_batch, Millis(20));
    rows.push_back(row);
  }
  served_models->profile = ProfileTable(1, rows);
  return served_models;
}

class DispatcherTest : public ::testing::Test {
 protected:
  void Open(DispatcherOptions options, std::vector<LaneSpec> lanes = {LaneSpec{}}) {
    dispatcher_.emplace(options, std::move(lanes), script_, transcript_);
    dispatcher_->Configure(TwoModels());
    script_.heard.clear();
  }
  // Ids count from 1; the deadline is the arrival plus the SLO of 50 ms, or what is said.
  void Arrive(ModelId m, int at_ms, int deadline_ms = -1, std::uint32_t shape = 0) {
    ++last_id_;
    const TimePoint at = kStart + Millis(at_ms);
    dispatcher_->Arrive(
        m, {.id = RequestId{last_id_},
            .arrival = at,
            .deadline = deadline_ms < 0 ? at + Millis(50) : kStart + Millis(deadline_ms),
            .shape = shape});
  }
  void Answer(Decision decision) { script_.answers.push_back(decision); }
  TimePoint Step(int at_ms) { return dispatcher_->Step(kStart + Millis(at_ms)); }
  void Finish(std::uint64_t batch, int at_ms, BatchStatus status = BatchStatus::kOk,
              LaneId lane = kLane) {
    dispatcher_->Finish(lane, BatchId{batch}, {.ended = kStart + Millis(at_ms), .status = status},
                        kStart + Millis(at_ms));
  }
  Dispatch Run(ModelId m, int batch, LaneId lane = kLane) {
    return {.model = m, .exit = ExitId{1}, .batch = batch, .lane = lane};
  }
  std::string Said() { return transcript_.Take(); }

  Script script_;
  Transcript transcript_;
  std::optional<Dispatcher> dispatcher_;
  std::uint64_t last_id_ = 0;
};

}  // namespace tactus
