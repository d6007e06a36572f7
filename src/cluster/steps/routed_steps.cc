#include "cluster/steps/routed_steps.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/steps/routed_steps_body.h"

namespace tactus {
std::optional<std::size_t> StepRoute::Next(const std::vector<bool>& tried) {
  const TimePoint now = NowOf();
  const std::scoped_lock lock(mutex);
  const auto there = choice.Next([&](std::size_t i) {
    if (tried[i]) return false;
    PeerNode* const peer = targets[i].peer.get();
    if (peer == nullptr) return targets[i].here;
    const std::scoped_lock held(peer->mutex);
    return !peer->standing.away(now);
  });
  return there ? there : choice.Next([&](std::size_t i) { return !tried[i]; });
}

StepRoute* RoutedSteps::Body::Find(const StepRoutes& routes, const StepName& step,
                                   const std::string& model) {
  StepRoute* of_model = nullptr;
  int of_this_model = 0;
  for (const auto& each : routes) {
    if (each->pipeline != step.pipeline) continue;
    if (each->stage == step.step) return each.get();
    if (each->model != model) continue;
    of_model = each.get();
    ++of_this_model;
  }
  return of_this_model == 1 ? of_model : nullptr;
}

RoutedSteps::Body::~Body() {
  learning.request_stop();
  learning.join();
  std::vector<std::shared_ptr<SentStep>> all;
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [id, sent] : calls) all.push_back(sent);
  }
  for (const auto& sent : all) {
    std::function<void()> stop;
    {
      const std::scoped_lock lock(sent->mutex);
      sent->cancelled = true;
      stop = sent->stop;
    }
    if (stop) stop();
  }
  all.clear();
  std::unique_lock lock(mutex);
  none.wait(lock, [this] { return underway == 0; });
}

std::shared_ptr<PeerNode> RoutedSteps::Body::PeerAt(const WorkerTarget& target) {
  std::weak_ptr<PeerNode>& known = peers[{target.node, target.address}];
  if (auto peer = known.lock()) return peer;
  auto peer = std::make_shared<PeerNode>();
  peer->node = target.node;
  peer->address = target.address;
  peer->peer = options.connect(target.node, target.address);
  known = peer;
  return peer;
}

void RoutedSteps::Follow(const WorkerRoutes& told) {
  auto routes = std::make_shared<StepRoutes>();
  const std::scoped_lock lock(body_->mutex);
  for (const WorkerRoute& each : told.routes) {
    std::vector<StepTarget> targets;
    std::vector<double> weights;
    bool elsewhere = false;
    double total = 0;
    for (const WorkerTarget& to : each.to) total += to.weight;
    for (const WorkerTarget& to : each.to) {
      StepTarget target{.node = to.node,
                        .here = to.here,
                        .share = total > 0 ? to.weight / total : 0,
                        .peer = nullptr};
      if (!to.here && !to.address.empty()) target.peer = body_->PeerAt(to);
      elsewhere = elsewhere || target.peer != nullptr;
      targets.push_back(std::move(target));
      weights.push_back(to.weight);
    }
    if (elsewhere) body_->unknown.try_emplace(each.model, "its node was not asked yet");
    routes->push_back(std::make_unique<StepRoute>(each, std::move(targets), std::move(weights)));
  }
  body_->routes = std::move(routes);
  ++body_->followed;
  std::erase_if(body_->peers, [](const auto& each) { return each.second.expired(); });
  body_->asked.notify_all();
}

RoutedSteps::RoutedSteps(InferenceService& local, Options options)
    : ForwardingService(local), body_(std::make_unique<Body>(local, std::move(options))) {}

RoutedSteps::~RoutedSteps() = default;

std::size_t RoutedSteps::underway() const {
  const std::scoped_lock lock(body_->mutex);
  return body_->underway;
}

Expected<std::shared_ptr<const ModelSpec>> RoutedSteps::Find(std::string_view model,
                                                             std::int64_t version) const {
  auto here = next().Find(model, version);
  if (here || version >= 0) return here;
  return FindElsewhere(model, here.error());
}

Status RoutedSteps::ModelReady(std::string_view model, std::int64_t version) const {
  Status here = next().ModelReady(model, version);
  if (here || version >= 0) return here;
  const auto there = FindElsewhere(model, here.error());
  return there ? body_->Answered(model) : std::unexpected(there.error());
}

Status RoutedSteps::Body::Answered(std::string_view model) const {
  for (const auto& route : *Now()) {
    if (route->model != model) continue;
    std::string silent;
    for (const StepTarget& to : route->targets) {
      if (to.peer == nullptr) continue;
      const std::scoped_lock lock(to.peer->mutex);
      if (!to.peer->standing.failed()) {
        silent.clear();
        break;
      }
      silent += (silent.empty() ? "" : ", ") + to.peer->text();
    }
    if (silent.empty()) continue;
    return Fail(ErrorCode::kUnavailable,
                fmt::format("model '{}' runs on {}, which does not answer", model, silent));
  }
  return {};
}

Expected<std::shared_ptr<const ModelSpec>> RoutedSteps::FindElsewhere(std::string_view model,
                                                                      const Error& here) const {
  const std::scoped_lock lock(body_->mutex);
  std::string nodes;
  bool routed = false;
  for (const auto& route : *body_->routes) {
    if (route->model != model) continue;
    routed = true;
    for (const StepTarget& to : route->targets) {
      if (to.peer != nullptr) nodes += (nodes.empty() ? "" : ", ") + to.node;
    }
  }
  if (!routed || nodes.empty()) return std::unexpected(here);
  if (const auto known = body_->specs.find(model); known != body_->specs.end()) {
    return known->second;
  }
  const auto why = body_->unknown.find(model);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("model '{}' runs on {}, and its inputs and outputs are not known yet: {}",
                          model, nodes, why == body_->unknown.end() ? "asked" : why->second));
}

std::shared_ptr<SentStep> RoutedSteps::Body::Hold(InferCall&& call,
                                                  std::shared_ptr<const StepRoutes> by,
                                                  StepRoute* route, std::vector<bool> tried) {
  auto sent = std::make_shared<SentStep>();
  sent->reply = std::move(call.reply);
  sent->whole = call.limit.shortest().value_or(kNoLimit);
  sent->due = call.received + sent->whole;
  sent->call = std::move(call);
  sent->routes = std::move(by);
  sent->route = route;
  sent->tried = std::move(tried);
  const std::scoped_lock lock(mutex);
  sent->id = (next++ << 32) | kAtPeers;
  calls[sent->id] = sent;
  ++underway;
  return sent;
}

CallId RoutedSteps::Infer(InferCall&& call) {
  const auto routes = body_->Now();
  if (call.group != nullptr) {
    StepRoute* const of_all = Body::Find(*routes, *call.group);
    std::vector<bool> none_tried(of_all != nullptr ? of_all->targets.size() : 0);
    const auto sent = body_->Hold(std::move(call), routes, of_all, std::move(none_tried));
    const CallId id = sent->id;
    body_->TryGroup(sent);
    return id;
  }
  StepRoute* const route = call.step ? Body::Find(*routes, *call.step, call.model->name) : nullptr;
  std::vector<bool> tried(route != nullptr ? route->targets.size() : 0);
  const auto first = route != nullptr ? route->Next(tried) : std::nullopt;
  if (!first || route->targets[*first].here) {
    if (auto model = next().Find(call.model->name, -1)) {
      call.model = *std::move(model);
      return next().Infer(std::move(call));
    }
  }
  const auto sent = body_->Hold(std::move(call), routes, route, std::move(tried));
  const CallId id = sent->id;
  if (first && !route->targets[*first].here) {
    sent->tried[*first] = true;
    body_->TryPeer(sent, route->targets[*first].peer);
  } else {
    if (first) {
      sent->tried[*first] = true;
      sent->failures =
          fmt::format("{} (here): the model is not loaded", route->targets[*first].node);
    }
    body_->Try(sent);
  }
  return id;
}

// The next target, until one has the call or none is left.
void RoutedSteps::Body::Try(const std::shared_ptr<SentStep>& sent) {
  const auto note = [&](const std::string& what) {
    sent->failures += (sent->failures.empty() ? "" : "; ") + what;
  };
  if (sent->call.group != nullptr) return TryGroup(sent);
  while (sent->route != nullptr && sent->left() > Duration{}) {
    const auto next = sent->route->Next(sent->tried);
    if (!next) break;
    sent->tried[*next] = true;
    const StepTarget& target = sent->route->targets[*next];
    if (!target.here) return TryPeer(sent, target.peer);
    if (TryHere(sent)) return;
    note(target.node + " (here): the model is not loaded");
  }
  if (sent->route == nullptr) note("the plan has no route for it, and it is not loaded here");
  GiveUp(sent);
}

void RoutedSteps::Body::GiveUp(const std::shared_ptr<SentStep>& sent) {
  const Duration left = std::max(sent->left(), Duration{});
  const bool late = left == Duration{};
  Finish(sent, ErrorReply(sent->call, late ? ErrorCode::kDeadlineExceeded : ErrorCode::kUnavailable,
                          fmt::format("no node runs model '{}' for it: {}; {:.3f} ms of the step's "
                                      "{:.3f} ms were left",
                                      sent->call.model->name, sent->failures, ToMillis(left),
                                      ToMillis(sent->whole))));
}

bool RoutedSteps::Body::TryHere(const std::shared_ptr<SentStep>& sent) {
  auto model = local.Find(sent->call.model->name, -1);
  if (!model) return false;
  InferCall here = std::move(sent->call);
  here.model = *std::move(model);
  sent->call = InferCall{};
  here.reply = [this, sent](InferReply&& reply) { Finish(sent, std::move(reply)); };
  const CallId id = local.Infer(std::move(here));
  bool cancelled = false;
  {
    const std::scoped_lock lock(sent->mutex);
    sent->local = id;
    cancelled = sent->cancelled;
  }
  if (cancelled) local.Cancel(id);
  return true;
}

void RoutedSteps::Body::TryPeer(const std::shared_ptr<SentStep>& sent,
                                const std::shared_ptr<PeerNode>& peer) {
  if (peer == nullptr) {
    sent->failures += sent->failures.empty() ? "" : "; ";
    sent->failures += "a node whose address is not known yet";
    return Try(sent);
  }
  const std::size_t attempt = ++sent->attempt;
  sent->sent_at = NowOf();
  auto stop = peer->peer->Send(sent->call, sent->left(), [this, sent, peer](PeerEnd&& end) {
    Done(sent, peer, std::move(end));
  });
  {
    const std::scoped_lock lock(sent->mutex);
    if (sent->stops > attempt) return;  // it has ended meanwhile, and is at another peer
    sent->stops = attempt;
    sent->stop = stop;
    if (!sent->cancelled) return;
  }
  stop();
}

std::vector<MeasuredLink> RoutedSteps::MeasureLinks() {
  std::map<std::string, std::shared_ptr<PeerNode>> peers;
  for (const auto& route : *body_->Now()) {
    for (const StepTarget& to : route->targets) {
      if (to.peer != nullptr) peers[to.node] = to.peer;
    }
  }
  std::vector<MeasuredLink> links;
  for (const auto& [node, peer] : peers) {
    const TimePoint begun = NowOf();
    const Status there = peer->peer->Probe();
    const TimePoint ended = NowOf();
    PeerEnd end{.reply = InferReply{}};
    if (!there) end = {.reply = std::unexpected(there.error()), .away = true};
    body_->Judge(*peer, end);
    const std::scoped_lock lock(peer->mutex);
    if (there) peer->link.AddProbe(ended, ended - begun);
    const LinkReading reading = peer->link.Read(ended);
    if (reading != LinkReading{}) links.push_back({node, reading});
  }
  return links;
}

void RoutedSteps::Body::Judge(PeerNode& peer, const PeerEnd& end) const {
  const TimePoint now = NowOf();
  bool news = false;
  bool back = false;
  {
    const std::scoped_lock lock(peer.mutex);
    if (end.away) {
      news = peer.standing.Failed(now);
    } else if (end.reply || end.elsewhere) {
      news = back = peer.standing.Answered();
    } else if (end.reply.error().code == ErrorCode::kDeadlineExceeded) {
      news = peer.standing.Expired(now);
    } else if (end.reply.error().code != ErrorCode::kCancelled) {
      news = back = peer.standing.Answered();
    }
  }
  if (!news) return;
  Say(peer.text() + (back ? " answers again" : " does not answer: " + end.reply.error().message));
}

void RoutedSteps::Body::Done(const std::shared_ptr<SentStep>& sent,
                             const std::shared_ptr<PeerNode>& peer, PeerEnd&& end) {
  Judge(*peer, end);
  Count(*sent, *peer, end);
  if (end.reply) {
    std::uint64_t bytes = end.bytes;
    for (const InputTensor& each : sent->call.inputs) bytes += each.data.size();
    const ServedBy& served = end.reply->served;
    const TimePoint now = NowOf();
    const Duration there = Micros(served.queue_us) + Micros(served.execution_us);
    const std::scoped_lock lock(peer->mutex);
    peer->link.AddCall(now, bytes, now - sent->sent_at - there);
  }
  bool cancelled = false;
  {
    const std::scoped_lock lock(sent->mutex);
    cancelled = sent->cancelled;
  }
  if (end.reply && !cancelled) return Finish(sent, *std::move(end.reply));
  if (cancelled) {
    return Finish(sent, ErrorReply(sent->call, ErrorCode::kCancelled, "nobody waits for it"));
  }
  if (IsAlone(*sent, *peer, end)) return RunGroup(sent, StepGroup::Where::kByRoutes);
  const std::string said = peer->text() + ": " + end.reply.error().message;
  if (!end.elsewhere) return Finish(sent, ErrorReply(sent->call, end.reply.error().code, said));
  sent->failures += (sent->failures.empty() ? "" : "; ") + said;
  Try(sent);
}

void RoutedSteps::Body::Finish(const std::shared_ptr<SentStep>& sent, InferReply&& reply) {
  const auto answer = std::move(sent->reply);
  {
    const std::scoped_lock lock(mutex);
    calls.erase(sent->id);
  }
  sent->call = InferCall{};
  sent->routes.reset();
  answer(std::move(reply));
  const std::scoped_lock lock(mutex);
  if (--underway == 0) none.notify_all();
}

void RoutedSteps::Cancel(CallId call) {
  if ((call & kAtPeers) == 0) return next().Cancel(call);
  std::shared_ptr<SentStep> sent;
  {
    const std::scoped_lock lock(body_->mutex);
    const auto found = body_->calls.find(call);
    if (found == body_->calls.end()) return;
    sent = found->second;
  }
  CallId here = 0;
  std::function<void()> stop;
  {
    const std::scoped_lock lock(sent->mutex);
    sent->cancelled = true;
    stop = sent->stop;
    here = sent->local;
  }
  if (stop) stop();
  if (here != 0) next().Cancel(here);
}

}  // namespace tactus
