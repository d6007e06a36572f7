// What it costs that a step runs on another node, beside a step that runs here: a service that
// answers at once, called directly, by a route that says "here", and by one over loopback. A
// payload goes there and comes back.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "cluster/steps/grpc_peer.h"
#include "cluster/steps/routed_steps.h"
#include "server/grpc/grpc_server.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

// Answers what it is asked, where it lies.
class Mirror final : public PlainService {
 public:
  explicit Mirror(std::int64_t bytes) {
    auto spec = std::make_shared<ModelSpec>();
    spec->name = "mirror";
    spec->platform = "identity";
    spec->inputs = {{"x", DataType::kUint8, {bytes}}};
    spec->outputs = {{"y", DataType::kUint8, {bytes}}};
    spec->exits = {{"1", {}, 0}};
    spec_ = std::move(spec);
  }
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return spec_;
  }
  CallId Infer(InferCall&& call) override {
    InferReply reply;
    reply.model = call.model;
    reply.storage = call.keepalive;
    reply.served = {.outcome = Outcome::kMet, .exit = "1", .batch = 1};
    const InputTensor& in = call.inputs[0];
    reply.outputs.push_back({.name = "y", .type = in.type, .shape = in.shape, .parts = {in.data}});
    call.reply(std::move(reply));
    return 0;
  }

 private:
  std::shared_ptr<const ModelSpec> spec_;
};

void Call(InferenceService& service, const std::shared_ptr<std::vector<std::byte>>& bytes) {
  std::binary_semaphore done{0};
  InferCall call;
  call.model = *service.Find("mirror", -1);
  call.inputs = {{"x", DataType::kUint8, {static_cast<std::int64_t>(bytes->size())}, *bytes}};
  call.keepalive = bytes;
  call.outputs = {0};
  call.received = std::chrono::steady_clock::now();
  call.limit.Tighten(Seconds(10));
  call.step = StepName{"p", "mirror"};
  call.reply = [&](InferReply&& reply) {
    CHECK(reply.status.has_value(), "a mirror answers");
    done.release();
  };
  service.Infer(std::move(call));
  done.acquire();
}

enum Way { kDirect, kHere, kLoopback };

void Step(benchmark::State& state, Way way) {
  const std::int64_t size = state.range(0);
  Mirror here(size);
  Mirror there(size);
  GrpcServer server(GrpcOptions{.port = 0}, there);
  const auto port = server.Start();
  CHECK(port.has_value(), "there is a free port");
  RoutedSteps steps(here, {.connect = GrpcPeers({})});
  WorkerTarget to{.node = "n", .address = "127.0.0.1:" + std::to_string(*port)};
  to.here = way == kHere;
  if (way != kDirect) steps.Follow({{1, 1}, {{"p", "mirror", "mirror", {to}}}});
  InferenceService& service = way == kDirect ? static_cast<InferenceService&>(here) : steps;
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(size));
  for (auto _ : state) Call(service, bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(Step, direct, kDirect)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Step, here, kHere)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Step, loopback, kLoopback)
    ->Arg(64)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tactus
