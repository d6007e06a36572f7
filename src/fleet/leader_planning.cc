// When the leader plans, for whom, and what it spares for nodes that are away.
#include <algorithm>
#include <iterator>
#include <utility>

#include "fleet/leader.h"
#include "fleet/slices.h"

namespace tactus {

// It obeys this leader, which knows what it serves: nobody else changes that.
bool FleetLeader::Known(const std::string& name) const {
  const Node& node = nodes_.at(name);
  return node.report.term == kept_.term &&
         std::ranges::any_of(node.in_force, [&](const FleetSlice& each) {
           return each.id == node.report.committed;
         });
}

bool FleetLeader::AllKnown() const {
  return std::ranges::all_of(membership_.members(), [this](const auto& each) {
    return !each.second.present() || Known(each.first);
  });
}

std::set<std::string> FleetLeader::Participants(TimePoint now) const {
  std::set<std::string> names;
  for (const auto& [name, member] : membership_.members()) {
    if (!member.present() || !Known(name)) continue;
    const Node& node = nodes_.at(name);
    if (node.report.failing || now < node.left_out_until) continue;
    names.insert(name);
  }
  return names;
}

bool FleetLeader::Forgotten(const std::string& name, TimePoint now) const {
  const Member& member = membership_.members().at(name);
  if (member.present()) return false;
  return now >= std::max(since_, member.heard) + options_.forget_after;
}

// A node of which this leader does not know where it sends might send anywhere.
bool FleetLeader::HoldBack(TimePoint now) const {
  return std::ranges::any_of(nodes_, [&](const auto& each) {
    if (rollout_ && rollout_->plan().slices.contains(each.first)) return false;
    return !Known(each.first) && !Forgotten(each.first, now);
  });
}

AbandonOrder FleetLeader::Abandoning(const std::string& node, PlanId id, TimePoint now) const {
  AbandonOrder order{.id = id, .keep_all = HoldBack(now)};
  const auto routed = RoutedTo(now, true);
  const auto here = routed.find(node);
  if (here != routed.end()) order.keep.assign(here->second.begin(), here->second.end());
  return order;
}

std::map<std::string, std::set<std::string>> FleetLeader::RoutedTo(TimePoint now, bool all) const {
  std::map<std::string, std::set<std::string>> kept;
  for (const auto& [name, node] : nodes_) {
    const bool inside = rollout_ && rollout_->plan().slices.contains(name);
    if ((inside && !all) || Forgotten(name, now)) continue;
    for (const FleetSlice& slice : node.in_force) {
      for (const SliceRoute& route : slice.routes) {
        for (const RouteTarget& target : route.to) kept[target.node].insert(route.model);
      }
    }
  }
  return kept;
}

void FleetLeader::Measure(Node& node, const NodeBeat& beat, TimePoint now) const {
  node.rates.clear();
  for (const ModelRate& each : beat.rates) node.rates[each.model] = each.rate_rps;
  for (const MeasuredLink& each : beat.links) {
    const auto before = node.links.find(each.to);
    LinkReading reading = each.reading;
    // A way that only probes cross keeps the rate that it had.
    if (reading.mbps <= 0 && before != node.links.end()) {
      before->second.reading.rtt = reading.rtt;
      continue;
    }
    node.links[each.to] = {reading, now};
  }
  std::erase_if(node.links,
                [&](const auto& each) { return each.second.at + options_.links_hold < now; });
}

FleetInput FleetLeader::Linked(TimePoint now) const {
  LinkReadings readings;
  FleetInput input = declared_;
  if (now < since_ + options_.links_hold) {
    for (const FleetLink& each : options_.remembered.links) {
      for (FleetLink& link : input.links) {
        if (link.a == each.a && link.b == each.b) link = each;
      }
    }
  }
  for (const auto& [name, node] : nodes_) {
    for (const auto& [to, way] : node.links) {
      if (way.at + options_.links_hold >= now) readings[{name, to}] = way.reading;
    }
  }
  return WithLinks(std::move(input), readings);
}

void FleetLeader::LookAtLinks(TimePoint now) {
  if (!planned_ || now < std::max(look_at_links_, planned_at_ + options_.links_every)) return;
  look_at_links_ = now + Seconds(1);
  links_changed_ = LinksDiffer(Linked(now).links, planned_links_);
}

bool FleetLeader::WantsPlan(TimePoint now, const std::set<std::string>& participants) const {
  if (participants.empty() || now < not_before_) return false;
  if (!planned_) {
    if (Awaits(participants)) return now >= since_ + options_.membership.dead_after;
    return AllKnown() || now >= since_ + options_.settle;
  }
  if (retry_ || participants != planned_for_ || now >= next_period_) return true;
  if (links_changed_) return true;
  // One that went back to what it had kept, say.
  return std::ranges::any_of(participants, [this](const std::string& name) {
    return nodes_.at(name).report.committed != serving_;
  });
}

bool FleetLeader::Serves(const std::map<std::string, FleetSlice>& slices) const {
  return !serving_.none() && std::ranges::all_of(slices, [this](const auto& each) {
    const Node& node = nodes_.at(each.first);
    return node.report.committed == serving_ && node.in_force.front().id == serving_ &&
           node.in_force.front().instances == each.second.instances &&
           node.in_force.front().routes == each.second.routes &&
           node.in_force.front().models == each.second.models;
  });
}

bool FleetLeader::Awaits(const std::set<std::string>& participants) const {
  return std::ranges::any_of(options_.remembered.plans, [&](const RememberedPlan& plan) {
    return !std::ranges::includes(participants, plan.nodes);
  });
}

bool FleetLeader::TakeUp(TimePoint now, const std::set<std::string>& participants) {
  if (planned_) return false;
  const auto serve = [&](const RememberedPlan& plan) {
    return plan.nodes == participants && std::ranges::all_of(participants, [&](const auto& name) {
             return nodes_.at(name).report.committed == plan.id;
           });
  };
  const auto plan = std::ranges::find_if(options_.remembered.plans, serve);
  if (plan == options_.remembered.plans.end()) return false;
  std::map<std::string, FleetSlice> slices;
  std::set<std::string> away;
  for (const auto& [name, node] : nodes_) {
    if (!participants.contains(name)) away.insert(name);
    for (const FleetSlice& each : node.in_force) {
      if (participants.contains(name) && each.id == plan->id) slices[name] = each;
    }
  }
  // Other models are rolled out by another plan; a leader without a repository asks for none.
  auto with_models = slices;
  AddModels(options_.digests, with_models);
  if (!options_.digests.empty() && with_models != slices) return false;
  lost_.clear();
  const FleetInput input = Without(declared_, away, lost_);
  // The slices are what serves; a plan that is not theirs would undo them.
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.instances == b.second.instances &&
           a.second.routes == b.second.routes;
  };
  current_ = plan->plan;
  if (current_ &&
      !std::ranges::equal(SlicesOf(*current_, input, plan->id, participants), slices, same)) {
    current_.reset();
  }
  next_scaling_ = now + options_.scale_every;
  planned_ = true;
  planned_links_ = plan->links;
  planned_at_ = now;
  planned_for_ = participants;
  next_period_ = now + options_.replan_every;
  known_adopted_ = plan->adopted;
  if (history_ != nullptr) history_->OnTakenUp(now, plan->id);
  auto waves = WavesOf(slices, declared_);
  StartRollout({plan->id, std::move(slices), std::move(waves)}, Rollout::Phase::kRetiring, now);
  return true;
}

void FleetLeader::StartRollout(RolloutPlan plan, Rollout::Phase from, TimePoint now) {
  RolloutOptions options = options_.rollout;
  for (const FleetPipeline& each : declared_.pipelines) {
    options.old_requests = std::max(options.old_requests, 2 * each.slo);
  }
  rollout_.emplace(std::move(plan), options, now, from);
  for (const auto& [name, slice] : rollout_->plan().slices) {
    rollout_->Report(name, nodes_.at(name).report, now);
  }
  ended_ = false;
}

FleetInput FleetLeader::MeasuredNow(const FleetInput& linked,
                                    std::vector<LostPipeline>& lost) const {
  std::map<std::string, double> rates;
  std::set<std::string> away;
  for (const auto& [name, node] : nodes_) {
    if (!planned_for_.contains(name)) away.insert(name);
    for (const auto& [model, rate] : node.rates) rates[model] += rate;
  }
  return Without(Measured(linked, rates), away, lost);
}

void FleetLeader::MakePlan(TimePoint now, const std::set<std::string>& participants) {
  lost_.clear();
  const FleetInput linked = Linked(now);
  planned_ = true;
  planned_links_ = linked.links;
  planned_at_ = now;
  links_changed_ = false;
  retry_ = false;
  planned_for_ = participants;
  next_period_ = now + options_.replan_every;
  next_scaling_ = now + options_.scale_every;
  current_.reset();
  scaled_from_.reset();
  const FleetInput input = MeasuredNow(linked, lost_);
  FleetPlan plan;
  if (!input.pipelines.empty()) {
    auto made = planning_(input);
    if (!made) {
      problem_ = "no plan for the nodes that are here: " + made.error().message;
      retry_ = true;
      not_before_ = now + options_.plan_again;
      return;
    }
    plan = *std::move(made);
  }
  RollOut(now, input, std::move(plan), "");
}

bool FleetLeader::Scale(TimePoint now) {
  if (!options_.scaling || !current_ || now < next_scaling_) return false;
  next_scaling_ = now + options_.scale_every;
  std::vector<LostPipeline> lost;
  const FleetInput input = MeasuredNow(Linked(now), lost);
  FleetPlan plan = *current_;
  const std::string what = options_.scaling(input, plan, now);
  if (what.empty()) return false;
  scaled_from_ = current_;
  RollOut(now, input, std::move(plan), what);
  return true;
}

void FleetLeader::KeepLost(std::map<std::string, FleetSlice>& slices, TimePoint now) const {
  const bool may_serve = std::ranges::any_of(nodes_, [&](const auto& each) {
    return !slices.contains(each.first) && !Forgotten(each.first, now);
  });
  if (!may_serve) return;
  const auto is_lost = [this](const auto& each) {
    return std::ranges::find(lost_, each.pipeline, &LostPipeline::pipeline) != lost_.end();
  };
  for (auto& [name, slice] : slices) {
    const Node& node = nodes_.at(name);
    if (node.refusals > 0) continue;
    for (const FleetSlice& served : node.in_force) {
      if (served.id != node.report.committed) continue;
      std::ranges::copy_if(served.instances, std::back_inserter(slice.instances), is_lost);
      std::ranges::copy_if(served.routes, std::back_inserter(slice.routes), is_lost);
    }
  }
}

void FleetLeader::RollOut(TimePoint now, const FleetInput& input, FleetPlan plan,
                          const std::string& scaled) {
  const PlanId id{kept_.term, kept_.epoch + 1};
  auto slices = SlicesOf(plan, input, id, planned_for_);
  KeepLost(slices, now);
  AddModels(options_.digests, slices);
  if (Serves(slices)) {
    problem_.clear();
  } else {
    ++kept_.epoch;
    plan.epoch = id.epoch;
    if (history_ != nullptr) history_->OnPlan(now, id, input, plan);
    if (history_ != nullptr && !scaled.empty()) history_->OnScaled(now, id, scaled);
    auto waves = WavesOf(slices, declared_);
    known_adopted_ = false;
    StartRollout({id, std::move(slices), std::move(waves)}, Rollout::Phase::kPreparing, now);
  }
  current_ = std::move(plan);
}

TimePoint FleetLeader::WhenDue() const {
  TimePoint next = membership_.Next();
  if (!leading_) return std::min(next, since_ + options_.settle);
  if (rollout_) next = std::min(next, rollout_->Next());
  if (rollout_ && !rollout_->over()) return next;
  const auto later = [&](TimePoint at) { next = std::min(next, std::max(at, not_before_)); };
  if (!planned_) {
    const bool awaits = !options_.remembered.plans.empty();
    later(since_ + (awaits ? options_.membership.dead_after : options_.settle));
  }
  // Where none of the plan's nodes is here, there is nobody to plan or scale for.
  const bool here = std::ranges::any_of(planned_for_, [this](const std::string& name) {
    return membership_.members().at(name).present();
  });
  if (planned_ && here) later(next_period_);
  if (options_.scaling && current_ && here) later(next_scaling_);
  if (retry_) later(not_before_);
  for (const auto& [name, node] : nodes_) {
    if (node.left_out_until > not_before_) later(node.left_out_until);
  }
  return next;
}

LeaderView FleetLeader::View(TimePoint now) const {
  LeaderView view{.term = leading_ ? kept_.term : 0,
                  .serving = serving_,
                  .rolling = rollout_ ? rollout_->plan().id : PlanId{},
                  .phase = rollout_ ? Name(rollout_->phase()) : "",
                  .problem = superseded() ? superseded_ : problem_,
                  .lost = lost_,
                  .nodes = {}};
  for (const auto& [name, member] : membership_.members()) {
    const Node& node = nodes_.at(name);
    LeaderView::Node shown{.name = name, .standing = member.standing, .silent = {}};
    if (member.standing != Standing::kAway) shown.silent = now - member.heard;
    shown.report = node.report;
    if (!node.in_force.empty()) shown.slice = node.in_force.front();
    shown.rates = node.rates;
    for (const auto& [to, way] : node.links) shown.links.push_back({to, way.reading});
    if (node.report.failing || now < node.left_out_until) shown.left_out = node.left_out_why;
    view.nodes.push_back(std::move(shown));
  }
  return view;
}

}  // namespace tactus
