// Steps that go as one, over peers whose answers the test gives, and over sockets to nodes that
// know such calls or do not. Without this a frame could be lost or doubled between going as one and
// one by one, or stay at a node of an earlier version for ever.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/steps/grpc_peer.h"
#include "cluster/steps/peer_message.h"
#include "cluster/steps/routed_steps.h"
#include "grpc_service.pb.h"
#include "server/grpc/grpc_server.h"
#include "server/grpc/scripted_service_for_test.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec SmallModel(const std::string& name) {
  return {.name = name,
          .inputs = {{"x", DataType::kFp32, {-1, 4}}},
          .outputs = {{"y", DataType::kFp32, {-1, 4}}},
          .exits = {{"1", {}, 0}}};
}

// Keeps what it is sent until the test says how it ends.
class ToldPeer final : public Peer {
 public:
  struct Kept {
    std::string model;
    bool as_one = false;
    std::shared_ptr<std::atomic<bool>> stopped = std::make_shared<std::atomic<bool>>(false);
    std::function<void(PeerEnd&&)> done;
  };
  std::function<void()> Send(const InferCall& call, Duration,
                             std::function<void(PeerEnd&&)> done) override {
    kept.push_back({call.model->name, call.group != nullptr});
    kept.back().done = std::move(done);
    return [stopped = kept.back().stopped] { *stopped = true; };
  }
  Status Probe() override { return {}; }
  Expected<ModelSpec> Describe(const std::string& model) override { return SmallModel(model); }

  void Answer() {
    InferReply reply;
    reply.served = {.outcome = Outcome::kMet, .queue_us = 0, .execution_us = 0};
    End({.reply = std::move(reply), .bytes = 40});
  }
  void Refuse(ErrorCode code, bool away = false) {
    const bool elsewhere =
        away || code == ErrorCode::kNotFound || code == ErrorCode::kResourceExhausted;
    End({.reply = Fail(code, "it said no"), .away = away, .elsewhere = elsewhere});
  }
  void End(PeerEnd&& end) {
    const auto done = std::move(kept.front().done);
    kept.erase(kept.begin());
    done(std::move(end));
  }
  std::vector<Kept> kept;
};

// This node, which has the models that it is told of.
class ThisNode final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    if (!has) return NotFound("Request for unknown model");
    return std::make_shared<const ModelSpec>(SmallModel(std::string(model)));
  }
  CallId Infer(InferCall&& call) override {
    call.reply({.status = NotFound("nothing is here")});
    return 0;
  }
  bool has = false;
};

// RoutedSteps over told peers, and a group of steps "a" and "b" of pipeline "cam".
struct World {
  World() {
    auto made = std::make_shared<StepGroup>();
    made->pipeline = "cam";
    made->steps = {{"a", "ma"}, {"b", "mb"}};
    made->described = "a and b";
    made->run = [this](InferCall&& call, StepGroup::Where where) -> std::function<void()> {
      apart += where == StepGroup::Where::kHere ? "h" : "r";
      EXPECT_EQ(call.group, nullptr) << "else it would go round in circles";
      running.push_back(std::move(call));
      return [this] { ++stopped; };
    };
    group = std::move(made);
  }
  void Route(std::vector<WorkerTarget> a, std::vector<WorkerTarget> b) {
    steps.Follow({{1, 1}, {{"cam", "a", "ma", std::move(a)}, {"cam", "b", "mb", std::move(b)}}});
  }
  void Route(const std::vector<WorkerTarget>& both) { Route(both, both); }
  static WorkerTarget To(const std::string& node, double weight = 1) {
    return {node, node + ":1", weight, false};
  }
  CallId Ask(Duration limit = Seconds(60)) {
    InferCall call;
    call.model = std::make_shared<const ModelSpec>(SmallModel("cam[a+b]"));
    call.inputs = {{"x", DataType::kFp32, {1, 4}, std::as_bytes(std::span(values))}};
    call.received = std::chrono::steady_clock::now();
    call.limit.Tighten(limit);
    call.step = StepName{"cam", "a+b"};
    call.group = group;
    call.reply = [this](InferReply&& reply) { replies.push_back(std::move(reply)); };
    return steps.Infer(std::move(call));
  }
  void FinishRunning() {
    InferCall call = std::move(running.front());
    running.erase(running.begin());
    call.reply(InferReply{});
  }
  ToldPeer& At(const std::string& node) { return *peers.at(node); }

  const std::vector<float> values{1, 2, 3, 4};
  ThisNode here;
  std::map<std::string, std::shared_ptr<ToldPeer>> peers;
  std::string apart;  // how the group was run: h here, r by the steps' routes
  std::vector<InferCall> running;
  int stopped = 0;
  std::vector<InferReply> replies;
  std::shared_ptr<const StepGroup> group;
  RoutedSteps steps{here, {.connect = [this](const std::string& node, const std::string&) {
                      return peers[node] = std::make_shared<ToldPeer>();
                    }}};
};

TEST(RoutedGroups, GoAsOneWhereTheStepsRoutesAreAlike) {
  World world;
  world.Route({World::To("s")});
  world.Ask();
  ASSERT_EQ(world.At("s").kept.size(), 1u);
  EXPECT_TRUE(world.At("s").kept[0].as_one);
  world.At("s").Answer();
  ASSERT_EQ(world.replies.size(), 1u);
  EXPECT_TRUE(world.replies[0].status);
  EXPECT_EQ(world.apart, "");
  EXPECT_EQ(world.steps.underway(), 0u);
}

// A plan that came between the frame's start and this step: the steps go by their own routes.
TEST(RoutedGroups, RunOneByOneWhereRoutesDiffer) {
  World world;
  world.Route({World::To("s")}, {World::To("t")});
  world.Ask();
  world.Route({World::To("s", 2), World::To("t", 1)}, {World::To("s", 1), World::To("t", 2)});
  world.Ask();
  world.steps.Follow({});
  world.Ask();
  EXPECT_EQ(world.apart, "rrr");
  EXPECT_TRUE(world.replies.empty());
  while (!world.running.empty()) world.FinishRunning();
  EXPECT_EQ(world.replies.size(), 3u);
  EXPECT_EQ(world.steps.underway(), 0u);
}

TEST(RoutedGroups, GoWholeToEachTargetByItsWeight) {
  World world;
  world.here.has = true;
  world.Route({World::To("s", 2), World::To("t", 1), {"edge", "", 1, true}},
              {World::To("s", 4), World::To("t", 2), {"edge", "", 2, true}});
  for (int i = 0; i < 8; ++i) world.Ask();
  EXPECT_EQ(world.At("s").kept.size(), 4u);
  EXPECT_EQ(world.At("t").kept.size(), 2u);
  EXPECT_EQ(world.apart, "hh") << "here means all of it";
  while (!world.At("s").kept.empty()) world.At("s").Answer();
  while (!world.At("t").kept.empty()) world.At("t").Answer();
  while (!world.running.empty()) world.FinishRunning();
  EXPECT_EQ(world.replies.size(), 8u);
}

TEST(RoutedGroups, TakeAnotherTargetWhereOneIsAwayAndSayWhoSaidWhat) {
  World world;
  world.Route({World::To("s"), World::To("t"), {"edge", "", 1, true}});
  world.Ask();
  world.At("s").Refuse(ErrorCode::kUnavailable, true);
  ASSERT_EQ(world.At("t").kept.size(), 1u);
  EXPECT_TRUE(world.At("t").kept[0].as_one);
  EXPECT_TRUE(world.replies.empty());
  world.At("t").Refuse(ErrorCode::kResourceExhausted);
  ASSERT_EQ(world.replies.size(), 1u);
  EXPECT_EQ(world.replies[0].status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(world.replies[0].status.error().message,
              AllOf(HasSubstr("no node runs model 'cam[a+b]' for it: node 's' at s:1: it said no"),
                    HasSubstr("node 't' at t:1"), HasSubstr("edge (here): a model is not loaded"),
                    HasSubstr("of the step's 60000.000 ms")));
  EXPECT_EQ(world.apart, "");
}

// An earlier version knows no such call. It is not sent everything twice for every frame.
TEST(RoutedGroups, ANodeThatDoesNotKnowThemGetsStepsOneByOneFromThenOn) {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kUnimplemented}) {
    World world;
    world.Route({World::To("s")});
    world.Ask();
    world.At("s").Refuse(code);
    EXPECT_EQ(world.apart, "r");
    world.Ask();
    EXPECT_EQ(world.apart, "rr");
    EXPECT_TRUE(world.At("s").kept.empty());
    world.FinishRunning();
    world.FinishRunning();
    EXPECT_EQ(world.replies.size(), 2u);
  }
}

TEST(RoutedGroups, AnErrorOfAStepIsTheGroups) {
  World world;
  world.Route({World::To("s")});
  world.Ask();
  world.At("s").Refuse(ErrorCode::kInvalidArgument);
  ASSERT_EQ(world.replies.size(), 1u);
  EXPECT_EQ(world.replies[0].status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(world.replies[0].status.error().message, HasSubstr("node 's' at s:1: it said no"));
}

TEST(RoutedGroups, AreCancelledWhereTheyAre) {
  World world;
  world.Route({World::To("s")});
  const CallId first = world.Ask();
  world.steps.Cancel(first);
  EXPECT_TRUE(*world.At("s").kept[0].stopped);
  // What it says of such calls comes too late: nothing is run one by one.
  world.At("s").Refuse(ErrorCode::kUnimplemented);
  EXPECT_EQ(world.replies.at(0).served.outcome, Outcome::kCancelled);
  const CallId second = world.Ask();
  world.At("s").Refuse(ErrorCode::kUnimplemented);
  world.steps.Cancel(second);
  EXPECT_EQ(world.stopped, 1);
  world.FinishRunning();
  EXPECT_EQ(world.apart, "r");
  EXPECT_EQ(world.replies.size(), 2u);
  EXPECT_EQ(world.steps.underway(), 0u);
}

TEST(RoutedGroups, WhatCrossedIsCountedByStepAndNode) {
  World world;
  world.Route({World::To("s"), World::To("t")});
  world.Ask();
  world.At("s").Refuse(ErrorCode::kUnavailable, true);
  world.At("t").Answer();
  const auto remote = world.steps.Remote();
  ASSERT_EQ(remote.size(), 2u);
  EXPECT_EQ(remote[0].pipeline, "cam");
  EXPECT_EQ(remote[0].step, "a+b");
  EXPECT_EQ(remote[0].node, "s");
  EXPECT_EQ(remote[0].failed, 1u);
  EXPECT_EQ(remote[0].answered, 0u);
  EXPECT_EQ(remote[1].node, "t");
  EXPECT_EQ(remote[1].answered, 1u);
  EXPECT_EQ(remote[1].bytes_out, 16u + 7u) << "the tensor, and what the steps are";
  EXPECT_EQ(remote[1].bytes_in, 40u);
  EXPECT_EQ(remote[1].there, Duration{});
}

TEST(RoutedGroups, PlacesAreTextsOfRoutesThatLeadElsewhere) {
  World world;
  const auto places = [&] { return world.steps.PlacesOf("cam", world.group->steps); };
  EXPECT_THAT(places(), ElementsAre("", ""));
  const std::uint64_t number = world.steps.places_number();
  world.Route({World::To("s", 3)}, {World::To("s", 7)});
  EXPECT_NE(world.steps.places_number(), number);
  EXPECT_EQ(places()[0], places()[1]) << "weights count beside those of other targets";
  EXPECT_NE(places()[0], "");
  world.Route({World::To("s")}, {World::To("s"), World::To("t")});
  EXPECT_NE(places()[0], places()[1]);
  world.Route({{"edge", "", 1, true}});
  EXPECT_THAT(places(), ElementsAre("", ""));
}

TEST(PeerMessage, AGroupSaysWhatItIsAndLeavesTimeForTheWayBack) {
  auto group = std::make_shared<StepGroup>();
  group->described = "{}";
  InferCall call;
  call.model = std::make_shared<const ModelSpec>(SmallModel("cam[a+b]"));
  call.group = group;
  inference::ModelInferRequest out;
  Put(call, Millis(80), out);
  EXPECT_EQ(out.model_name(), "cam[a+b]");
  EXPECT_EQ(out.parameters().at("tactus_enter").string_param(), "{}");
  EXPECT_EQ(out.parameters().at("timeout").int64_param(), 80'000);
  group->leaves_out = true;
  Put(call, Millis(80), out);
  EXPECT_EQ(out.parameters().at("timeout").int64_param(), 70'000);
}

// A node over sockets that has steps run as one.
class Entered final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    return service.Find(model, version);
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    if (described != "a and b") return InferenceService::Enter(described);
    return service.Find("echo", -1);
  }
  CallId Infer(InferCall&& call) override { return service.Infer(std::move(call)); }
  void Cancel(CallId call) override { service.Cancel(call); }
  ScriptedService service;
};

struct Crossing {
  bool takes = true;  // what the port takes
  std::string described = "a and b";
  bool as_one = false;  // whether the call was served there
  int apart = 0;
};

void Cross(Crossing& crossing) {
  Entered there;
  GrpcServer server(GrpcOptions{.port = 0, .takes_entered = crossing.takes}, there);
  const auto port = server.Start();
  ASSERT_TRUE(port);
  ThisNode here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  const WorkerTarget to{"s", "127.0.0.1:" + std::to_string(*port), 1, false};
  steps.Follow({{1, 1}, {{"cam", "a", "ma", {to}}, {"cam", "b", "mb", {to}}}});
  auto group = std::make_shared<StepGroup>();
  group->pipeline = "cam";
  group->steps = {{"a", "ma"}, {"b", "mb"}};
  group->described = crossing.described;
  group->run = [&](InferCall&& call, StepGroup::Where) -> std::function<void()> {
    ++crossing.apart;
    call.reply({.status = NotFound("one by one")});
    return [] {};
  };
  const std::vector<float> values{7, 1, 2, 3};
  std::promise<InferReply> promise;
  InferCall call;
  call.model = std::make_shared<const ModelSpec>(SmallModel("cam[a+b]"));
  call.inputs = {{"x", DataType::kFp32, {1, 4}, std::as_bytes(std::span(values))}};
  call.outputs = {0};
  call.received = std::chrono::steady_clock::now();
  call.limit.Tighten(Seconds(60));
  call.step = StepName{"cam", "a+b"};
  call.group = std::move(group);
  call.reply = [&](InferReply&& reply) { promise.set_value(std::move(reply)); };
  steps.Infer(std::move(call));
  const InferReply reply = promise.get_future().get();
  crossing.as_one = reply.status.has_value();
  if (crossing.as_one) {
    EXPECT_EQ(reply.outputs.at(0).name, "y");
  }
}

TEST(RoutedGroups, CrossSocketsAsOneToWhoKnowsThem) {
  Crossing fine;
  Cross(fine);
  EXPECT_TRUE(fine.as_one);
  EXPECT_EQ(fine.apart, 0);
  Crossing earlier{.takes = false};  // as a server that has never heard of the parameter
  Cross(earlier);
  EXPECT_FALSE(earlier.as_one);
  EXPECT_EQ(earlier.apart, 1);
  Crossing other{.described = "what it cannot read"};
  Cross(other);
  EXPECT_FALSE(other.as_one);
  EXPECT_EQ(other.apart, 1);
}

}  // namespace
}  // namespace tactus
