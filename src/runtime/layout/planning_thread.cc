#include "runtime/layout/planning_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

Duration Since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

bool SameModels(const PlanInput& a, const PlanInput& b) {
  return std::ranges::equal(a.models, b.models, [](const PlannedModel& x, const PlannedModel& y) {
    return x.name == y.name && x.slo == y.slo;
  });
}

std::string RatesText(const std::vector<double>& rates_rps, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t m = 0; m < names.size(); ++m) {
    text += fmt::format("{}{} {:.1f}", m == 0 ? "" : ", ", names[m], rates_rps[m]);
  }
  return text;
}

}  // namespace

std::string LayoutText(const Plan& plan, const std::vector<std::string>& models) {
  std::string text;
  for (const LanePlan& lane : plan.lanes) {
    if (lane.entries.empty()) continue;
    text += fmt::format("{}{:g} %:", text.empty() ? "" : "; ", 100 * lane.spec.fraction);
    for (std::size_t i = 0; i < lane.entries.size(); ++i) {
      const PlanEntry& entry = lane.entries[i];
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", entry.batch, models[entry.model.value()]);
    }
    text += lane.cycle < Seconds(1) ? fmt::format(" every {:.4g} ms", ToMillis(lane.cycle))
                                    : fmt::format(" every {:.4g} s", ToSeconds(lane.cycle));
  }
  return text;
}

PlanningThread::PlanningThread(Runtime& runtime, std::unique_ptr<Planner> planner, Options options)
    : runtime_(runtime),
      options_(std::move(options)),
      replanner_({}, std::move(planner), options_.replanner),
      rates_rps_(options_.declared_rps) {}

// What is loaded now, where that is something else than before.
Status PlanningThread::TakeModels() {
  const auto served_models = runtime_.served_models();
  if (served_models == served_models_) return {};
  auto question = runtime_.CurrentPlanQuestion();
  if (!question) return std::unexpected(question.error());
  served_models_ = served_models;
  if (SameModels(question->input, question_.input)) return {};
  for (std::size_t m = 0; m < names_.size(); ++m) {
    rates_rps_[names_[m]] = replanner_.rates_rps()[m];
  }
  question_ = *std::move(question);
  names_ = NamesOf(question_.input);
  for (PlannedModel& model : question_.input.models) model.rate_rps = rates_rps_[model.name];
  replanner_.Serve(question_.input);
  return {};
}

void PlanningThread::Count() {
  const auto offered = runtime_.offered();
  for (ModelId::rep m = 0; m < names_.size(); ++m) {
    const auto now = offered.find(names_[m]);
    if (now == offered.end()) continue;
    std::uint64_t& before = offered_[now->first];
    if (now->second < before) before = 0;  // it was loaded anew
    replanner_.Arrived(ModelId{m}, static_cast<std::int64_t>(now->second - before));
    before = now->second;
  }
  const Ended ended = options_.ended();
  replanner_.Ended(true, ended.in_time - ended_.in_time);
  replanner_.Ended(false, ended.late - ended_.late);
  ended_ = ended;
}

// The layout, in the models of the question.
Plan PlanningThread::Current() const {
  const DeviceLayout layout = runtime_.layout();
  if (layout.plan == nullptr) return {};
  return Renumbered(*layout.plan, layout.models,
                    [&](LaneId, const std::string& name) { return FindModel(names_, name); });
}

Status PlanningThread::First() {
  if (Status taken = TakeModels(); !taken) return taken;
  const auto begin = Clock::now();
  const auto plan = replanner_.First();
  Note(Since(begin), true);
  if (!plan && plan.error().code != ErrorCode::kResourceExhausted) {
    return std::unexpected(plan.error());  // not of the rates
  }
  if (!plan) {
    return Fail(plan.error().code,
                fmt::format("no plan for the rates to begin with ({} requests/s, with {:.0f} % "
                            "more): {}",
                            RatesText(replanner_.rates_rps(), names_),
                            100 * options_.replanner.headroom, plan.error().message));
  }
  return Change(*plan);
}

Status PlanningThread::Change(const Plan& plan) {
  const auto begin = Clock::now();
  const Status adopted = runtime_.Adopt(plan, names_);
  {
    const std::lock_guard lock(reading_mutex_);
    reading_.changed += Since(begin);
  }
  if (adopted && options_.tell) {
    options_.tell(fmt::format("plan: {}, for {} requests/s", LayoutText(plan, names_),
                              RatesText(replanner_.rates_rps(), names_)));
  }
  return adopted;
}

void PlanningThread::Look(Duration passed) {
  if (const Status taken = TakeModels(); !taken) return Stays(taken.error());
  if (names_.empty()) return;
  Count();
  const std::int64_t asked_before = replanner_.questions();
  const auto begin = Clock::now();
  const std::optional<Plan> plan = replanner_.Look(Current(), false, passed);
  const bool asked = replanner_.questions() > asked_before;
  Note(asked ? Since(begin) : Duration{}, asked);
  if (const Status changed = plan ? Change(*plan) : Status{}; !changed) {
    replanner_.GivenUp();
    return Stays(changed.error());
  }
  if (!asked) return;
  const std::string& shortage = replanner_.shortage();
  if (shortage.empty()) {
    problem_.clear();
  } else {
    WarnOnce("shortage",
             fmt::format("plan: {}: {}", plan ? "for a fraction of the load" : "what serves stays",
                         shortage));
  }
}

void PlanningThread::Note(Duration took, bool asked) {
  const std::lock_guard lock(reading_mutex_);
  reading_.questions = replanner_.questions();
  reading_.shortage = replanner_.shortage();
  reading_.asked += took;
  if (asked && !reading_.shortage.empty()) ++reading_.infeasible;
  reading_.rates_rps.clear();
  for (std::size_t m = 0; m < names_.size(); ++m) {
    reading_.rates_rps[names_[m]] = replanner_.rates_rps()[m];
  }
}

void PlanningThread::Stays(const Error& why) {
  if (why.code == ErrorCode::kCancelled) return;  // the server stops; nothing is wrong
  WarnOnce(why.message, "plan: what serves stays: " + why.message);
}

void PlanningThread::WarnOnce(std::string_view kind, const std::string& problem) {
  if (kind == problem_) return;
  problem_ = kind;
  if (options_.warn) options_.warn(problem);
}

void PlanningThread::Start() {
  thread_.Start("planning",
                Every(Replanner::kLook,
                      [this, last = Clock::now()]() mutable {
                        const auto begin = std::exchange(last, Clock::now());
                        Look(std::chrono::duration_cast<Duration>(last - begin));
                      }),
                Replanner::kLook);
}

PlanningReading PlanningThread::reading() const {
  const std::lock_guard lock(reading_mutex_);
  return reading_;
}

}  // namespace tactus
