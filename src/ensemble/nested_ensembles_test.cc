// Ensembles that are steps of others, one service over another: without this, a client who leaves
// could end another's call, or nobody's.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ensemble/ensemble_service.h"
#include "ensemble/scripted_steps_test.h"

namespace tactus {
namespace {

TensorSpec RowOf4(const char* name) { return {name, DataType::kFp32, {-1, 4}}; }

// `pair`, of the lower service: first -> second. `twice`, of the upper one: pair -> pair.
struct Nested {
  Nested() {
    for (const char* name : {"first", "second"}) {
      lower.steps.Add(FloatModel(name, 8, {RowOf4("in")}, {RowOf4("out")}));
    }
    PipelineDeclaration pair;
    pair.stages = {{.name = "first",
                    .model = "first",
                    .inputs = {{"in", "x"}},
                    .outputs = {{"out", "between"}}},
                   {.name = "second",
                    .model = "second",
                    .inputs = {{"in", "between"}},
                    .outputs = {{"out", "y"}}}};
    lower.Declare(WithSlo("pair", Seconds(60)), pair);
    lower.service->Open({"*"});

    EnsembleDeclaration twice{.model = WithSlo("twice", Millis(100)), .pipeline = {}};
    twice.pipeline.name = "twice";
    twice.pipeline.slo = twice.model.slo;
    twice.pipeline.stages = {
        {.name = "pair", .model = "pair", .inputs = {{"x", "x"}}, .outputs = {{"y", "between"}}},
        {.name = "pair#2", .model = "pair", .inputs = {{"x", "between"}}, .outputs = {{"y", "y"}}}};
    EnsembleFolders folders;
    folders.list = [] { return std::vector<std::string>{"twice"}; };
    folders.holds = [](const std::string& model, const std::string&) { return model == "twice"; };
    folders.read = [twice](const std::string&,
                           const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
      EnsembleDeclaration declared = twice;
      if (Status linked = LinkStages(declared); !linked) return std::unexpected(linked.error());
      return std::vector{declared};
    };
    EnsembleOptions options;
    options.clock = [this] { return lower.now; };
    upper = std::make_unique<EnsembleService>(*lower.service, std::move(options), folders);
    upper->Open({"*"});
  }

  static ModelSpec WithSlo(const char* name, Duration slo) {
    ModelSpec model = FloatModel(name, 4, {RowOf4("x")}, {RowOf4("y")});
    model.platform = "ensemble";
    model.slo = slo;
    return model;
  }

  CallId Call(const std::string& model) {
    auto found = upper->Find(model, -1);
    EXPECT_TRUE(found) << found.error().message;
    InferCall call;
    call.model = *found;
    const auto bytes = Floats({1, 2, 3, 4});
    call.inputs = {{"x", DataType::kFp32, {1, 4}, BytesIn(*bytes)}};
    call.keepalive = bytes;
    call.received = lower.now;
    call.reply = [this](InferReply&& reply) { replies.push_back(std::move(reply)); };
    return upper->Infer(std::move(call));
  }
  std::string Running() {
    std::string names;
    for (const auto& held : lower.steps.held) names += held.call.model->name + " ";
    return names;
  }
  void AnswerFirst() { lower.steps.Answer(lower.steps.held.front().id, {{{1, 4}, {5, 6, 7, 8}}}); }

  std::vector<InferReply> replies;
  EnsembleBench lower{EnsembleOptions{.mark = CallId{1} << 28}};
  std::unique_ptr<EnsembleService> upper;
};

TEST(NestedEnsembles, RunTheirStepsInTurnAndAnswerOnce) {
  Nested nested;
  nested.Call("twice");
  for (const char* runs : {"first ", "second ", "first ", "second "}) {
    EXPECT_EQ(nested.Running(), runs);
    // Not the 60 s that `pair` has by itself.
    EXPECT_LE(*nested.lower.steps.held.front().call.limit.shortest(), Millis(100));
    nested.AnswerFirst();
  }
  ASSERT_EQ(nested.replies.size(), 1u);
  EXPECT_TRUE(nested.replies[0].status) << nested.replies[0].status.error().message;
  EXPECT_EQ(nested.replies[0].outputs[0].shape, (Shape{1, 4}));
  EXPECT_EQ(nested.lower.service->unfinished() + nested.upper->unfinished(), 0u);
}

TEST(NestedEnsembles, ACancelledCallEndsItsOwnStepsAndNoOthers) {
  Nested nested;
  const CallId twice = nested.Call("twice");
  const CallId pair = nested.Call("pair");  // a client's, of the lower one, through the upper
  const CallId other = nested.Call("pair");
  EXPECT_EQ(nested.Running(), "first first first ");
  const std::vector<CallId> held{nested.lower.steps.held[0].id, nested.lower.steps.held[1].id,
                                 nested.lower.steps.held[2].id};
  const auto left = [&] {
    std::vector<CallId> ids;
    for (const auto& each : nested.lower.steps.held) ids.push_back(each.id);
    return ids;
  };
  nested.upper->Cancel(pair);
  EXPECT_THAT(left(), ::testing::ElementsAre(held[0], held[2]));
  nested.upper->Cancel(twice);
  EXPECT_THAT(left(), ::testing::ElementsAre(held[2]));
  nested.upper->Cancel(other);
  EXPECT_EQ(nested.Running(), "");
  ASSERT_EQ(nested.replies.size(), 3u);
  for (const InferReply& reply : nested.replies) {
    EXPECT_EQ(reply.status.error().code, ErrorCode::kCancelled);
  }
  EXPECT_EQ(nested.lower.service->unfinished() + nested.upper->unfinished(), 0u);
}

// Ensembles by name, each with one step that calls the model given with it.
struct Mistaken {
  explicit Mistaken(std::vector<std::pair<const char*, const char*>> ensembles,
                    std::function<bool(const std::string&)> any_ensemble = {})
      : bench([&] {
          EnsembleOptions options{.log = [this](const std::string& line) { log += line + "\n"; }};
          options.any_ensemble = std::move(any_ensemble);
          return options;
        }()) {
    bench.steps.Add(FloatModel("model", 8, {RowOf4("x")}, {RowOf4("y")}));
    for (const auto& [name, step] : ensembles) {
      PipelineDeclaration pipeline;
      pipeline.stages = {
          {.name = step, .model = step, .inputs = {{"x", "x"}}, .outputs = {{"y", "y"}}}};
      bench.Declare(Nested::WithSlo(name, Millis(100)), pipeline);
    }
    bench.service->Open({"*"});
  }
  std::string Why(const char* name) {
    const auto found = bench.service->Find(name, -1);
    return found ? "no error" : found.error().message;
  }

  std::string log;
  EnsembleBench bench;
};

TEST(NestedEnsembles, CirclesAreToldWhatEndsThem) {
  using testing::HasSubstr;
  Mistaken plain(
      {{"a", "b"}, {"b", "c"}, {"c", "a"}, {"self", "self"}, {"fine", "model"}, {"d", "fine"}});
  EXPECT_THAT(plain.Why("a"), HasSubstr("step 'b': 'b' is an ensemble that calls 'a' in turn"));
  EXPECT_THAT(plain.Why("self"), HasSubstr("step 'self': the ensemble calls itself"));
  EXPECT_THAT(plain.Why("d"),
              HasSubstr("'fine' is an ensemble itself; put its steps here, or give"));
  EXPECT_EQ(plain.Why("fine"), "no error");

  Mistaken as_step(
      {{"a", "b"}, {"b", "a"}, {"self", "self"}, {"outer", "plain"}, {"lost", "nothing"}},
      [](const std::string& model) { return model == "plain"; });
  EXPECT_THAT(as_step.Why("a"), HasSubstr("one with as_step has steps that are models only"));
  EXPECT_THAT(as_step.Why("self"), HasSubstr("step 'self': the ensemble calls itself"));
  EXPECT_THAT(as_step.Why("outer"), HasSubstr("put the steps of 'plain' here"));
  EXPECT_THAT(as_step.Why("lost"), HasSubstr("the repository has no model"));
}

TEST(NestedEnsembles, ThoseReadLaterAreKnownInTheFirstLines) {
  Mistaken mistaken({{"first", "later"}, {"later", "model"}});
  EXPECT_THAT(mistaken.log, testing::HasSubstr("'later' is an ensemble itself"));
  EXPECT_THAT(mistaken.log, testing::Not(testing::HasSubstr("unknown")));
}

}  // namespace
}  // namespace tactus
