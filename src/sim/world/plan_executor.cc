#include "sim/world/plan_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planners/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

using Kind = TransitionStep::Kind;

ReplannerOptions OptionsOf(const Scenario& scenario) {
  ReplannerOptions options;
  options.period = FromSeconds(scenario.plan_period_s);
  options.weight = scenario.plan_weight;
  options.headroom = scenario.plan_headroom;
  options.bad_threshold = scenario.plan_bad_threshold;
  return options;
}

std::optional<InterferenceModel> InterferenceOf(const Scenario& scenario) {
  if (scenario.plan_interference.empty()) return std::nullopt;
  InterferenceModel model;
  std::ranges::copy(scenario.plan_interference, model.c.begin());
  return model;
}

}  // namespace

Expected<std::unique_ptr<PlanExecutor>> PlanExecutor::For(const Scenario& scenario,
                                                          const ProfileFile& profile,
                                                          const SimulationOptions& options) {
  if (scenario.plan_planner == "none") return nullptr;
  const auto interference = InterferenceOf(scenario);
  auto planner = MakePlanner(scenario.plan_planner, interference);
  if (!planner) return std::unexpected(planner.error());
  auto question = MakePlanQuestion(scenario, profile, options.on_share);
  if (!question) return std::unexpected(question.error());
  if (auto suits = (*planner)->Suits(question->input.shares); !suits) {
    return std::unexpected(suits.error());
  }
  if (interference) {
    if (auto sane = CheckPredictions(*interference, question->input); !sane) {
      return Fail(sane.error().code, "[plan] interference: " + sane.error().message);
    }
  }
  for (std::size_t m = 0; m < options.planned_rps.size(); ++m) {
    question->input.models[m].rate_rps = options.planned_rps[m];
  }
  std::unique_ptr<PlanExecutor> made(
      new PlanExecutor(scenario, std::move(*question), std::move(*planner)));
  if (options.plan != nullptr) {
    made->first_ = *options.plan;
    return made;
  }
  auto first = made->replanner_.First();
  if (!first && first.error().code != ErrorCode::kResourceExhausted) {
    return std::unexpected(first.error());  // not of the rates
  }
  if (!first) {
    return Fail(first.error().code,
                fmt::format("no plan for the rates at the start, with {:.0f} % more ([plan] "
                            "headroom): {}",
                            100 * scenario.plan_headroom, first.error().message));
  }
  made->first_ = std::move(*first);
  return made;
}

PlanExecutor::PlanExecutor(const Scenario& scenario, PlanQuestion question,
                           std::unique_ptr<Planner> planner)
    : question_(std::move(question)),
      replanner_(question_.input, std::move(planner), OptionsOf(scenario)),
      transition_(scenario.lanes),
      rng_(Rng::Stream(scenario.seed, "reorganisation")),
      failures_(Rng::Stream(scenario.seed, "reorganisation/failures")),
      period_(FromSeconds(scenario.plan_period_s)),
      least_(FromSeconds(scenario.plan_make_least_s)),
      most_(FromSeconds(scenario.plan_make_most_s)),
      fails_(scenario.plan_make_fails),
      draining_(transition_.AllLanes().size()) {}

void PlanExecutor::Start(Dispatcher& dispatcher, EventHeap& heap) {
  dispatcher_ = &dispatcher;
  heap_ = &heap;
  for (LaneId::rep lane = 0; lane < draining_.size(); ++lane) {
    dispatcher.SetLaneOpen(LaneId{lane}, false);
  }
  auto steps = transition_.Begin(first_);
  CHECK(steps, "planners put at most two lanes on a device, and so does a plan that fits");
  // What serves at the start was made before it.
  PlanTransition::Steps switched;
  for (const TransitionStep& step : *steps) {
    dispatcher.SetLaneShare(step.lane, step.spec.lane_class, step.spec.fraction);
    switched = transition_.Prepared(step.lane);
  }
  CarryOut(switched, kStart);
  heap.Push(kStart + Replanner::kLook, EventClass::kReplan, 0);
}

void PlanExecutor::Replan(TimePoint now, TimePoint end) {
  if (now >= period_begin_ + period_) EndPeriod(now);
  const auto plan = replanner_.Look(*serving_, !transition_.steady());
  if (plan) Begin(*plan, now);
  if (now + Replanner::kLook < end) heap_->Push(now + Replanner::kLook, EventClass::kReplan, 0);
}

void PlanExecutor::Begin(const Plan& plan, TimePoint now) {
  const auto steps = transition_.Begin(plan);
  CHECK(steps, "a plan is asked for where none is being taken up");
  CarryOut(*steps, now);
}

void PlanExecutor::Prepared(LaneId lane, TimePoint now) {
  const bool fails = failures_.Uniform() < fails_;
  const auto wanted = transition_.next();
  CarryOut(fails ? transition_.Failed(lane) : transition_.Prepared(lane), now);
  if (transition_.next() == wanted) return;
  ++given_up_;
  replanner_.GivenUp();
}

void PlanExecutor::Finished(LaneId lane, TimePoint now) {
  if (!draining_[lane.value()] || !Idle(lane)) return;
  draining_[lane.value()] = false;
  CarryOut(transition_.Drained(lane), now);
}

bool PlanExecutor::Idle(LaneId lane) const {
  return dispatcher_->view().lanes[lane.value()].batches.empty();
}

void PlanExecutor::CarryOut(const PlanTransition::Steps& steps, TimePoint now) {
  for (const TransitionStep& step : steps) {
    switch (step.kind) {
      case Kind::kMake:
        dispatcher_->SetLaneShare(step.lane, step.spec.lane_class, step.spec.fraction);
        [[fallthrough]];
      case Kind::kLoad: {
        const Duration takes = least_ + FromSeconds(rng_.Uniform() * ToSeconds(most_ - least_));
        heap_->Push(now + takes, EventClass::kLanePrepared, step.lane.value());
        break;
      }
      case Kind::kAdopt:
        serving_ = transition_.next();
        dispatcher_->Adopt(serving_);
        ++plans_;
        break;
      case Kind::kOpen:
        dispatcher_->SetLaneOpen(step.lane, true);
        break;
      case Kind::kClose:
        dispatcher_->SetLaneOpen(step.lane, false);
        draining_[step.lane.value()] = true;
        Finished(step.lane, now);
        break;
      case Kind::kUnload:
      case Kind::kRemove:
        break;  // nothing holds a simulated lane, or what is loaded there
    }
  }
}

void PlanExecutor::EndPeriod(TimePoint now) {
  LayoutPoint point{.at_s = ToSeconds(now - kStart),
                    .offered_rps = static_cast<double>(arrived_) / ToSeconds(now - period_begin_),
                    .plans = plans_,
                    .given_up = given_up_};
  if (good_ + bad_ > 0) {
    point.bad_ratio = static_cast<double>(bad_) / static_cast<double>(good_ + bad_);
  }
  for (const LanePlan& lane : serving_->lanes) {
    if (lane.entries.empty()) continue;
    ++point.lanes;
    point.devices_used += lane.spec.fraction;
  }
  history_.push_back(point);
  period_begin_ = now;
  arrived_ = good_ = bad_ = 0;
}

}  // namespace tactus
