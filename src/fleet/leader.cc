#include "fleet/leader.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

// A thousand nodes that say nothing new are not looked at one by one for each of their beats.
constexpr Duration kLookWithoutNews = Millis(100);

std::vector<std::string> NamesOf(const FleetInput& input) {
  std::vector<std::string> names;
  for (const FleetDevice& device : input.devices) names.push_back(device.name);
  return names;
}

}  // namespace

FleetLeader::FleetLeader(FleetInput declared, Planning planning, LeaderOptions options,
                         LeaderKept kept, TimePoint now, FleetHistory* history)
    : declared_(std::move(declared)),
      planning_(std::move(planning)),
      options_(options),
      history_(history),
      kept_(kept),
      confirmed_(kept),
      membership_(NamesOf(declared_), options.membership),
      since_(now) {
  for (const std::string& name : NamesOf(declared_)) nodes_[name];
}

void FleetLeader::Send(const std::string& node, const Incarnation& to,
                       decltype(ToNode::what) what) {
  if (!leading_ || superseded()) return;
  outgoing_.push_back({node, to, kept_.term, std::move(what)});
}

void FleetLeader::Receive(const FromNode& message, TimePoint now) {
  if (superseded()) return;
  const std::uint64_t term = ReportOf(message).term;
  seen_term_ = std::max(seen_term_, term);
  using Heard = Membership::Heard;
  const Heard heard = membership_.Hear(message, now);
  switch (heard) {
    case Heard::kUndeclared:
      return Send(message.node, message.who,
                  DenyOrder{"the fleet has no device '" + message.node +
                            "'; start the agent with --node and a name of [[devices]]"});
    case Heard::kNameTaken:
      return Send(message.node, message.who,
                  DenyOrder{"another node is here as '" + message.node +
                            "', with other state; name one of them otherwise, or stop it"});
    case Heard::kEarlierLife:
      return Send(message.node, message.who,
                  DenyOrder{"node '" + message.node +
                            "' has been started again since; one of the two is to be stopped"});
    case Heard::kMustGreet:
      return Send(message.node, message.who, GreetOrder{});
    case Heard::kOld:
      return;
    case Heard::kNews:
    case Heard::kNewLife:
      break;
  }
  if (leading_ && term > kept_.term) {
    superseded_ = "node '" + message.node + "' obeys a leader of term " + std::to_string(term) +
                  ", and this one's is " + std::to_string(kept_.term);
    kept_.term = term;
    outgoing_.clear();
    return;
  }
  if (history_ != nullptr) {
    if (heard == Heard::kNewLife) history_->OnStanding(now, message.node, Standing::kAlive);
    history_->OnReport(now, message);
  }
  if (std::holds_alternative<NodeHello>(message.what)) Greeted(message, heard == Heard::kNewLife);
  Reported(message, now);
}

void FleetLeader::Greeted(const FromNode& message, bool new_life) {
  Node& node = nodes_.at(message.node);
  const FleetSlice& slice = std::get<NodeHello>(message.what).slice;
  if (new_life) {
    node.left_out_until = kStart;
    node.left_out_why.clear();
    node.refusals = 0;
    if (rollout_) rollout_->Restarted(message.node);
  }
  // A COMMIT of a later plan may still be on its way.
  std::erase_if(node.in_force, [&](const FleetSlice& each) { return each.id <= slice.id; });
  node.in_force.insert(node.in_force.begin(), slice);
  Send(message.node, message.who, Welcome());
}

void FleetLeader::Reported(const FromNode& message, TimePoint now) {
  Node& node = nodes_.at(message.node);
  if (!std::holds_alternative<NodeBeat>(message.what) || ReportOf(message) != node.report) {
    nothing_new_until_ = kStart;
  }
  node.report = ReportOf(message);
  if (!node.report.peer.empty()) node.peer = node.report.peer;
  if (const auto* beat = std::get_if<NodeBeat>(&message.what)) {
    Measure(node, *beat, now);
  }
  if (!leading_) return;
  if (node.report.term < kept_.term) return Send(message.node, message.who, Welcome());
  std::erase_if(node.in_force,
                [&](const FleetSlice& each) { return each.id < node.report.committed; });
  const bool known = std::ranges::any_of(
      node.in_force, [&](const FleetSlice& each) { return each.id == node.report.committed; });
  if (!known) return Send(message.node, message.who, GreetOrder{});
  if (rollout_) rollout_->Report(message.node, node.report, now);
  TellPeers(message.node, message.who, now);
  const PlanId prepared = node.report.prepared;
  if (!prepared.none() && (!rollout_ || prepared != rollout_->plan().id)) {
    Send(message.node, message.who, Abandoning(message.node, prepared, now));
  }
  if (node.report.failing) LeaveOut(message.node, node.report.trouble, now);
}

std::vector<PeerPlace> FleetLeader::PeersOf(const std::string& name) const {
  std::set<std::string> targets;
  for (const FleetSlice& slice : nodes_.at(name).in_force) {
    for (const SliceRoute& route : slice.routes) {
      for (const RouteTarget& to : route.to) targets.insert(to.node);
    }
  }
  std::vector<PeerPlace> peers;
  for (const std::string& each : targets) {
    const auto target = nodes_.find(each);
    if (target == nodes_.end() || target->second.peer.empty()) continue;
    peers.push_back({each, target->second.peer});
  }
  return peers;
}

void FleetLeader::TellPeers(const std::string& name, const Incarnation& who, TimePoint now) {
  Node& node = nodes_.at(name);
  if (now < node.told_peers + options_.rollout.resend && node.told_peers != kStart) return;
  std::vector<PeerPlace> peers = PeersOf(name);
  if (peers.empty() || SumOf(peers) == node.report.peers) return;
  node.told_peers = now;
  Send(name, who, PeersOrder{std::move(peers)});
}

void FleetLeader::LeaveOut(const std::string& name, const std::string& why, TimePoint now) {
  Node& node = nodes_.at(name);
  node.left_out_why = why;
  if (now < node.left_out_until) return;
  constexpr int kMostDoublings = 4;
  node.left_out_until = now + options_.refused_for * (1 << std::min(node.refusals, kMostDoublings));
  ++node.refusals;
}

void FleetLeader::Lead(TimePoint now) {
  kept_.term = options_.term != 0 ? options_.term : std::max(kept_.term, seen_term_) + 1;
  leading_ = true;
  since_ = now;
  if (seen_term_ > kept_.term) {
    superseded_ = "a node obeys a leader of term " + std::to_string(seen_term_) +
                  ", and this one's is " + std::to_string(kept_.term);
    kept_.term = seen_term_;
    return;
  }
  if (history_ != nullptr) history_->OnLead(now, kept_.term);
  for (const auto& [name, member] : membership_.members()) {
    if (member.present()) Send(name, member.who, Welcome());
  }
}

void FleetLeader::Watch(TimePoint now) {
  for (const Membership::Change& change : membership_.Step(now)) {
    if (history_ != nullptr) history_->OnStanding(now, change.node, change.to);
    if (change.to == Standing::kDead && rollout_) {
      rollout_->Gone(change.node,
                     "it has not been heard of for " +
                         std::to_string(options_.membership.dead_after / std::chrono::seconds(1)) +
                         " s");
    }
  }
}

void FleetLeader::Ended(TimePoint now) {
  if (ended_ || !rollout_->over()) return;
  ended_ = true;
  const PlanId id = rollout_->plan().id;
  if (history_ != nullptr && !(known_adopted_ && rollout_->adopted())) {
    const std::string why = rollout_->culprit() + ": " + rollout_->why();
    history_->OnRollout(now, id, rollout_->adopted(), rollout_->adopted() ? "" : why);
  }
  if (rollout_->adopted()) {
    serving_ = id;
    problem_.clear();
    scaled_from_.reset();
    for (const auto& [name, slice] : rollout_->plan().slices) nodes_.at(name).refusals = 0;
    return;
  }
  const std::string& culprit = rollout_->culprit();
  problem_ = "plan " + std::to_string(id.epoch) + " was abandoned: node '" + culprit +
             "': " + rollout_->why();
  const bool here = membership_.members().at(culprit).present();
  if (scaled_from_ && here) {  // what they serve is good until the next plan
    current_ = std::exchange(scaled_from_, std::nullopt);
    next_scaling_ = next_period_;
    return;
  }
  retry_ = true;
  not_before_ = now + options_.rollout.resend;
  current_.reset();
  if (here) LeaveOut(culprit, rollout_->why(), now);
}

void FleetLeader::Roll(TimePoint now) {
  if (!rollout_ || (ended_ && rollout_->phase() == Rollout::Phase::kDone)) return;
  for (Rollout::Order& order : rollout_->Step(now, HoldBack(now), RoutedTo(now, false))) {
    if (const auto* abandon = std::get_if<AbandonOrder>(&order.what)) {
      order.what = Abandoning(order.node, abandon->id, now);
    }
    if (auto* const commit = std::get_if<CommitOrder>(&order.what)) {
      std::vector<FleetSlice>& in_force = nodes_.at(order.node).in_force;
      const FleetSlice& slice = rollout_->plan().slices.at(order.node);
      const auto same = [&](const FleetSlice& each) { return each.id == slice.id; };
      if (std::ranges::none_of(in_force, same)) in_force.push_back(slice);
      commit->peers = PeersOf(order.node);
    }
    Send(order.node, membership_.members().at(order.node).who, std::move(order.what));
  }
  Ended(now);
}

void FleetLeader::Step(TimePoint now) {
  if (superseded() || now < nothing_new_until_) return;
  Work(now);
  const bool rests = planned_ && (!rollout_ || (ended_ && rollout_->over()));
  if (!rests) {
    nothing_new_until_ = kStart;
    return;
  }
  next_at_rest_ = WhenDue();
  nothing_new_until_ = std::min(next_at_rest_, now + kLookWithoutNews);
}

TimePoint FleetLeader::Next() const {
  if (superseded()) return kNever;
  return nothing_new_until_ == kStart ? WhenDue() : next_at_rest_;
}

void FleetLeader::Work(TimePoint now) {
  Watch(now);
  if (!leading_) {
    const bool all = std::ranges::all_of(membership_.members(),
                                         [](const auto& each) { return each.second.present(); });
    if (!all && now < since_ + options_.settle) return;
    Lead(now);
    if (superseded()) return;
  }
  Roll(now);
  if (rollout_ && !rollout_->over()) return;
  LookAtLinks(now);
  const std::set<std::string> participants = Participants(now);
  if (WantsPlan(now, participants)) {
    if (!TakeUp(now, participants)) MakePlan(now, participants);
  } else if (participants != planned_for_ || !Scale(now)) {
    return;
  }
  Roll(now);
}

LeaderActions FleetLeader::Take() {
  LeaderActions actions;
  if (confirmed_ != kept_) actions.keep = kept_;
  actions.send.swap(outgoing_);
  return actions;
}

}  // namespace tactus
