// A simulated system whose devices are split anew as its load changes: it counts what comes and
// what is late, asks for a plan when one is due (placement/replanner.h) and carries out what the
// transition says (placement/plan_transition.h), in the time that making a lane takes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "dispatch/dispatcher.h"
#include "metrics/report.h"
#include "placement/plan_transition.h"
#include "placement/replanner.h"
#include "sim/world/event_heap.h"
#include "sim/world/plan_question.h"

namespace tactus {

struct SimulationOptions;

class PlanExecutor {
 public:
  // Nothing where the scenario has no planner of its own. Begins with the options' plan, if there
  // is one; else an error where no plan sustains the rates at the start.
  static Expected<std::unique_ptr<PlanExecutor>> For(const Scenario& scenario,
                                                     const ProfileFile& profile,
                                                     const SimulationOptions& options);

  // The first plan serves from the beginning; later ones come as events of `heap`. Both outlive it.
  void Start(Dispatcher& dispatcher, EventHeap& heap);
  void Arrived(ModelId m) {
    replanner_.Arrived(m);
    ++arrived_;
  }
  void Ended(bool in_time) {
    replanner_.Ended(in_time);
    ++(in_time ? good_ : bad_);
  }
  // Events of class kReplan and kLanePrepared, until `end`.
  void Replan(TimePoint now, TimePoint end);
  void Prepared(LaneId lane, TimePoint now);
  // After a batch ended there.
  void Finished(LaneId lane, TimePoint now);

  const std::vector<LayoutPoint>& history() const { return history_; }

 private:
  PlanExecutor(const Scenario& scenario, PlanQuestion question, std::unique_ptr<Planner> planner);

  void Begin(const Plan& plan, TimePoint now);
  void CarryOut(const PlanTransition::Steps& steps, TimePoint now);
  void EndPeriod(TimePoint now);
  bool Idle(LaneId lane) const;

  const PlanQuestion question_;
  Replanner replanner_;
  PlanTransition transition_;
  Plan first_;
  Rng rng_;
  Rng failures_;
  const Duration period_;
  const Duration least_;  // that making a lane takes
  const Duration most_;
  const double fails_;  // of the lanes
  Dispatcher* dispatcher_ = nullptr;
  EventHeap* heap_ = nullptr;
  std::shared_ptr<const Plan> serving_;
  std::vector<bool> draining_;  // by LaneId
  TimePoint period_begin_ = kStart;
  std::int64_t arrived_ = 0;  // in this period
  std::int64_t good_ = 0;
  std::int64_t bad_ = 0;
  std::int64_t plans_ = 0;
  std::int64_t given_up_ = 0;
  std::vector<LayoutPoint> history_;
};

}  // namespace tactus
