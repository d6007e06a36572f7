#include "cluster/steps/routed_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "cluster/steps/peer_message.h"
#include "cluster/steps/routed_steps_body.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

// Ids of calls that this service holds: what is passed on keeps that of the local one, which leaves
// the bit free.
constexpr CallId kAtPeers = CallId{1} << 30;
constexpr int kMostMessage = 1 << 30;
constexpr Duration kNoLimit = Seconds(60);

TimePoint NowOf() {
  return TimePoint{std::chrono::duration_cast<Duration>(Clock::now().time_since_epoch())};
}

ErrorCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::kNotFound;
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::kCancelled;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kDeadlineExceeded;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::UNAVAILABLE:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

// It is out of reach, has unloaded the model or has no room: another may serve the call.
bool RunsElsewhere(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::NOT_FOUND ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

InferReply ErrorReply(const InferCall& call, ErrorCode code, std::string why) {
  InferReply reply;
  reply.status = Fail(code, std::move(why));
  reply.served.outcome = Outcome::kError;
  if (code == ErrorCode::kDeadlineExceeded) reply.served.outcome = Outcome::kExpired;
  if (code == ErrorCode::kCancelled) reply.served.outcome = Outcome::kCancelled;
  if (code == ErrorCode::kUnavailable || code == ErrorCode::kResourceExhausted) {
    reply.served.outcome = Outcome::kShed;
  }
  reply.model = call.model;
  return reply;
}

}  // namespace

std::optional<std::size_t> StepRoute::Next(const std::vector<bool>& tried) {
  const TimePoint now = NowOf();
  const std::scoped_lock lock(mutex);
  const auto there = choice.Next([&](std::size_t i) {
    if (tried[i]) return false;
    Peer* const peer = targets[i].peer.get();
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
    const std::scoped_lock lock(sent->mutex);
    sent->cancelled = true;
    if (sent->context != nullptr) sent->context->TryCancel();
  }
  all.clear();
  std::unique_lock lock(mutex);
  none.wait(lock, [this] { return underway == 0; });
}

std::shared_ptr<Peer> RoutedSteps::Body::PeerAt(const WorkerTarget& target) {
  std::weak_ptr<Peer>& known = peers[{target.node, target.address}];
  if (auto peer = known.lock()) return peer;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetMaxReceiveMessageSize(kMostMessage);
  arguments.SetMaxSendMessageSize(kMostMessage);
  auto peer = std::make_shared<Peer>();
  peer->node = target.node;
  peer->address = target.address;
  peer->stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(target.address, options.tls.Towards(target.node), arguments));
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
    for (const WorkerTarget& to : each.to) {
      StepTarget target{.node = to.node, .here = to.here, .peer = nullptr};
      if (!to.here && !to.address.empty()) target.peer = body_->PeerAt(to);
      elsewhere = elsewhere || target.peer != nullptr;
      targets.push_back(std::move(target));
      weights.push_back(to.weight);
    }
    if (elsewhere) body_->unknown.try_emplace(each.model, "its node was not asked yet");
    routes->push_back(std::make_unique<StepRoute>(each, std::move(targets), std::move(weights)));
  }
  body_->routes = std::move(routes);
  std::erase_if(body_->peers, [](const auto& each) { return each.second.expired(); });
  body_->asked.notify_all();
}

RoutedSteps::RoutedSteps(InferenceService& local, Options options)
    : local_(local), body_(std::make_unique<Body>(local, std::move(options))) {}

RoutedSteps::~RoutedSteps() = default;

std::size_t RoutedSteps::underway() const {
  const std::scoped_lock lock(body_->mutex);
  return body_->underway;
}

Expected<std::shared_ptr<const ModelSpec>> RoutedSteps::Find(std::string_view model,
                                                             std::int64_t version) const {
  auto here = local_.Find(model, version);
  if (here || version >= 0) return here;
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
  if (!routed || nodes.empty()) return here;
  if (const auto known = body_->specs.find(model); known != body_->specs.end()) {
    return known->second;
  }
  const auto why = body_->unknown.find(model);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("model '{}' runs on {}, and what it looks like is not known yet: {}",
                          model, nodes, why == body_->unknown.end() ? "asked" : why->second));
}

CallId RoutedSteps::Infer(InferCall&& call) {
  const auto routes = body_->Now();
  StepRoute* const route = call.step ? Body::Find(*routes, *call.step, call.model->name) : nullptr;
  std::vector<bool> tried(route != nullptr ? route->targets.size() : 0);
  const auto first = route != nullptr ? route->Next(tried) : std::nullopt;
  if (!first || route->targets[*first].here) {
    if (auto model = local_.Find(call.model->name, -1)) {
      call.model = *std::move(model);
      return local_.Infer(std::move(call));
    }
  }
  auto sent = std::make_shared<SentStep>();
  sent->reply = std::move(call.reply);
  sent->whole = call.limit.shortest().value_or(kNoLimit);
  sent->due = call.received + sent->whole;
  sent->call = std::move(call);
  sent->routes = routes;
  sent->route = route;
  sent->tried = std::move(tried);
  {
    const std::scoped_lock lock(body_->mutex);
    sent->id = (body_->next++ << 32) | kAtPeers;
    body_->calls[sent->id] = sent;
    ++body_->underway;
  }
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
                                const std::shared_ptr<Peer>& peer) {
  if (peer == nullptr) {
    sent->failures += sent->failures.empty() ? "" : "; ";
    sent->failures += "a node of which nobody has said yet where it is";
    return Try(sent);
  }
  const Duration left = sent->left();
  if (!std::exchange(sent->filled, true)) Put(sent->call, sent->request);
  Restate(left, sent->request);
  auto context = std::make_shared<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + left);
  auto response = std::make_shared<inference::ModelInferResponse>();
  {
    const std::scoped_lock lock(sent->mutex);
    sent->context = context;
    if (sent->cancelled) context->TryCancel();
  }
  peer->stub->async()->ModelInfer(context.get(), &sent->request, response.get(),
                                  [this, sent, peer, response, context](grpc::Status status) {
                                    Done(sent, peer, response, status);
                                  });
}

void RoutedSteps::Body::Judge(Peer& peer, const grpc::Status& status) const {
  const TimePoint now = NowOf();
  bool news = false;
  bool back = false;
  {
    const std::scoped_lock lock(peer.mutex);
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
        news = peer.standing.Failed(now);
        break;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        news = peer.standing.Expired(now);
        break;
      case grpc::StatusCode::CANCELLED:
        break;
      default:
        news = back = peer.standing.Answered();
    }
  }
  if (!news) return;
  Say(back ? fmt::format("node '{}' at {} answers again", peer.node, peer.address)
           : fmt::format("node '{}' at {} does not answer: {}", peer.node, peer.address,
                         status.error_message()));
}

void RoutedSteps::Body::Done(const std::shared_ptr<SentStep>& sent,
                             const std::shared_ptr<Peer>& peer,
                             const std::shared_ptr<inference::ModelInferResponse>& response,
                             const grpc::Status& status) {
  Judge(*peer, status);
  bool cancelled = false;
  {
    const std::scoped_lock lock(sent->mutex);
    sent->context.reset();
    cancelled = sent->cancelled;
  }
  const std::string said =
      fmt::format("node '{}' at {}: {}", peer->node, peer->address, status.error_message());
  if (cancelled) {
    return Finish(sent, ErrorReply(sent->call, ErrorCode::kCancelled, "nobody waits for it"));
  }
  if (!status.ok() && RunsElsewhere(status.error_code())) {
    sent->failures += (sent->failures.empty() ? "" : "; ") + said;
    return Try(sent);
  }
  if (!status.ok()) {
    return Finish(sent, ErrorReply(sent->call, CodeOf(status.error_code()), said));
  }
  auto reply = ReplyOf(sent->call, response);
  if (!reply) {
    return Finish(sent, ErrorReply(sent->call, reply.error().code,
                                   fmt::format("node '{}' at {}: {}", peer->node, peer->address,
                                               reply.error().message)));
  }
  Finish(sent, *std::move(reply));
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
  if ((call & kAtPeers) == 0) return local_.Cancel(call);
  std::shared_ptr<SentStep> sent;
  {
    const std::scoped_lock lock(body_->mutex);
    const auto found = body_->calls.find(call);
    if (found == body_->calls.end()) return;
    sent = found->second;
  }
  CallId here = 0;
  {
    const std::scoped_lock lock(sent->mutex);
    sent->cancelled = true;
    if (sent->context != nullptr) sent->context->TryCancel();
    here = sent->local;
  }
  if (here != 0) local_.Cancel(here);
}

}  // namespace tactus
