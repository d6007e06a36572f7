#include "fleet/node_state.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

// Whatever a leader says, its node neither spins nor falls silent.
constexpr Duration kOftenest = Millis(100);
constexpr Duration kSeldomest = Seconds(1);

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

std::map<std::string, std::string> NodeState::WantedDigests() const {
  std::map<std::string, std::string> digests;
  for (const ModelRef& each : kept_.slice.models) digests[each.name] = each.digest;
  if (!prepared_) return digests;
  for (const ModelRef& each : prepared_->models) digests[each.name] = each.digest;
  return digests;
}

std::set<std::string> NodeState::DigestsInUse() const {
  std::set<std::string> digests;
  for (const ModelRef& each : kept_.slice.models) digests.insert(each.digest);
  for (const ModelRef& each : kept_.loaded) digests.insert(each.digest);
  if (!prepared_) return digests;
  for (const ModelRef& each : prepared_->models) digests.insert(each.digest);
  return digests;
}

bool NodeState::IsOwn(const std::string& model) const {
  if (WantedDigests().contains(model)) return false;
  const auto has = [&](const FleetSlice& slice) {
    return std::ranges::find(slice.instances, model, &SliceInstance::model) !=
           slice.instances.end();
  };
  return has(kept_.slice) || (prepared_ && has(*prepared_));
}

bool NodeState::Holds(const std::string& model, const std::string& digest) const {
  const auto found = models_.find(model);
  if (found == models_.end()) return false;
  const Model& held = found->second;
  const auto fits = [&](const std::string& has) { return digest.empty() || has == digest; };
  if (held.hold == Hold::kLoaded && fits(held.digest)) return true;
  return held.serves && fits(*held.serves);
}

bool NodeState::IsPlaced(const ModelRef& ref) const {
  const auto found = placements_.find(ref.name);
  return found != placements_.end() && found->second.place == Place::kPlaced &&
         found->second.digest == ref.digest;
}

bool NodeState::Ready(const FleetSlice& slice) const {
  std::map<std::string, std::string> models;
  for (const SliceInstance& each : slice.instances) models[each.model];
  for (const ModelRef& each : slice.models) {
    const auto model = models.find(each.name);
    if (model != models.end()) model->second = each.digest;
    if (model == models.end() && !IsPlaced(each)) return false;
  }
  return std::ranges::all_of(models,
                             [this](const auto& each) { return Holds(each.first, each.second); });
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
  std::visit(Overloaded{[&](const WelcomeOrder& welcome) {
                          welcomed_ = true;
                          if (welcome.beat_every > Duration::zero()) {
                            options_.beat_every =
                                std::clamp(welcome.beat_every, kOftenest, kSeldomest);
                          }
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
    if (model.hold == Hold::kFailed) model.hold = Hold::kAbsent;  // this plan asks anew
  }
  std::erase_if(placements_, [](const auto& each) { return each.second.place == Place::kFailed; });
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
    const auto known = std::ranges::find(kept_.loaded, model, &ModelRef::name);
    if (known != kept_.loaded.end()) models_[model].digest = known->digest;
    // Loaded by an earlier life for a plan that this one does not know: others may send to it.
    if (!wanted.contains(model)) held.insert(model);
  }
  kept_.held.assign(held.begin(), held.end());
  std::erase_if(kept_.loaded, [this](const ModelRef& each) { return !Holds(each.name); });
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

void NodeState::Placed(const std::string& model) {
  const auto found = placements_.find(model);
  if (found == placements_.end()) return;
  found->second.place = Place::kPlaced;
  answer_ = true;
}

void NodeState::PlaceFailed(const std::string& model, const std::string& why, TimePoint now) {
  const auto found = placements_.find(model);
  if (found == placements_.end()) return;
  answer_ = true;
  if (found->second.stopped) {  // it may be wanted again by now
    placements_.erase(found);
    return;
  }
  found->second.place = Place::kFailed;
  found->second.again = now + options_.load_again;
  found->second.why = why;
}

// Nobody but the worker knows it, and the worker knows no digests.
void NodeState::NoteLoaded(const std::string& name, const std::string& digest) {
  std::erase_if(kept_.loaded, [&](const ModelRef& each) { return each.name == name; });
  if (digest.empty()) return;
  const auto at = std::ranges::lower_bound(kept_.loaded, name, {}, &ModelRef::name);
  kept_.loaded.insert(at, {name, digest});
}

void NodeState::Loaded(const std::string& model) {
  Model& loaded = models_[model];
  loaded.hold = Hold::kLoaded;
  loaded.serves.reset();
  NoteLoaded(model, loaded.digest);
  answer_ = true;
}

void NodeState::LoadFailed(const std::string& model, const std::string& why, TimePoint now) {
  Model& failed = models_[model];
  failed.hold = Hold::kFailed;
  failed.again = now + options_.load_again;
  failed.why = why;
  if (failed.serves) NoteLoaded(model, *failed.serves);  // it serves on
  answer_ = true;
}

void NodeState::Unloaded(const std::string& model) {
  models_[model] = {};
  NoteLoaded(model, {});
  answer_ = true;
}

// Why it is not ready, and will not be by waiting; empty: nothing failed.
std::string NodeState::TroubleOf(const FleetSlice& slice) const {
  std::map<std::string, std::string> digests;
  for (const ModelRef& each : slice.models) {
    digests[each.name] = each.digest;
    const auto placed = placements_.find(each.name);
    const bool failed = placed != placements_.end() && placed->second.place == Place::kFailed &&
                        placed->second.digest == each.digest && !Holds(each.name, each.digest);
    if (failed) return "model '" + each.name + "': " + placed->second.why;
  }
  for (const SliceInstance& each : slice.instances) {
    const auto model = models_.find(each.model);
    if (model == models_.end() || model->second.hold != Hold::kFailed) continue;
    const std::string& digest = digests[each.model];
    if (!digest.empty() && model->second.digest != digest) continue;
    return "model '" + each.model + "': " + model->second.why;
  }
  return "";
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
  report.fetched = fetched_;
  if (const std::string why = prepared_ ? TroubleOf(*prepared_) : ""; !why.empty()) {
    report.refused = prepared_->id;
    report.trouble = why;
  } else if (const std::string here = TroubleOf(kept_.slice); !here.empty()) {
    report.failing = true;
    report.trouble = here;
  }
  return report;
}

// What is to lie in the worker's repository. Of what the worker has already nothing is asked.
void NodeState::Arrange(TimePoint now, NodeActions& actions) {
  const std::map<std::string, std::string> wanted = WantedDigests();
  for (const auto& [name, digest] : wanted) {
    if (Holds(name, digest)) {
      std::erase_if(placements_, [&name](const auto& each) {
        return each.first == name && each.second.place == Place::kFailed;
      });
      continue;
    }
    const auto [at, fresh] = placements_.try_emplace(name, Placement{.digest = digest});
    Placement& placement = at->second;
    const bool other = placement.digest != digest;
    if (placement.place == Place::kPlacing && !fresh) continue;  // one at a time
    const bool again = placement.place == Place::kFailed && now >= placement.again;
    if (!fresh && !other && !again) continue;
    placement = {.digest = digest};
    actions.place.push_back({name, digest});
  }
  for (auto& [name, placement] : placements_) {
    const auto want = wanted.find(name);
    const bool is_wanted = want != wanted.end() && want->second == placement.digest;
    if (is_wanted || placement.place != Place::kPlacing) continue;
    if (!std::exchange(placement.stopped, true)) actions.stop.push_back(name);
  }
  std::erase_if(placements_, [&](const auto& each) {
    return each.second.place != Place::kPlacing && !wanted.contains(each.first);
  });
}

// A model that is wanted by this digest; empty: as it is, or as it lies there.
void NodeState::Bring(const std::string& name, const std::string& digest, TimePoint now,
                      NodeActions& actions) {
  Model& model = models_[name];
  const bool other = !digest.empty() && model.digest != digest;
  if (model.hold == Hold::kLoading || model.hold == Hold::kUnloading) return;
  if (model.hold == Hold::kLoaded && !other) return;
  // What does not load for a plan is refused; what is served is tried again.
  if (model.hold == Hold::kFailed && !other && now < model.again) return;
  if (model.hold == Hold::kLoaded) model.serves = model.digest;
  model.hold = Hold::kAbsent;
  if (model.serves && (digest.empty() || *model.serves == digest)) {
    model.hold = Hold::kLoaded;
    model.digest = *std::exchange(model.serves, std::nullopt);
    return;
  }
  if (!digest.empty() && !IsPlaced({name, digest})) return;
  model.hold = Hold::kLoading;
  model.digest = digest;
  NoteLoaded(name, {});  // until it has ended nobody knows
  actions.load.push_back(name);
}

void NodeState::Reconcile(TimePoint now, NodeActions& actions) {
  if (!up_) return;
  const std::set<std::string> wanted = Wanted();
  const std::map<std::string, std::string> digests = WantedDigests();
  for (const std::string& name : wanted) {
    const auto digest = digests.find(name);
    Bring(name, digest == digests.end() ? "" : digest->second, now, actions);
  }
  std::erase_if(models_, [&](const auto& each) {
    const Model& model = each.second;
    return (model.hold == Hold::kFailed || model.hold == Hold::kAbsent) && !model.serves &&
           !wanted.contains(each.first);
  });
  for (auto& [name, model] : models_) {
    const bool held = model.hold == Hold::kLoaded || (model.serves && model.hold != Hold::kLoading);
    if (!held || model.hold == Hold::kUnloading || wanted.contains(name)) continue;
    model.hold = Hold::kUnloading;
    model.serves.reset();
    actions.unload.push_back(name);
  }
}

NodeActions NodeState::Take(TimePoint now) {
  NodeActions actions;
  Arrange(now, actions);
  Reconcile(now, actions);
  if (confirmed_ != kept_) {
    offered_ = kept_;
    actions.keep = kept_;
  }
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
  for (const auto& [name, placement] : placements_) {
    if (placement.place == Place::kFailed) next = std::min(next, placement.again);
  }
  return next;
}

}  // namespace tactus
