#include "cluster/memory/chronicle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster/memory/plan_text.h"
#include "workload/fleet_plan_file.h"

namespace tactus {
namespace {

// Rates are the most of windows of 15, 30 and 60 s (fleet/rate_windows.h).
constexpr Duration kRateWindow = Seconds(60);

std::string PlanName(PlanId id) { return fmt::format("{}.{}", id.term, id.epoch); }

std::string EventOf(Standing standing) { return std::string("node-") + Name(standing); }

}  // namespace

Chronicle::Chronicle(FleetInput declared, std::string planner, Utc utc,
                     std::function<void()> urgent)
    : declared_(std::move(declared)),
      planner_(std::move(planner)),
      mark_(FleetMark(declared_, planner_)),
      utc_(std::move(utc)),
      urgent_(std::move(urgent)) {}

void Chronicle::Happened(const std::string& kind, const std::string& subject,
                         const std::string& text) {
  events_.push_back({.at = utc_(), .kind = kind, .subject = subject, .text = text});
}

void Chronicle::OnLead(TimePoint, std::uint64_t term) {
  const std::scoped_lock lock(mutex_);
  term_ = term;
  Happened("leader", fmt::format("term {}", term), "a controller leads");
}

void Chronicle::OnStanding(TimePoint, const std::string& node, Standing now) {
  const std::scoped_lock lock(mutex_);
  Happened(EventOf(now), node, "");
}

void Chronicle::OnReport(TimePoint, const FromNode& message) {
  const NodeReport& report = ReportOf(message);
  const std::scoped_lock lock(mutex_);
  Heard& node = heard_[message.node];
  node.at = utc_();
  if (report.trouble != node.trouble) {
    Happened(report.trouble.empty() ? "trouble-over" : "trouble", message.node, report.trouble);
    node.trouble = report.trouble;
  }
  const auto* beat = std::get_if<NodeBeat>(&message.what);
  if (beat == nullptr) return;
  node.rates.clear();
  for (const ModelRate& each : beat->rates) node.rates[each.model] = each.rate_rps;
  node.links = beat->links;
}

void Chronicle::OnTakenUp(TimePoint, PlanId id) {
  const std::scoped_lock lock(mutex_);
  Happened("plan-kept", PlanName(id), "the nodes serve it, and it holds");
}

void Chronicle::OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan& plan) {
  {
    const std::scoped_lock lock(mutex_);
    decided_.push_back({.plan = {{utc_(), id, input, plan}}, .verdict = {}});
  }
  if (urgent_) urgent_();
}

void Chronicle::OnScaled(TimePoint, PlanId id, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  scaled_ = {id, "AutoScaler: " + what};
  Happened("plan-scaled", PlanName(id), what);
}

void Chronicle::OnRollout(TimePoint, PlanId id, bool adopted, const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    const auto fate = adopted ? knowledge::PlanFate::kAdopted : knowledge::PlanFate::kAbandoned;
    // Why it was abandoned, or else why it was made.
    const std::string& told = adopted && scaled_.first == id ? scaled_.second : why;
    decided_.push_back({.plan = {}, .verdict = {{id.epoch, fate, utc_(), told}}});
    Happened(adopted ? "plan-adopted" : "plan-abandoned", PlanName(id), why);
  }
  if (urgent_) urgent_();
}

std::uint64_t Chronicle::term() const {
  const std::scoped_lock lock(mutex_);
  return term_;
}

std::vector<knowledge::Batch> Chronicle::Take() {
  const knowledge::UtcTime now = utc_();
  knowledge::Batch first;
  std::vector<Decided> decided;
  std::optional<std::map<std::string, Heard>> heard;
  {
    const std::scoped_lock lock(mutex_);
    if (term_ == 0) return {};
    decided.swap(decided_);
    first.events.swap(events_);
    if (now >= sampled_at_ + kSampleEvery) heard = heard_;
  }
  std::vector<knowledge::Batch> batches;
  for (const Decided& each : decided) batches.push_back(BatchOf(each));
  if (heard) {
    AddArrivals(*heard, now, first);
    AddLinks(*heard, now, first);
    sampled_at_ = now;
  }
  if (first.records() > 0) batches.push_back(std::move(first));
  return batches;
}

// What reached a model anywhere, divided among its stages as they were declared: nodes count by
// model.
void Chronicle::AddArrivals(const std::map<std::string, Heard>& heard, knowledge::UtcTime now,
                            knowledge::Batch& batch) const {
  std::map<std::string, double> measured;
  for (const auto& [name, node] : heard) {
    if (node.at < sampled_at_) continue;
    for (const auto& [model, rate] : node.rates) measured[model] += rate;
  }
  std::map<std::string, double> declared;
  const auto each_stage = [this](const auto& told) {
    for (FleetPipelineId::rep p = 0; p < declared_.pipelines.size(); ++p) {
      const FleetPipeline& pipeline = declared_.pipelines[p];
      for (FleetStageId::rep s = 0; s < pipeline.stages.size(); ++s) {
        told(pipeline, pipeline.stages[s], declared_.RateOf(FleetPipelineId{p}, FleetStageId{s}));
      }
    }
  };
  const auto model_of = [this](const FleetStage& stage) -> const std::string& {
    return declared_.models[stage.model.value()];
  };
  each_stage([&](const FleetPipeline&, const FleetStage& stage, double rate) {
    declared[model_of(stage)] += rate;
  });
  each_stage([&](const FleetPipeline& pipeline, const FleetStage& stage, double rate) {
    const auto found = measured.find(model_of(stage));
    const double all = declared[model_of(stage)];
    if (found == measured.end() || all <= 0) return;
    batch.arrivals.push_back({.at = now,
                              .pipeline = pipeline.name,
                              .stage = stage.name,
                              .source = declared_.devices[pipeline.source.value()].name,
                              .window = kRateWindow,
                              .rate_rps = found->second * rate / all,
                              .items = stage.items});
  });
}

// Several nodes may cross one link: the slowest rate and the longest round trip hold.
void Chronicle::AddLinks(const std::map<std::string, Heard>& heard, knowledge::UtcTime now,
                         knowledge::Batch& batch) const {
  std::map<std::string, std::string> sites;
  for (const FleetDevice& each : declared_.devices) {
    sites[each.name] = declared_.sites[each.site.value()];
  }
  std::map<std::pair<std::string, std::string>, knowledge::NetworkSample> links;
  for (const auto& [name, node] : heard) {
    if (node.at < sampled_at_) continue;
    for (const MeasuredLink& each : node.links) {
      const auto from = sites.find(name), to = sites.find(each.to);
      if (from == sites.end() || to == sites.end() || from->second == to->second) continue;
      if (each.reading.mbps <= 0) continue;  // nothing crossed it
      const auto [link, fresh] = links.try_emplace(
          {from->second, to->second},
          knowledge::NetworkSample{now, from->second, to->second, each.reading.mbps, {}, 0});
      link->second.mbps = std::min(link->second.mbps, each.reading.mbps);
      link->second.rtt = std::max(link->second.rtt, each.reading.rtt);
    }
  }
  for (auto& [ends, sample] : links) batch.network.push_back(std::move(sample));
}

knowledge::Batch Chronicle::BatchOf(const Decided& decided) const {
  knowledge::Batch batch;
  batch.verdicts = decided.verdict;
  for (const Planned& each : decided.plan) {
    std::string plan = FleetPlanJson(each.plan, each.input, planner_);
    std::string predicted = PredictedJson(plan);
    batch.plans.push_back({.epoch = each.id.epoch,
                           .term = each.id.term,
                           .made = each.made,
                           .input = InputJson(each.input, mark_, planner_),
                           .plan = std::move(plan),
                           .predicted = std::move(predicted),
                           .decided = each.made});
  }
  return batch;
}

}  // namespace tactus
