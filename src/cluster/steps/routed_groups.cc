// Steps that are one call, and what calls at other nodes came to.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cluster/steps/routed_steps_body.h"

namespace tactus {
namespace {

// One of an earlier version is asked again so often: it may have been replaced at its address.
constexpr Duration kAskAgainWhetherAlone = Seconds(10);

bool Alike(const StepRoute& a, const StepRoute& b) {
  return std::ranges::equal(a.targets, b.targets, [](const StepTarget& x, const StepTarget& y) {
    return x.node == y.node && x.here == y.here && x.peer == y.peer && x.share == y.share;
  });
}

}  // namespace

StepRoute* RoutedSteps::Body::Find(const StepRoutes& routes, const StepGroup& group) {
  StepRoute* first = nullptr;
  for (const StepGroup::Step& step : group.steps) {
    StepRoute* const route = Find(routes, {group.pipeline, step.name}, step.model);
    if (route == nullptr) return nullptr;
    if (first == nullptr) first = route;
    if (!Alike(*first, *route)) return nullptr;
  }
  return first;
}

std::vector<std::string> RoutedSteps::PlacesOf(std::string_view pipeline,
                                               const std::vector<StepGroup::Step>& steps) const {
  const auto routes = body_->Now();
  std::vector<std::string> places;
  for (const StepGroup::Step& step : steps) {
    std::string& place = places.emplace_back();
    const StepRoute* const route = Body::Find(*routes, {pipeline, step.name}, step.model);
    if (route == nullptr) continue;
    const bool elsewhere = std::ranges::any_of(
        route->targets, [](const StepTarget& to) { return to.peer != nullptr; });
    if (!elsewhere) continue;
    for (const StepTarget& to : route->targets) {
      place +=
          fmt::format("{}@{}*{};", to.node, to.peer == nullptr ? "" : to.peer->address, to.share);
    }
  }
  return places;
}

std::uint64_t RoutedSteps::places_number() const {
  const std::scoped_lock lock(body_->mutex);
  return body_->followed;
}

// As one to the next target, until one has them; one by one where the routes differ by now, or the
// target does not know such calls.
void RoutedSteps::Body::TryGroup(const std::shared_ptr<SentStep>& sent) {
  if (sent->route == nullptr) return RunGroup(sent, StepGroup::Where::kByRoutes);
  while (sent->left() > Duration{}) {
    const auto next = sent->route->Next(sent->tried);
    if (!next) break;
    sent->tried[*next] = true;
    const StepTarget& target = sent->route->targets[*next];
    if (target.here) {
      const bool loaded = std::ranges::all_of(
          sent->call.group->steps,
          [&](const StepGroup::Step& step) { return local.Find(step.model, -1).has_value(); });
      if (loaded) return RunGroup(sent, StepGroup::Where::kHere);
      sent->failures += fmt::format("{}{} (here): a model is not loaded",
                                    sent->failures.empty() ? "" : "; ", target.node);
      continue;
    }
    if (target.peer != nullptr) {
      const std::scoped_lock lock(target.peer->mutex);
      if (NowOf() < target.peer->alone_until) sent->route = nullptr;
    }
    if (sent->route == nullptr) return RunGroup(sent, StepGroup::Where::kByRoutes);
    return TryPeer(sent, target.peer);
  }
  GiveUp(sent);
}

void RoutedSteps::Body::RunGroup(const std::shared_ptr<SentStep>& sent, StepGroup::Where where) {
  InferCall call = std::move(sent->call);
  sent->call = InferCall{};
  const auto group = std::move(call.group);
  call.group = nullptr;
  call.reply = [this, sent](InferReply&& reply) { Finish(sent, std::move(reply)); };
  const std::size_t attempt = ++sent->attempt;
  auto stop = group->run(std::move(call), where);
  {
    const std::scoped_lock lock(sent->mutex);
    sent->stops = attempt;
    sent->stop = stop;
    if (!sent->cancelled) return;
  }
  stop();
}

bool RoutedSteps::Body::IsAlone(const SentStep& sent, PeerNode& peer, const PeerEnd& end) const {
  if (sent.call.group == nullptr || end.reply) return false;
  const ErrorCode code = end.reply.error().code;
  if (code != ErrorCode::kNotFound && code != ErrorCode::kUnimplemented) return false;
  const std::string& why = end.reply.error().message;
  bool news = false;
  {
    const std::scoped_lock lock(peer.mutex);
    peer.alone_until = NowOf() + kAskAgainWhetherAlone;
    news = std::exchange(peer.why_alone, why) != why;
  }
  if (news) {
    Say(fmt::format("{} takes '{}' by one call for each step: {}", peer.text(),
                    sent.call.model->name, why));
  }
  return true;
}

void RoutedSteps::Body::Count(const SentStep& sent, const PeerNode& peer, const PeerEnd& end) {
  const InferCall& call = sent.call;
  if (!call.step) return;
  const Duration took = NowOf() - sent.sent_at;
  std::uint64_t bytes = call.group != nullptr ? call.group->described.size() : 0;
  for (const InputTensor& each : call.inputs) bytes += each.data.size();
  const std::scoped_lock lock(mutex);
  RemoteStep& counted =
      remote[{std::string(call.step->pipeline), std::string(call.step->step), peer.node}];
  counted.bytes_out += bytes;
  if (!end.reply) {
    ++counted.failed;
    return;
  }
  const ServedBy& served = end.reply->served;
  const Duration there = std::min(took, Micros(served.queue_us) + Micros(served.execution_us));
  ++counted.answered;
  counted.bytes_in += end.bytes;
  counted.there += there;
  counted.link += took - there;
}

std::vector<RemoteStep> RoutedSteps::Remote() const {
  const std::scoped_lock lock(body_->mutex);
  std::vector<RemoteStep> all;
  for (const auto& [key, counted] : body_->remote) {
    RemoteStep& each = all.emplace_back(counted);
    std::tie(each.pipeline, each.step, each.node) = key;
  }
  return all;
}

}  // namespace tactus
