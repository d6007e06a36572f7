#include "fleet/node_state.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

NodeState::NodeState(NodeStateOptions options, NodeKept kept)
    : options_(std::move(options)), kept_(std::move(kept)) {}

std::set<std::string> NodeState::Wanted() const {
  std::set<std::string> wanted(kept_.held.begin(), kept_.held.end());
  for (const SliceInstance& each : kept_.slice.instances) wanted.insert(each.model);
  if (!prepared_) return wanted;
  for (const SliceInstance& each : prepared_->instances) wanted.insert(each.model);
  return wanted;
}

bool NodeState::Holds(const std::string& model) const {
  const auto found = models_.find(model);
  return found != models_.end() && found->second.hold == Hold::kLoaded;
}

bool NodeState::Ready(const FleetSlice& slice) const {
  return std::ranges::all_of(slice.instances,
                             [this](const SliceInstance& each) { return Holds(each.model); });
}

// Its models stay loaded until RETIRE.
void NodeState::HoldModels(const FleetSlice& slice) {
  std::set<std::string> held(kept_.held.begin(), kept_.held.end());
  for (const SliceInstance& each : slice.instances) held.insert(each.model);
  kept_.held.assign(held.begin(), held.end());
}

void NodeState::Receive(const ToNode& order, TimePoint) {
  if (order.node != options_.name || order.to != kept_.who) return;
  answer_ = true;  // also to a leader that is none any more: it sees the later term
  if (order.term < kept_.term) return;
  if (order.term > kept_.term) {
    kept_.term = order.term;
    welcomed_ = false;
  }
  if (order.term != welcomed_by_) welcomed_ = false;
  std::visit(Overloaded{[&](const WelcomeOrder&) {
                          welcomed_ = true;
                          welcomed_by_ = order.term;
                          denied_.clear();
                        },
                        [&](const GreetOrder&) { welcomed_ = false; },
                        [&](const DenyOrder& deny) {
                          denied_ = deny.why;
                          answer_ = false;  // the next beat asks again
                        },
                        [&](const PrepareOrder& prepare) { Prepare(prepare.slice); },
                        [&](const CommitOrder& commit) { Commit(commit); },
                        [&](const PeersOrder& order) { Learn(order.peers); },
                        [&](const RetireOrder& retire) { Retire(retire); },
                        [&](const AbandonOrder& abandon) { Abandon(abandon); }},
             order.what);
}

void NodeState::Prepare(const FleetSlice& slice) {
  if (slice.id <= kept_.slice.id || slice.id <= abandoned_) return;
  if (prepared_ && slice.id <= prepared_->id) return;
  if (prepared_) HoldModels(*prepared_);  // some of it may be routed to
  prepared_ = slice;
  for (const SliceInstance& each : slice.instances) {
    Model& model = models_[each.model];
    if (model.hold == Hold::kFailed) model = {};  // this plan asks anew
  }
}

void NodeState::Commit(const CommitOrder& commit) {
  if (!prepared_ || prepared_->id != commit.id || !Ready(*prepared_)) return;
  HoldModels(kept_.slice);
  kept_.slice = *std::move(prepared_);
  prepared_.reset();
  Learn(commit.peers);
}

// A leader that has just begun may not know all of them: what it does not say still holds.
void NodeState::Learn(const std::vector<PeerPlace>& peers) {
  std::map<std::string, std::string> known;
  for (const PeerPlace& each : kept_.peers) known[each.node] = each.address;
  for (const PeerPlace& each : peers) known[each.node] = each.address;
  std::set<std::string> wanted;
  for (const SliceRoute& route : kept_.slice.routes) {
    for (const RouteTarget& to : route.to) wanted.insert(to.node);
  }
  kept_.peers.clear();
  for (const auto& [node, address] : known) {
    if (wanted.contains(node)) kept_.peers.push_back({node, address});
  }
}

void NodeState::Retire(const RetireOrder& order) {
  if (kept_.slice.id != order.id) return;
  std::erase_if(kept_.held, [&](const std::string& model) {
    return std::ranges::find(order.keep, model) == order.keep.end();
  });
  retired_ = order.id;
}

void NodeState::Abandon(const AbandonOrder& order) {
  abandoned_ = std::max(abandoned_, order.id);
  if (!prepared_ || prepared_->id != order.id) return;
  std::erase_if(prepared_->instances, [&](const SliceInstance& each) {
    return !order.keep_all && std::ranges::find(order.keep, each.model) == order.keep.end();
  });
  HoldModels(*prepared_);
  prepared_.reset();
}

void NodeState::WorkerUp(const std::vector<std::string>& loaded, std::string http, std::string grpc,
                         std::string peer) {
  models_.clear();
  up_ = true;
  failing_ = false;
  down_why_.clear();
  http_ = std::move(http);
  grpc_ = std::move(grpc);
  peer_ = std::move(peer);
  answer_ = true;
  const std::set<std::string> wanted = Wanted();
  std::set<std::string> held(kept_.held.begin(), kept_.held.end());
  std::set<std::string> pipelines;  // its worker serves them by the routes, and nobody loads them
  for (const SliceRoute& route : kept_.slice.routes) pipelines.insert(route.pipeline);
  for (const std::string& model : loaded) {
    if (pipelines.contains(model) && !wanted.contains(model)) continue;
    models_[model].hold = Hold::kLoaded;
    // Loaded by an earlier life for a plan that this one does not know: others may send to it.
    if (!wanted.contains(model)) held.insert(model);
  }
  kept_.held.assign(held.begin(), held.end());
}

void NodeState::WorkerDown(const std::string& why, bool failing) {
  models_.clear();
  up_ = false;
  failing_ = failing;
  down_why_ = why;
  http_.clear();
  grpc_.clear();
  peer_.clear();
  rates_.clear();
  links_.clear();
  answer_ = true;
}

void NodeState::Loaded(const std::string& model) {
  models_[model].hold = Hold::kLoaded;
  answer_ = true;
}

void NodeState::LoadFailed(const std::string& model, const std::string& why, TimePoint now) {
  models_[model] = {Hold::kFailed, now + options_.load_again, why};
  answer_ = true;
}

void NodeState::Unloaded(const std::string& model) {
  models_[model] = {};
  answer_ = true;
}

NodeReport NodeState::Report() const {
  NodeReport report{.term = kept_.term,
                    .committed = kept_.slice.id,
                    .prepared = prepared_ ? prepared_->id : PlanId{},
                    .retired = retired_};
  report.prepared_ready = prepared_ && Ready(*prepared_);
  report.committed_ready = Ready(kept_.slice);
  report.failing = failing_;
  report.old_in_flight = old_in_flight_;
  report.trouble = down_why_;
  report.http = http_;
  report.grpc = grpc_;
  report.peer = peer_;
  report.peers = SumOf(kept_.peers);
  const auto failed = [&](const FleetSlice& slice) {
    for (const SliceInstance& each : slice.instances) {
      const auto model = models_.find(each.model);
      if (model == models_.end() || model->second.hold != Hold::kFailed) continue;
      report.trouble = "model '" + each.model + "': " + model->second.why;
      return true;
    }
    return false;
  };
  if (prepared_ && failed(*prepared_)) {
    report.refused = prepared_->id;
  } else if (failed(kept_.slice)) {
    report.failing = true;
  }
  return report;
}

void NodeState::Reconcile(TimePoint now, NodeActions& actions) {
  if (!up_) return;
  const std::set<std::string> wanted = Wanted();
  for (const std::string& name : wanted) {
    Model& model = models_[name];
    // What does not load for a plan is refused; what is served is tried again.
    const bool again = model.hold == Hold::kFailed && now >= model.again;
    if (model.hold != Hold::kAbsent && !again) continue;
    model.hold = Hold::kLoading;
    actions.load.push_back(name);
  }
  std::erase_if(models_, [&](const auto& each) {
    return each.second.hold == Hold::kFailed && !wanted.contains(each.first);
  });
  for (auto& [name, model] : models_) {
    if (model.hold != Hold::kLoaded || wanted.contains(name)) continue;
    model.hold = Hold::kUnloading;
    actions.unload.push_back(name);
  }
}

NodeActions NodeState::Take(TimePoint now) {
  NodeActions actions;
  if (confirmed_ != kept_) {
    offered_ = kept_;
    actions.keep = kept_;
  }
  Reconcile(now, actions);
  if (!answer_ && now < next_beat_) return actions;
  answer_ = false;
  next_beat_ = now + options_.beat_every;
  FromNode message{options_.name, kept_.who, ++sequence_, {}};
  if (welcomed_) {
    message.what = NodeBeat{Report(), rates_, links_};
  } else {
    message.what = NodeHello{Report(), kept_.slice};
  }
  actions.send.push_back(std::move(message));
  return actions;
}

TimePoint NodeState::Next() const {
  TimePoint next = answer_ ? kStart : next_beat_;
  for (const auto& [name, model] : models_) {
    if (model.hold == Hold::kFailed) next = std::min(next, model.again);
  }
  return next;
}

}  // namespace tactus
