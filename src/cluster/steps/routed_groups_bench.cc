// What two steps in a row on another node cost, with a tensor between them: as one call, which
// enters the pipeline there, beside one call for each step. Both ends are ensemble services over
// steps that answer at once, over loopback; the link's bytes are tensors out and answers back.
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "cluster/steps/grpc_peer.h"
#include "cluster/steps/routed_steps.h"
#include "ensemble/ensemble_service.h"
#include "pipeline/tensors.h"
#include "server/grpc/grpc_server.h"
#include "server/kserve/step_group_config.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

constexpr std::int64_t kOuter = 1 << 10;  // bytes into the pipeline, and out of it

ModelSpec Resizing(std::string name, std::int64_t in, std::int64_t out) {
  return {.name = std::move(name),
          .platform = "identity",
          .inputs = {{"x", DataType::kUint8, {in}}},
          .outputs = {{"y", DataType::kUint8, {out}}},
          .exits = {{"1", {}, 0}}};
}

// Models that answer at once, with zeros.
class Resizers final : public PlainService {
 public:
  explicit Resizers(std::int64_t between) : zeros_(static_cast<std::size_t>(between)) {
    for (const ModelSpec& spec :
         {Resizing("grow", kOuter, between), Resizing("shrink", between, kOuter)}) {
      models_[spec.name] = std::make_shared<const ModelSpec>(spec);
    }
  }
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    const auto found = models_.find(model);
    if (found == models_.end()) return NotFound("no such model");
    return found->second;
  }
  CallId Infer(InferCall&& call) override {
    const TensorSpec& out = call.model->outputs[0];
    InferReply reply;
    reply.model = call.model;
    reply.served = {.outcome = Outcome::kMet, .exit = "1", .batch = 1};
    reply.outputs.push_back({out.name,
                             out.type,
                             out.dims,
                             {std::span(zeros_).first(static_cast<std::size_t>(out.dims[0]))}});
    call.reply(std::move(reply));
    return 0;
  }

 private:
  const std::vector<std::byte> zeros_;
  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> models_;
};

EnsembleFolders TwoSteps() {
  EnsembleFolders folders;
  folders.list = [] { return std::vector<std::string>{"two"}; };
  folders.holds = [](const std::string& model, const std::string&) { return model == "two"; };
  folders.read = [](const std::string&,
                    const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
    EnsembleDeclaration two;
    two.model = Resizing("two", kOuter, kOuter);
    two.model.platform = "ensemble";
    two.pipeline.name = "two";
    two.pipeline.slo = Seconds(10);
    two.pipeline.deadlines = DeadlineRule::kSpare;
    two.pipeline.stages = {
        {.name = "grow", .model = "grow", .inputs = {{"x", "x"}}, .outputs = {{"y", "between"}}},
        {.name = "shrink",
         .model = "shrink",
         .inputs = {{"x", "between"}},
         .outputs = {{"y", "y"}}}};
    if (Status linked = LinkStages(two); !linked) return std::unexpected(linked.error());
    return std::vector{two};
  };
  return folders;
}

void Frame(InferenceService& service, const std::shared_ptr<std::vector<std::byte>>& bytes) {
  std::binary_semaphore done{0};
  auto model = service.Find("two", -1);
  CHECK(model.has_value(), "it is bound");
  InferCall call;
  call.model = *std::move(model);
  call.inputs = {{"x", DataType::kUint8, {kOuter}, *bytes}};
  call.keepalive = bytes;
  call.received = std::chrono::steady_clock::now();
  call.limit.Tighten(Seconds(10));
  call.reply = [&](InferReply&& reply) {
    CHECK(reply.status.has_value(), "steps that answer at once");
    done.release();
  };
  service.Infer(std::move(call));
  done.acquire();
}

void TwoOnANode(benchmark::State& state, bool as_one) {
  Resizers models(state.range(0));
  EnsembleOptions there_options;
  there_options.read_described = ReadSteps;
  EnsembleService there(models, std::move(there_options), TwoSteps());
  GrpcServer server(GrpcOptions{.port = 0, .takes_entered = true}, there);
  const auto port = server.Start();
  CHECK(port.has_value(), "there is a free port");
  RoutedSteps steps(models, {.connect = GrpcPeers({})});
  const WorkerTarget to{.node = "n", .address = "127.0.0.1:" + std::to_string(*port)};
  steps.Follow({{1, 1}, {{"two", "grow", "grow", {to}}, {"two", "shrink", "shrink", {to}}}});
  EnsembleOptions options;
  options.runs_steps = &steps;
  if (as_one) {
    options.describe = DescribeSteps;
    options.places_number = [&] { return steps.places_number(); };
    options.places = [&](const PipelineDeclaration& pipeline) {
      std::vector<StepGroup::Step> all;
      for (const StageDeclaration& each : pipeline.stages) all.push_back({each.name, each.model});
      return steps.PlacesOf(pipeline.name, all);
    };
  }
  EnsembleService here(models, std::move(options), TwoSteps());
  here.Open({"*"});
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(kOuter));
  for (auto _ : state) Frame(here, bytes);
  std::uint64_t crossed = 0;
  for (const RemoteStep& each : steps.Remote()) {
    CHECK(each.failed == 0, "nothing fails");
    CHECK((each.step == "grow+shrink") == as_one, "they went as was said");
    crossed += each.bytes_out + each.bytes_in;
  }
  state.counters["link_bytes_per_frame"] =
      benchmark::Counter(static_cast<double>(crossed) / static_cast<double>(state.iterations()));
}
BENCHMARK_CAPTURE(TwoOnANode, one_by_one, false)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(TwoOnANode, as_one, true)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tactus
