// Steps over real sockets in one process. Without these a call could be answered twice or not at
// all when a peer dies, goes on at a peer that nobody waits for, or go round in circles.
#include "cluster/steps/routed_steps.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/steps/grpc_peer.h"
#include "cluster/steps/peer_message.h"
#include "grpc_service.pb.h"
#include "server/grpc/grpc_server.h"
#include "server/grpc/scripted_service_for_test.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A node: what it serves, and where.
struct Node {
  Node() : server(std::make_unique<GrpcServer>(GrpcOptions{.port = 0}, service)) {
    const auto started = server->Start();
    EXPECT_TRUE(started);
    port = started.value_or(0);
  }
  void Kill() { server->Stop(std::chrono::milliseconds(0)); }
  void Return() {
    server = std::make_unique<GrpcServer>(GrpcOptions{.port = port}, service);
    EXPECT_TRUE(server->Start());
  }
  WorkerTarget target(const std::string& name, double weight = 1) const {
    return {name, "127.0.0.1:" + std::to_string(port), weight, false};
  }
  ScriptedService service;
  std::unique_ptr<GrpcServer> server;
  std::uint16_t port = 0;
};

// A service that has no model.
class Nothing final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return NotFound("Request for unknown model");
  }
  CallId Infer(InferCall&& call) override {
    call.reply({.status = NotFound("nothing is here")});
    return 0;
  }
};

WorkerRoutes To(std::vector<WorkerTarget> targets) {
  return {{1, 1}, {{"cam", "more", "echo", std::move(targets)}}};
}

// Its node has said what the model looks like.
std::shared_ptr<const ModelSpec> Await(const RoutedSteps& steps) {
  for (;;) {
    if (auto found = steps.Find("echo", -1)) return *found;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

struct Asked {
  std::future<InferReply> reply;
  CallId id = 0;
};

Asked Ask(RoutedSteps& steps, const std::shared_ptr<const ModelSpec>& model, float value,
          Duration limit = Seconds(60), bool of_step = true) {
  const auto bytes = std::make_shared<std::vector<float>>(std::vector<float>{value, 1, 2, 3});
  const auto promise = std::make_shared<std::promise<InferReply>>();
  InferCall call;
  call.model = model;
  call.inputs = {{"x", DataType::kFp32, {1, 4}, std::as_bytes(std::span(*bytes))}};
  call.keepalive = bytes;
  call.outputs = {0};
  call.received = std::chrono::steady_clock::now();
  call.limit.Tighten(limit);
  call.due_by_limit = true;
  if (of_step) call.step = StepName{"cam", "more"};
  call.reply = [promise](InferReply&& reply) { promise->set_value(std::move(reply)); };
  Asked asked{promise->get_future(), 0};
  asked.id = steps.Infer(std::move(call));
  return asked;
}

float First(const InferReply& reply) {
  float first = 0;
  if (reply.outputs.size() == 1 && !reply.outputs[0].parts.empty()) {
    std::memcpy(&first, reply.outputs[0].parts[0].data(), sizeof first);
  }
  return first;
}

TEST(RoutedSteps, AStepRunsWhereItsRouteSaysWithTheTimeThatIsLeft) {
  Node peer;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  EXPECT_FALSE(steps.Find("echo", -1)) << "no route, no model";
  steps.Follow(To({peer.target("server")}));
  const auto model = Await(steps);
  EXPECT_EQ(model->max_batch, 8);
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_EQ(model->inputs[0].dims, (Shape{-1, 4}));
  const InferReply reply = Ask(steps, model, 7).reply.get();
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_EQ(First(reply), 7);
  EXPECT_EQ(reply.outputs[0].name, "y");
  EXPECT_EQ(reply.served.exit, "final");
  EXPECT_EQ(reply.served.execution_us, 22);
  EXPECT_TRUE(reply.served.emulated);
  const auto limit = peer.service.last().limit;
  ASSERT_TRUE(limit);
  EXPECT_LE(*limit, Seconds(60));
  EXPECT_GT(*limit, Seconds(1));
}

// A probe of a pipeline asks for its steps: those of another node, and those of this one.
TEST(RoutedSteps, AModelIsReadyHereOrWhereARouteSendsIt) {
  Node peer;
  ScriptedService here;
  here.unserved = true;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  EXPECT_EQ(steps.ModelReady("echo", -1).error().message, "no worker serves it");
  Nothing nothing;
  RoutedSteps elsewhere(nothing, {.connect = GrpcPeers({})});
  EXPECT_EQ(elsewhere.ModelReady("echo", -1).error().code, ErrorCode::kNotFound);
  elsewhere.Follow(To({peer.target("server")}));
  Await(elsewhere);
  EXPECT_TRUE(elsewhere.ModelReady("echo", -1));
}

// Without this a node would say that it is ready while it refuses each call of a pipeline.
TEST(RoutedSteps, AModelIsReadyWhileANodeThatHasItAnswers) {
  Node first;
  Node second;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({first.target("first"), second.target("second")}));
  const auto model = Await(steps);
  first.Kill();
  steps.MeasureLinks();
  EXPECT_TRUE(steps.ModelReady("echo", -1)) << "the other has it";
  second.Kill();
  EXPECT_FALSE(Ask(steps, model, 1).reply.get().status);
  EXPECT_THAT(steps.ModelReady("echo", -1).error().message,
              AllOf(HasSubstr("model 'echo' runs on node 'first' at "), HasSubstr("node 'second'"),
                    HasSubstr("which does not answer")));
  EXPECT_TRUE(steps.Find("echo", -1)) << "its calls are tried all the same";
  second.Return();
  while (!steps.ModelReady("echo", -1)) steps.MeasureLinks();
}

// One that clients send, as those of another node are, stays here: nothing goes round in circles.
TEST(RoutedSteps, ACallThatIsOfNoStepStaysHere) {
  Node peer;
  ScriptedService here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({peer.target("server")}));
  const auto model = steps.Find("echo", -1);
  ASSERT_TRUE(model);
  EXPECT_TRUE(Ask(steps, *model, 3, Seconds(60), false).reply.get().status);
  EXPECT_FALSE(peer.service.last().limit);
  EXPECT_TRUE(here.last().limit);
}

// A step has the name of its model, where the fleet's file names stages as it likes.
TEST(RoutedSteps, AStepIsFoundByItsNameOrByItsModelIfThatIsPlain) {
  Node peer;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  WorkerRoutes routes = To({peer.target("server")});
  routes.routes[0].stage = "other";
  steps.Follow(routes);
  const auto model = Await(steps);
  EXPECT_TRUE(Ask(steps, model, 1).reply.get().status);
  routes.routes.push_back(routes.routes[0]);
  routes.routes[1].stage = "another";
  steps.Follow(routes);
  const InferReply reply = Ask(steps, model, 1).reply.get();
  ASSERT_FALSE(reply.status);
  EXPECT_THAT(reply.status.error().message, HasSubstr("the plan has no route for it"));
  routes.routes[1].stage = "more";
  steps.Follow(routes);
  EXPECT_TRUE(Ask(steps, model, 1).reply.get().status);
}

TEST(RoutedSteps, CallsAreSharedByWeightBetweenHereAndThere) {
  Node peer;
  ScriptedService here;
  here.Refuse({ErrorCode::kResourceExhausted, "here"});
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({{"edge", "", 2, true}, peer.target("server")}));
  const auto model = *steps.Find("echo", -1);
  std::string ways;
  for (int i = 0; i < 6; ++i) ways += Ask(steps, model, 1).reply.get().status ? "s" : "e";
  EXPECT_EQ(ways, "eseese");
}

// A peer that is away must say so at once, be passed over while another is there, and be used again
// when it is back.
TEST(RoutedSteps, WhoIsAwayIsPassedOverAndComesBack) {
  Node first;
  Node second;
  Nothing here;
  std::atomic<int> lines{0};
  RoutedSteps steps(here, {.connect = GrpcPeers({}), .log = [&](const std::string&) { ++lines; }});
  steps.Follow(To({first.target("first"), second.target("second")}));
  const auto model = Await(steps);
  first.Kill();
  for (int i = 0; i < 6; ++i) {
    const InferReply reply = Ask(steps, model, static_cast<float>(i)).reply.get();
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_EQ(First(reply), static_cast<float>(i));
  }
  second.Kill();
  const InferReply refused = Ask(steps, model, 1).reply.get();
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.served.outcome, Outcome::kShed);
  EXPECT_THAT(refused.status.error().message,
              AllOf(HasSubstr("no node runs model 'echo'"), HasSubstr("node 'first' at 127.0.0.1:"),
                    HasSubstr("node 'second' at"), HasSubstr("of the step's 60000.000 ms")));
  EXPECT_GE(lines, 2) << "each is told once";
  first.Return();
  for (bool served = false; !served;) served = Ask(steps, model, 1).reply.get().status.has_value();
  while (steps.underway() > 0) std::this_thread::yield();
}

TEST(RoutedSteps, WhereNobodyIsLeftButThisNodeItServesIt) {
  Node peer;
  ScriptedService here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({{"edge", "", 1, true}, peer.target("server", 100)}));
  const auto model = *steps.Find("echo", -1);
  peer.Kill();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(First(Ask(steps, model, 5).reply.get()), 5);
  // A model that a peer has let go, or a queue that is full, is another's matter too.
  peer.Return();
  peer.service.Refuse({ErrorCode::kResourceExhausted, "the queue is full"});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(First(Ask(steps, model, 6).reply.get()), 6);
  peer.service.Refuse({ErrorCode::kInvalidArgument, "no such shape"});
  InferReply wrong;
  for (wrong = {}; wrong.status;) wrong = Ask(steps, model, 6).reply.get();
  EXPECT_THAT(wrong.status.error().message, HasSubstr("node 'server' at 127.0.0.1:"));
  EXPECT_EQ(wrong.status.error().code, ErrorCode::kInvalidArgument);
}

// Of a link that plans are made for: the round trip by probes, the rate by calls of some size.
TEST(RoutedSteps, SaysWhatItHasSeenOfTheWayToAPeer) {
  Node peer;
  ScriptedService here;
  auto large = std::make_shared<ModelSpec>(ModelSpec{.name = "large",
                                                     .platform = "identity",
                                                     .inputs = {{"x", DataType::kFp32, {-1}}},
                                                     .outputs = {{"y", DataType::kFp32, {-1}}},
                                                     .exits = {{"1", {}, 0}}});
  peer.service.Add(large);
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  EXPECT_TRUE(steps.MeasureLinks().empty());
  steps.Follow({{1, 1}, {{"cam", "more", "large", {peer.target("server")}}}});
  auto links = steps.MeasureLinks();
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].to, "server");
  EXPECT_GT(links[0].reading.rtt, Duration{});
  EXPECT_EQ(links[0].reading.mbps, 0) << "no call has crossed it";
  const std::vector<float> values(8192);
  std::promise<InferReply> promise;
  InferCall call;
  call.model = large;
  call.inputs = {{"x", DataType::kFp32, {8192}, std::as_bytes(std::span(values))}};
  call.outputs = {0};
  call.received = std::chrono::steady_clock::now();
  call.limit.Tighten(Seconds(60));
  call.step = StepName{"cam", "more"};
  call.reply = [&](InferReply&& reply) { promise.set_value(std::move(reply)); };
  steps.Infer(std::move(call));
  ASSERT_TRUE(promise.get_future().get().status);
  links = steps.MeasureLinks();
  ASSERT_EQ(links.size(), 1u);
  EXPECT_GT(links[0].reading.mbps, 0);
  peer.Kill();
  EXPECT_EQ(steps.MeasureLinks().at(0).reading, links[0].reading) << "of the last minute, still";
}

// Those under way when a node dies end once each, with an answer or a reason.
TEST(RoutedSteps, CallsAtANodeThatDiesEndOnceEach) {
  Node peer;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({peer.target("server")}));
  const auto model = Await(steps);
  peer.service.Hold();
  std::vector<Asked> asked;
  for (int i = 0; i < 20; ++i) asked.push_back(Ask(steps, model, 1));
  peer.service.AwaitHeld(20);
  peer.Kill();
  for (Asked& each : asked) EXPECT_FALSE(each.reply.get().status);
}

TEST(RoutedSteps, CancellationIsPassedOnAndAnsweredOnce) {
  Node peer;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({peer.target("server")}));
  const auto model = Await(steps);
  peer.service.Hold();
  Asked asked = Ask(steps, model, 1);
  peer.service.AwaitHeld(1);
  steps.Cancel(asked.id);
  const InferReply reply = asked.reply.get();
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.served.outcome, Outcome::kCancelled);
  EXPECT_EQ(peer.service.AwaitCancelled(), 1u);
  steps.Cancel(asked.id);  // late, and nobody's
}

TEST(RoutedSteps, AStepWhoseTimeGoesByAtItsPeerSaysSo) {
  Node peer;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({peer.target("server")}));
  const auto model = Await(steps);
  peer.service.Hold();
  const InferReply reply = Ask(steps, model, 1, Millis(50)).reply.get();
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(reply.served.outcome, Outcome::kExpired);
  EXPECT_EQ(peer.service.AwaitCancelled(), 1u) << "nobody waits for it there";
}

// A plan that moves a stage under traffic: every call is answered, by one node or the other.
TEST(RoutedSteps, RoutesThatChangeUnderTrafficLoseNothing) {
  Node first;
  Node second;
  Nothing here;
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  steps.Follow(To({first.target("first")}));
  Await(steps);
  std::atomic<bool> stop{false};
  std::atomic<int> served{0};
  std::atomic<int> lost{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      while (!stop) {
        const auto model = steps.Find("echo", -1);
        const bool fine = model && Ask(steps, *model, 9).reply.get().status;
        ++(fine ? served : lost);
      }
    });
  }
  for (int i = 0; i < 40; ++i) {
    const int before = served;
    steps.Follow(To({i % 2 == 0 ? second.target("second") : first.target("first")}));
    while (served < before + 5 && lost == 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& each : clients) each.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(first.service.last().limit);
  EXPECT_TRUE(second.service.last().limit);
}

// What is under way when the server ends must not outlive it.
TEST(RoutedSteps, EndsWithCallsUnderWay) {
  Node peer;
  Nothing here;
  peer.service.Hold();
  Asked asked;
  {
    RoutedSteps steps(here, {.connect = GrpcPeers({})});
    steps.Follow(To({peer.target("server")}));
    asked = Ask(steps, Await(steps), 1);
    peer.service.AwaitHeld(1);
  }
  EXPECT_FALSE(asked.reply.get().status);
}

TEST(PeerMessage, AnOptionalInputIsKnownAndMayBeLeftOut) {
  inference::ModelMetadataResponse metadata;
  inference::ModelConfigResponse config;
  for (const char* name : {"x", "z"}) {
    auto& input = *metadata.add_inputs();
    input.set_name(name);
    input.set_datatype("FP32");
    input.add_shape(2);
    auto& declared = *config.mutable_config()->add_input();
    declared.set_name(name);
    declared.set_optional(declared.name() == "z");
  }
  (*config.mutable_config()->mutable_parameters())["any_shape.z"].set_string_value("true");
  InferCall call;
  call.model = std::make_shared<const ModelSpec>(SpecOf(metadata, config).value());
  EXPECT_FALSE(call.model->inputs[0].optional);
  EXPECT_TRUE(call.model->inputs[1].optional);
  EXPECT_FALSE(call.model->inputs[0].any_shape);
  EXPECT_TRUE(call.model->inputs[1].any_shape);
  const std::vector<float> values{1, 2};
  call.inputs = {{"x", DataType::kFp32, {2}, std::as_bytes(std::span(values))},
                 {.name = "z", .absent = true}};
  inference::ModelInferRequest out;
  Put(call, Millis(80), out);
  ASSERT_EQ(out.inputs_size(), 1);
  EXPECT_EQ(out.inputs(0).name(), "x");
  EXPECT_EQ(out.raw_input_contents_size(), 1);
}

// A peer may be of another version: what it says is checked before a step reads it.
TEST(PeerMessage, AnswersThatAreNotWhatTheyClaimAreRefused) {
  InferCall call;
  call.model = std::make_shared<const ModelSpec>(ModelSpec{
      .name = "m", .outputs = {{"y", DataType::kFp32, {-1, 2}}, {"s", DataType::kBytes, {-1}}}});
  const auto answer = [&](const std::string& name, const std::string& type,
                          std::vector<std::int64_t> shape, std::string bytes) {
    auto response = std::make_shared<inference::ModelInferResponse>();
    auto& output = *response->add_outputs();
    output.set_name(name);
    output.set_datatype(type);
    output.mutable_shape()->Assign(shape.begin(), shape.end());
    response->add_raw_output_contents(std::move(bytes));
    call.outputs = {name == "s" ? 1 : 0};
    const auto reply = ReplyOf(call, response);
    return reply ? "" : reply.error().message;
  };
  EXPECT_EQ(answer("y", "FP32", {1, 2}, std::string(8, 0)), "");
  EXPECT_EQ(answer("y", "FP32", {2, 2}, std::string(8, 0)),
            "its answer: output 'y' does not have the size of its shape");
  EXPECT_THAT(answer("y", "FP32", {-1, 2}, std::string(8, 0)), HasSubstr("does not have the size"));
  EXPECT_THAT(answer("y", "FP64", {1, 1}, std::string(8, 0)), HasSubstr("is of type FP64"));
  EXPECT_THAT(answer("z", "FP32", {1, 2}, std::string(8, 0)), HasSubstr("is not in it"));
  EXPECT_EQ(answer("s", "BYTES", {2}, std::string("\1\0\0\0a\0\0\0\0", 9)), "");
  EXPECT_THAT(answer("s", "BYTES", {2}, std::string("\1\0\0\0a\7\0\0\0", 9)),
              HasSubstr("does not have the size"));
}

}  // namespace
}  // namespace tactus
