// The engine over a scripted driver: what it asks of it, in which order, and what it makes of each
// error.
#include "engines/cuda/cuda_engine.h"

#include <atomic>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan.h"
#include "engines/cuda/fake_program_test.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using testing::Answers;
using ::testing::ElementsAre;
using testing::FakeCudaOptions;
using ::testing::HasSubstr;
using testing::Row;
using testing::RunBatch;
using testing::ScriptedDriver;
using testing::Values;

ModelSpec PairOf(std::string name, int priority = 1) {
  ModelSpec spec{.name = std::move(name), .max_batch = 4, .priority = priority};
  spec.inputs = {{"x", DataType::kFp32, {-1, 2}}};
  spec.exits = {{"1", {}, 0}, {"2", {}, 0}};
  return spec;
}
Row Pair(float a, float b) { return Row().Add<float>({1, 2}, {a, b}); }

// Notes the shapes of what it is given.
class Watched final : public DeviceProgram {
 public:
  Watched(std::unique_ptr<DeviceProgram> program, std::vector<Shape>& seen)
      : program_(std::move(program)), seen_(seen) {}
  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    for (const DeviceTensor& input : inputs) seen_.push_back(input.shape);
    return program_->Enqueue(exit, inputs);
  }

 private:
  const std::unique_ptr<DeviceProgram> program_;
  std::vector<Shape>& seen_;
};

class CudaEngineTest : public ::testing::Test {
 protected:
  Expected<std::unique_ptr<Engine>> Make() { return Make(FakeCudaOptions(script_)); }
  Expected<std::unique_ptr<Engine>> Make(CudaOptions options) {
    return MakeCudaEngine(script_.driver(), std::move(options));
  }
  static ModelHandle Load(Engine& engine, ModelSpec spec = PairOf("pair"), LaneSpec lane = {}) {
    auto handle = engine.Load(spec, lane);
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(ModelHandle{});
  }
  static BatchJob Job(std::uint64_t id, const std::vector<RowInputs>& rows) {
    return {BatchId{id}, ModelId{0}, ExitId{0}, rows};
  }

  ScriptedDriver script_;
};

TEST_F(CudaEngineTest, RunsABatchOnTheDeviceAndLeavesNothingBehind) {
  auto engine = Make().value();
  const ModelHandle model = Load(*engine);
  std::vector<Row> rows{Pair(1, 2), Pair(3, 4)};
  const BatchResult result = RunBatch(*engine, model, rows, 1);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, 2));
  // By the device's clock: an upload of 0.5 ms, a kernel of 2 ms.
  EXPECT_GE(result.gather, FromMillis(0.5));
  EXPECT_EQ(result.infer, FromMillis(2));
  EXPECT_EQ(result.device, (DeviceTimes{FromMillis(0.5), FromMillis(2), FromMillis(0.5)}));
  engine.reset();
  EXPECT_EQ(script_.device.Leaks(), "");
}

// A profile that took the wait behind another batch for kernels would count it twice: the policies
// add it themselves.
TEST_F(CudaEngineTest, WhatABatchWaitedForIsNoPartOfItsDeviceTimes) {
  auto engine = Make().value();
  const ModelHandle model = Load(*engine);
  script_.device.Hold();
  Answers answers;
  Row row = Pair(1, 2);
  const std::vector<RowInputs> inputs{row.inputs()};
  for (std::uint64_t id = 1; id <= 3; ++id) engine->Submit(model, Job(id, inputs), answers);
  script_.device.LetGo();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const BatchResult result = answers.Wait(BatchId{id});
    ASSERT_TRUE(result.device);
    // One clock: what other streams copy meanwhile is in it, what this one ran before is not.
    EXPECT_LE(result.device->kernels, FromMillis(3)) << id;
    if (id == 3) {
      EXPECT_GE(result.infer, FromMillis(5)) << "it waited for another one";
    }
  }
}

// A lane's thread must not wait for the device.
TEST_F(CudaEngineTest, SubmitReturnsBeforeTheBatchIsDone) {
  auto engine = Make().value();
  EXPECT_TRUE(engine->traits().deferred);
  const ModelHandle model = Load(*engine);
  script_.device.Hold();
  Answers answers;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    Row row = Pair(static_cast<float>(id), 7);
    const std::vector<RowInputs> inputs{row.inputs()};
    engine->Submit(model, Job(id, inputs), answers);
  }
  EXPECT_EQ(answers.batches(), 0u);
  script_.device.LetGo();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const BatchResult result = answers.Wait(BatchId{id});
    ASSERT_TRUE(result.status);
    EXPECT_THAT(Values<float>(result.output->tensors[0].data),
                ElementsAre(static_cast<float>(id), 7));
    EXPECT_EQ(answers.times(BatchId{id}), 1);
  }
}

TEST_F(CudaEngineTest, AStreamHasThePriorityOfItsModelsLevel) {
  CudaOptions options = FakeCudaOptions(script_);
  options.priorities = {1, 200, 7, 1};
  auto engine = Make(std::move(options)).value();
  for (const int priority : {200, 7, 1, 5}) Load(*engine, PairOf("m", priority));
  std::map<int, int> streams;
  for (const auto& [handle, stream] : script_.device.streams) ++streams[stream.priority];
  // One for kernels and one for answers of each, and the device's uploads. A model of priority 5,
  // which nobody knew of, is on the level of the next lower one.
  EXPECT_EQ(streams, (std::map<int, int>{{-5, 3}, {-4, 4}, {-3, 2}}));
}

TEST_F(CudaEngineTest, MoreLevelsThanTheDeviceHasShareTheLowest) {
  CudaOptions options = FakeCudaOptions(script_);
  for (int p = 1; p <= 9; ++p) options.priorities.push_back(p);
  auto engine = Make(std::move(options)).value();
  Load(*engine, PairOf("low", 9));
  EXPECT_EQ(script_.device.streams.rbegin()->second.priority, 0);
}

TEST_F(CudaEngineTest, EachLaneHoldsTheWeights) {
  auto engine = Make().value();
  const ModelHandle one = Load(*engine);
  Load(*engine);
  EXPECT_EQ(script_.device.used(), 2 * testing::kFakeWeights);
  EXPECT_EQ(engine->Memory(one).weight_bytes, testing::kFakeWeights);
  RunBatch(*engine, one, Pair(1, 2));
  EXPECT_GT(engine->Memory(one).peak_bytes, testing::kFakeWeights);
}

TEST_F(CudaEngineTest, LanesWithSharesRunOnSmsOfTheirOwn) {
  auto engine = Make().value();
  Load(*engine, PairOf("a"), {.fraction = 0.25, .placement = CudaPlacement{0}});
  Load(*engine, PairOf("b"), {.fraction = 0.75, .placement = CudaPlacement{0.25}});
  std::set<int> all;
  std::size_t sum = 0;
  for (const auto& [handle, stream] : script_.device.streams) {
    all.insert(stream.groups.begin(), stream.groups.end());
    sum += stream.groups.size();
  }
  EXPECT_EQ(sum, 16u);
  EXPECT_EQ(all.size(), 16u);
  engine.reset();
  EXPECT_EQ(script_.device.Leaks(), "");
}

// A part has a context of its own: an event of another one is refused in its streams.
TEST_F(CudaEngineTest, ALaneOnAPartRunsBatchesAndTellsTheirTimes) {
  auto engine = Make().value();
  const ModelHandle model =
      Load(*engine, PairOf("pair"), {.fraction = 0.25, .placement = CudaPlacement{0.5}});
  for (int run = 0; run < 2; ++run) {
    const BatchResult result = RunBatch(*engine, model, Pair(3, 4), 1);
    ASSERT_TRUE(result.status) << result.status.error().message;
    EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(6, 8));
    EXPECT_EQ(result.infer, FromMillis(2));
    EXPECT_EQ(result.device, (DeviceTimes{FromMillis(0.5), FromMillis(2), FromMillis(0.5)}));
  }
  engine.reset();
  EXPECT_EQ(script_.device.Leaks(), "");
}

TEST_F(CudaEngineTest, AShareThatIsNoneIsAnErrorOfTheLane) {
  auto engine = Make().value();
  ModelSpec spec = PairOf("pair");
  const auto handle = engine->Load(spec, {.fraction = 0.01, .placement = CudaPlacement{}});
  ASSERT_FALSE(handle);
  EXPECT_THAT(handle.error().message, AllOf(HasSubstr("model 'pair'"), HasSubstr("16 groups")));
}

TEST_F(CudaEngineTest, ALaneOnADeviceThatIsNotOpenIsRefused) {
  auto engine = Make().value();
  ModelSpec spec = PairOf("pair");
  const auto handle = engine->Load(spec, {.device = DeviceId{1}});
  ASSERT_FALSE(handle);
  EXPECT_THAT(handle.error().message, HasSubstr("device 1 of 1"));
}

TEST_F(CudaEngineTest, DevicesThatDifferShareNoProfile) {
  script_.device.devices = 2;
  CudaOptions options = FakeCudaOptions(script_);
  options.devices = {0, 1};
  EXPECT_TRUE(Make(options)) << "they differ by their UUIDs only";
  options.power_limit = [](const std::string& uuid) {
    return uuid[4] == 'a' && uuid[5] == '0' ? 700 : 500;
  };
  const auto engine = Make(options);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, HasSubstr("700 W and 500 W"));
}

TEST_F(CudaEngineTest, TensorsOfBytesAreRefused) {
  auto engine = Make().value();
  ModelSpec spec = PairOf("text");
  spec.inputs.push_back({"words", DataType::kBytes, {-1, 1}});
  const auto handle = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(handle.error().message, HasSubstr("'words'"));
}

TEST_F(CudaEngineTest, AnOptionalInputIsRefused) {
  auto engine = Make().value();
  ModelSpec spec = PairOf("pair");
  spec.inputs[0].optional = true;
  const auto handle = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(handle);
  EXPECT_THAT(handle.error().message, HasSubstr("leave --device out"));
}

TEST_F(CudaEngineTest, AProgramHasTheShapeOfItsReshapeAndClientsTheirs) {
  CudaOptions options = FakeCudaOptions(script_);
  std::vector<Shape> seen;
  options.load = [&, load = options.load](ModelSpec& spec, const DeviceStream& stream) {
    auto program = load(spec, stream);
    if (program) program = std::make_unique<Watched>(*std::move(program), seen);
    return program;
  };
  auto engine = Make(std::move(options)).value();
  ModelSpec spec = PairOf("pair");
  spec.inputs[0].reshape = {-1, 2, 1};
  spec.outputs = {{"y", DataType::kFp32, {-1, 1, 2}, Shape{-1, 2, 1}}};
  const ModelHandle model = Load(*engine, spec);
  std::vector<Row> rows{Pair(1, 2), Pair(3, 4)};
  const BatchResult result = RunBatch(*engine, model, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(seen, ElementsAre(Shape{2, 2, 1}));
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, 1, 2));
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(1, 2, 3, 4));
  const BatchResult wrong = RunBatch(*engine, model, Row().Add<float>({1, 1, 2}, {1, 2}));
  ASSERT_FALSE(wrong.status);
  EXPECT_EQ(wrong.status.error().code, ErrorCode::kInvalidArgument);
  spec.outputs[0].reshape = {-1, 2};
  const BatchResult other = RunBatch(*engine, Load(*engine, spec), Pair(1, 2));
  ASSERT_FALSE(other.status);
  EXPECT_THAT(other.status.error().message,
              HasSubstr("output 'y' has shape [1,2,1], which its reshape [-1,2] does not allow"));
}

TEST_F(CudaEngineTest, RowsThatDoNotFitAreTheCallersError) {
  auto engine = Make().value();
  const ModelHandle model = Load(*engine);
  std::vector<Row> rows{Pair(1, 2), Row().Add<float>({1, 3}, {1, 2, 3})};
  const BatchResult mixed = RunBatch(*engine, model, rows);
  ASSERT_FALSE(mixed.status);
  EXPECT_EQ(mixed.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(mixed.lane_lost);
  const BatchResult short_row = RunBatch(*engine, model, Row().Add<float>({1, 2}, {1}));
  EXPECT_THAT(short_row.status.error().message, HasSubstr("has 4 bytes"));
  EXPECT_FALSE(RunBatch(*engine, model, Pair(1, 2), 7).status);
  EXPECT_TRUE(RunBatch(*engine, model, Pair(1, 2)).status) << "and the lane runs on";
}

// Everything that opening, loading and running call: an error of any of it reaches whoever asked,
// by name, once, and leaves nothing behind.
TEST_F(CudaEngineTest, AnErrorOfEachCallIsReportedAndLeavesNothing) {
  for (const char* function : {"cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                               "cuCtxGetStreamPriorityRange", "cuStreamCreateWithPriority"}) {
    ScriptedDriver script;
    script.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    const auto engine = MakeCudaEngine(script.driver(), FakeCudaOptions(script));
    ASSERT_FALSE(engine) << function;
    EXPECT_THAT(engine.error().message, HasSubstr(std::string(function) + ": CUDA_ERROR_INVALID"));
    EXPECT_EQ(script.device.Leaks(), "") << function;
  }
  for (const char* function :
       {"cuCtxSetCurrent", "cuStreamCreateWithPriority", "cuMemGetInfo_v2"}) {
    ScriptedDriver script;
    auto engine = MakeCudaEngine(script.driver(), FakeCudaOptions(script)).value();
    script.FailCall(function, CUDA_ERROR_INVALID_VALUE);
    ModelSpec spec = PairOf("pair");
    const auto handle = engine->Load(spec, LaneSpec{});
    ASSERT_FALSE(handle) << function;
    EXPECT_THAT(handle.error().message, AllOf(HasSubstr("model 'pair'"), HasSubstr(function)));
    EXPECT_TRUE(engine->Load(spec, LaneSpec{})) << function;
    engine.reset();
    EXPECT_EQ(script.device.Leaks(), "") << function;
  }
}

class CudaBatchError : public ::testing::TestWithParam<std::tuple<const char*, double>> {};

TEST_P(CudaBatchError, IsReportedOnceAndTheNextBatchRuns) {
  ScriptedDriver script;
  const auto [name, fraction] = GetParam();
  const std::string function = name;
  auto engine = MakeCudaEngine(script.driver(), FakeCudaOptions(script)).value();
  ModelSpec spec = PairOf("pair");
  const LaneSpec lane{.fraction = fraction, .placement = CudaPlacement{0}};
  const ModelHandle model = engine->Load(spec, lane).value();
  // Each of the calls of that name that a batch makes fails once, until one has run through.
  int failed = 0;
  for (int skip = 0;; ++skip) {
    script.FailCall(function, CUDA_ERROR_INVALID_VALUE, skip);
    const BatchResult result = RunBatch(*engine, model, Pair(5, 6));
    script.FailCall(function, CUDA_SUCCESS, 0, 0);
    if (result.status) break;
    ++failed;
    EXPECT_THAT(result.status.error().message,
                HasSubstr(function + ": CUDA_ERROR_INVALID_VALUE (invalid argument)"));
    EXPECT_FALSE(result.lane_lost);
    const BatchResult next = RunBatch(*engine, model, Pair(5, 6));
    ASSERT_TRUE(next.status) << next.status.error().message;
    EXPECT_THAT(Values<float>(next.output->tensors[0].data), ElementsAre(5, 6));
    // What a batch allocates once is there now: fail it on an engine that has not run.
    engine.reset();
    ASSERT_EQ(script.device.Leaks(), "") << function << " " << skip;
    engine = MakeCudaEngine(script.driver(), FakeCudaOptions(script)).value();
    ASSERT_EQ(engine->Load(spec, lane).value().value, model.value);
  }
  EXPECT_GE(failed, 1) << function << " is not called by a batch";
}

INSTANTIATE_TEST_SUITE_P(
    EachCall, CudaBatchError,
    ::testing::Combine(::testing::Values("cuEventCreate", "cuMemHostAlloc", "cuMemAlloc_v2",
                                         "cuEventRecord", "cuMemcpyHtoDAsync_v2",
                                         "cuStreamWaitEvent", "cuMemcpyDtoHAsync_v2",
                                         "cuLaunchHostFunc", "cuEventQuery"),
                       ::testing::Values(1.0, 0.5)));

TEST_F(CudaEngineTest, ShortMemoryIsAnErrorOfTheBatchThatSaysWhatToDo) {
  auto engine = Make().value();
  const ModelHandle model = Load(*engine);
  script_.device.memory = script_.device.used();
  const BatchResult result = RunBatch(*engine, model, Pair(1, 2));
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(
      result.status.error().message,
      AllOf(HasSubstr("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"), HasSubstr("fewer models")));
  EXPECT_FALSE(result.lane_lost);
  script_.device.memory += 1 << 20;
  EXPECT_TRUE(RunBatch(*engine, model, Pair(1, 2)).status);
}

// A device that is lost calls nobody: the batches under way must be reported all the same, as a
// lane's that is gone, so that other lanes run their requests.
TEST_F(CudaEngineTest, ALostDeviceReportsWhatIsUnderWayAndWhatComes) {
  auto engine = Make().value();
  const ModelHandle model = Load(*engine);
  script_.device.Hold();
  Answers answers;
  std::vector<Row> rows{Pair(1, 2)};
  std::vector<RowInputs> inputs{rows[0].inputs()};
  for (std::uint64_t id = 1; id <= 2; ++id) engine->Submit(model, Job(id, inputs), answers);
  script_.device.Lose();
  engine->Submit(model, Job(3, inputs), answers);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const BatchResult result = answers.Wait(BatchId{id});
    ASSERT_FALSE(result.status);
    EXPECT_TRUE(result.lane_lost) << id;
    EXPECT_THAT(result.status.error().message,
                AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("restart it")));
    EXPECT_EQ(answers.times(BatchId{id}), 1);
  }
  ModelSpec spec = PairOf("pair");
  const auto again = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUnavailable);
}

TEST_F(CudaEngineTest, LanesOnSeveralThreadsDoNotMixTheirRows) {
  auto engine = Make().value();
  constexpr int kLanes = 4;
  constexpr int kBatches = 50;
  std::vector<ModelHandle> models;
  for (int i = 0; i < kLanes; ++i) models.push_back(Load(*engine));
  std::atomic<int> right{0};
  std::vector<std::thread> lanes;
  for (int i = 0; i < kLanes; ++i) {
    lanes.emplace_back([&, i] {
      for (int b = 0; b < kBatches; ++b) {
        const auto value = static_cast<float>(1000 * i + b);
        const BatchResult result =
            RunBatch(*engine, models[static_cast<std::size_t>(i)], Pair(value, -value));
        const std::vector<float> expected{value, -value};
        right += result.status && Values<float>(result.output->tensors[0].data) == expected;
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(right, kLanes * kBatches);
}

}  // namespace
}  // namespace tactus
