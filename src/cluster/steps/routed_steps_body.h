// What RoutedSteps consists of: its peers and routes, the calls that are at peers, and what is
// known of other nodes' models. For the .cc files of this folder.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/steps/route_choice.h"
#include "cluster/steps/routed_steps.h"

namespace tactus {

// Ids of calls that this service holds: what is passed on keeps that of the local one, which leaves
// the bit free.
inline constexpr CallId kAtPeers = CallId{1} << 30;
inline constexpr Duration kNoLimit = Seconds(60);

inline TimePoint NowOf() {
  return TimePoint{
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

inline InferReply ErrorReply(const InferCall& call, ErrorCode code, std::string why) {
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

struct PeerNode {
  std::string node;
  std::string address;
  std::shared_ptr<Peer> peer;
  std::mutex mutex;
  PeerStanding standing;           // under the mutex
  LinkMeter link;                  // under the mutex
  TimePoint alone_until = kStart;  // it does not know steps as one; under the mutex
  std::string why_alone;           // what it said; under the mutex

  std::string text() const { return "node '" + node + "' at " + address; }
};

struct StepTarget {
  std::string node;
  bool here = false;
  double share = 0;                // of the step's calls
  std::shared_ptr<PeerNode> peer;  // null: here, or nobody has said where it is
};

struct StepRoute {
  StepRoute(const WorkerRoute& told, std::vector<StepTarget> to, std::vector<double> weights)
      : pipeline(told.pipeline),
        stage(told.stage),
        model(told.model),
        targets(std::move(to)),
        choice(std::move(weights)) {}

  // One that was not tried, first of those that are not away.
  std::optional<std::size_t> Next(const std::vector<bool>& tried);

  const std::string pipeline;
  const std::string stage;
  const std::string model;
  const std::vector<StepTarget> targets;
  std::mutex mutex;
  RouteChoice choice;  // under the mutex
};
using StepRoutes = std::vector<std::unique_ptr<StepRoute>>;

// A call that was, or is, at a peer.
struct SentStep {
  InferCall call;
  std::function<void(InferReply&&)> reply;
  CallId id = 0;
  std::shared_ptr<const StepRoutes> routes;  // keeps `route`
  StepRoute* route = nullptr;
  std::chrono::steady_clock::time_point due;
  Duration whole{};  // the step's time
  std::vector<bool> tried;
  std::string failures;
  std::size_t attempt = 0;  // at how many peers it has been
  TimePoint sent_at;        // to the last of them

  std::mutex mutex;            // of what follows
  std::function<void()> stop;  // at its peer; empty: it is at none
  std::size_t stops = 0;       // which attempt that stops
  CallId local = 0;
  bool cancelled = false;

  Duration left() const {
    return std::chrono::duration_cast<Duration>(due - std::chrono::steady_clock::now());
  }
};

struct RoutedSteps::Body {
  Body(InferenceService& runs, Options given) : local(runs), options(std::move(given)) {
    learning = std::jthread([this](const std::stop_token& stop) { Learn(stop); });
  }
  ~Body();

  std::shared_ptr<const StepRoutes> Now() const {
    const std::scoped_lock lock(mutex);
    return routes;
  }
  // The route of the stage that is named as the step, or else of the only stage with that model: a
  // step has its model's name where the fleet's file may say another.
  static StepRoute* Find(const StepRoutes& routes, const StepName& step, const std::string& model);
  // The route of the group's first step, if all its steps have the same; else null.
  static StepRoute* Find(const StepRoutes& routes, const StepGroup& group);
  // Whether each route that sends the model elsewhere has a node that answered when it was last
  // asked.
  Status Answered(std::string_view model) const;
  std::shared_ptr<PeerNode> PeerAt(const WorkerTarget& target);
  void Say(const std::string& line) const {
    if (options.log) options.log(line);
  }

  // A call that this service holds until it is answered.
  std::shared_ptr<SentStep> Hold(InferCall&& call, std::shared_ptr<const StepRoutes> by,
                                 StepRoute* route, std::vector<bool> tried);
  void Try(const std::shared_ptr<SentStep>& sent);
  void TryGroup(const std::shared_ptr<SentStep>& sent);
  void RunGroup(const std::shared_ptr<SentStep>& sent, StepGroup::Where where);
  // Whether the peer said that it does not know such calls, in which case they run one by one.
  bool IsAlone(const SentStep& sent, PeerNode& peer, const PeerEnd& end) const;
  void GiveUp(const std::shared_ptr<SentStep>& sent);
  void Count(const SentStep& sent, const PeerNode& peer, const PeerEnd& end);
  bool TryHere(const std::shared_ptr<SentStep>& sent);
  void TryPeer(const std::shared_ptr<SentStep>& sent, const std::shared_ptr<PeerNode>& peer);
  void Done(const std::shared_ptr<SentStep>& sent, const std::shared_ptr<PeerNode>& peer,
            PeerEnd&& end);
  void Finish(const std::shared_ptr<SentStep>& sent, InferReply&& reply);
  void Judge(PeerNode& peer, const PeerEnd& end) const;
  void Learn(const std::stop_token& stop);

  InferenceService& local;
  const Options options;

  mutable std::mutex mutex;  // of what follows
  std::shared_ptr<const StepRoutes> routes = std::make_shared<const StepRoutes>();
  std::map<std::pair<std::string, std::string>, std::weak_ptr<PeerNode>> peers;  // by node, address
  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> specs;
  std::map<std::string, std::string, std::less<>> unknown;  // models to ask for, and why not known
  std::unordered_map<CallId, std::shared_ptr<SentStep>> calls;
  std::map<std::tuple<std::string, std::string, std::string>, RemoteStep> remote;
  std::uint64_t followed = 0;
  std::size_t underway = 0;  // added, and its reply has not returned
  std::uint64_t next = 1;
  std::condition_variable none;
  std::condition_variable_any asked;
  std::jthread learning;  // last: it uses the others
};

}  // namespace tactus
