// What the runtime counts on, asked of every engine of this build.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "engines/registry.h"
#include "engines/submit_testing.h"
#ifdef TACTUS_HAVE_CUDA
#include "engines/cuda/fake_program_test.h"
#endif

namespace tactus {
namespace {

namespace fs = std::filesystem;
using testing::Answers;
using ::testing::ElementsAre;
using testing::Row;
using testing::RunBatch;
using testing::Values;

constexpr int kExits = 4;
// The engine for NVIDIA devices, over a driver that the test made up.
constexpr const char* kFakeCuda = "fake_cuda";
// An engine in a process of its own: this program, see isolated/process_test.cc.
constexpr std::string_view kIsolated = "isolated_";
// An emulated batch takes a moment, or, behind this exit, as good as forever.
constexpr ExitId kEndless{kExits};

Expected<ProfileTable::ModelRows> EmulatedLatencies(const ModelSpec& spec) {
  ProfileTable::ModelRows rows{kExits + 1, std::max(spec.max_batch, 1), {}};
  for (int exit = 0; exit < rows.exits; ++exit) {
    for (int batch = 1; batch <= rows.max_batch; ++batch) {
      rows.latency.push_back(exit == kExits ? Seconds(100'000) : Micros(20) * batch);
    }
  }
  return rows;
}

class EngineConformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == kFakeCuda) return MakeFakeCuda();
    EngineOptions options;
    options.emulated.latencies = EmulatedLatencies;
    options.emulated.spin = Micros(10);
    if (GetParam() != Name()) options.isolation = IsolationOptions{};
    auto engine = MakeEngine(Name(), options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }

  // Of the engine, wherever it runs.
  static std::string Name() {
    std::string name = GetParam();
    if (name.starts_with(kIsolated)) name.erase(0, kIsolated.size());
    return name;
  }

  void MakeFakeCuda() {
#ifdef TACTUS_HAVE_CUDA
    auto engine = MakeCudaEngine(cuda_.driver(), testing::FakeCudaOptions(cuda_));
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
    ASSERT_THAT(engine_->traits().name, ::testing::HasSubstr("fake-cuda (no GPU)"));
#endif
  }

  // Images to ten numbers, or to the image.
  ModelSpec Spec() const {
    ModelSpec spec{.name = "ee_s", .max_batch = 10};
    spec.inputs = {{"input", DataType::kFp32, {-1, 1, 28, 28}}};
    if (Name() == "emulated") spec.outputs = {{"logits", DataType::kFp32, {-1, 10}}};
    for (int i = 1; i <= kExits; ++i) {
      const std::string name = std::to_string(i);
      spec.exits.push_back(
          {name, fs::path(kSourceDir) / "models/ee_s/1" / ("exit" + name + ".onnx")});
    }
    return spec;
  }

  // A model whose only batch runs until it is stopped.
  ModelSpec EndlessSpec() const {
    ModelSpec spec = Spec();
    if (Name() != "onnxruntime") return spec;
    spec.inputs.clear();
    spec.exits = {{"1", fs::path(kSourceDir) / "tests/data/long.onnx"}};
    return spec;
  }
  ExitId EndlessExit() const { return Name() == "onnxruntime" ? ExitId{0} : kEndless; }
  Row EndlessRow() const {
    return Name() == "onnxruntime" ? Row().Add<float>({1, 4}, {0, 0, 0, 0}) : Image(1);
  }

  static Row Image(std::uint64_t seed) {
    Rng rng = Rng::Stream(seed, "conformance/image");
    std::vector<float> pixels(28 * 28);
    for (float& pixel : pixels) pixel = static_cast<float>(rng.Normal());
    return Row().Add<float>({1, 1, 28, 28}, pixels);
  }
  static std::vector<Row> Images(int count, std::uint64_t seed = 1) {
    std::vector<Row> rows;
    for (int i = 0; i < count; ++i) rows.push_back(Image(seed + static_cast<std::uint64_t>(i)));
    return rows;
  }

  ModelHandle Load(ModelSpec spec) {
    auto handle = engine_->Load(spec, LaneSpec{});
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(ModelHandle{});
  }

#ifdef TACTUS_HAVE_CUDA
  testing::ScriptedDriver cuda_;
#endif
  std::unique_ptr<Engine> engine_;
};

TEST_P(EngineConformance, ReportsEachBatchExactlyOnceFromSeveralThreads) {
  const ModelHandle model = Load(Spec());
  constexpr int kThreads = 3;
  constexpr int kBatches = 12;
  Answers answers;
  std::vector<std::thread> lanes;
  for (int t = 0; t < kThreads; ++t) {
    lanes.emplace_back([&, t] {
      for (int i = 0; i < kBatches; ++i) {
        std::vector<Row> rows = Images(1 + i % 10);
        std::vector<RowInputs> inputs;
        for (Row& row : rows) inputs.push_back(row.inputs());
        const BatchId id{static_cast<std::uint64_t>(t * kBatches + i)};
        engine_->Submit(model, {id, ModelId{0}, ExitId(i % kExits), inputs}, answers);
        const BatchResult result = answers.Wait(id);
        EXPECT_TRUE(result.status) << result.status.error().message;
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(answers.batches(), kThreads * kBatches);
  for (int i = 0; i < kThreads * kBatches; ++i) {
    EXPECT_EQ(answers.times(BatchId{static_cast<std::uint64_t>(i)}), 1) << "batch " << i;
  }
}

TEST_P(EngineConformance, CompletesTheTensorsOfTheModel) {
  ModelSpec spec = Spec();
  ASSERT_TRUE(engine_->Load(spec, LaneSpec{}));
  ASSERT_EQ(spec.inputs.size(), 1u);
  EXPECT_THAT(spec.inputs[0].dims, ElementsAre(-1, 1, 28, 28));
  ASSERT_EQ(spec.outputs.size(), 1u);
  EXPECT_EQ(spec.outputs[0].dims[0], -1);
  EXPECT_FALSE(spec.exits.empty());
}

TEST_P(EngineConformance, ABatchOfSevenGivesTheAnswersOfSevenSingleRuns) {
  ModelSpec spec = Spec();
  const ModelHandle model = engine_->Load(spec, LaneSpec{}).value();
  std::vector<Row> rows = Images(7);
  const BatchResult together = RunBatch(*engine_, model, rows, 1);
  ASSERT_TRUE(together.status);
  ASSERT_EQ(together.output->tensors.size(), spec.outputs.size());
  const BatchOutput::Tensor& all = together.output->tensors[0];
  EXPECT_EQ(all.shape[0], 7);
  EXPECT_EQ(all.data.size(), static_cast<std::size_t>(*ElementCount(all.shape)) * sizeof(float));
  for (int i = 0; i < 7; ++i) {
    const BatchResult single = RunBatch(*engine_, model, rows[i], 1);
    ASSERT_TRUE(single.status);
    const BatchOutput::Tensor& one = single.output->tensors[0];
    EXPECT_EQ(one.shape[0], 1);
    const auto expected = Values<float>(one.Row(0, 1));
    const auto got = Values<float>(all.Row(i, 7));
    EXPECT_THAT(got, ::testing::Pointwise(::testing::FloatNear(1e-4f), expected)) << "row " << i;
  }
}

TEST_P(EngineConformance, AnswersStayGoodAfterTheModelAndTheRequestAreGone) {
  const ModelHandle model = Load(Spec());
  BatchResult kept;
  std::vector<float> before;
  {
    std::vector<Row> rows{Image(5).Own()};
    kept = RunBatch(*engine_, model, rows);
    ASSERT_TRUE(kept.status);
    before = Values<float>(kept.output->tensors[0].data);
  }
  engine_->Unload(model);
  EXPECT_EQ(Values<float>(kept.output->tensors[0].data), before);
  engine_.reset();
  EXPECT_EQ(Values<float>(kept.output->tensors[0].data), before);
}

TEST_P(EngineConformance, UnloadLetsTheWorkInFlightEndAndRefusesTheRest) {
  const ModelHandle model = Load(Spec());
  Answers answers;
  std::atomic<int> submitted{0};
  std::vector<bool> refused;
  std::thread lane([&] {
    for (std::uint64_t i = 0; refused.size() < 3; ++i) {
      std::vector<Row> rows = Images(3);
      std::vector<RowInputs> inputs;
      for (Row& row : rows) inputs.push_back(row.inputs());
      ++submitted;
      engine_->Submit(model, {BatchId{i}, ModelId{0}, ExitId{3}, inputs}, answers);
      const BatchResult result = answers.Wait(BatchId{i});
      EXPECT_EQ(answers.times(BatchId{i}), 1);
      if (result.status) {
        EXPECT_TRUE(refused.empty()) << "a batch ran after the model was unloaded";
      } else {
        EXPECT_EQ(result.status.error().code, ErrorCode::kUnavailable);
        refused.push_back(true);
      }
    }
  });
  while (submitted < 3) std::this_thread::yield();
  engine_->Unload(model);
  lane.join();
  EXPECT_EQ(answers.batches(), static_cast<std::size_t>(submitted));
  engine_->Unload(model);  // a dead handle is no harm
}

TEST_P(EngineConformance, ABrokenModelIsAnErrorThatNamesIt) {
  ModelSpec spec = Spec();
  std::string named = "ee_s";
  const TemporaryFolder folder;
  const fs::path broken = folder / "broken.onnx";
  if (Name() == "onnxruntime") {
    std::ofstream(broken) << "this is not a graph";
    spec.exits[2].graph = broken;
    named = broken.filename().string();
  } else if (Name() == "identity" || Name() == kFakeCuda) {
    spec.inputs.clear();
  } else {
    spec.outputs[0].dims.clear();
  }
  const auto handle = engine_->Load(spec, LaneSpec{});
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(handle.error().message, ::testing::HasSubstr(named));
  Load(Spec());  // and does not spoil the engine
}

TEST_P(EngineConformance, TerminateStopsABatchThatWouldNotEnd) {
  if (!engine_->traits().terminates) GTEST_SKIP() << "this engine cannot stop a batch";
  const ModelHandle model = Load(EndlessSpec());
  engine_->Terminate(BatchId{1});  // not running yet: no effect
  Answers answers;
  std::thread lane([&] {
    std::vector<Row> rows{EndlessRow()};
    const std::vector<RowInputs> inputs{rows[0].inputs()};
    engine_->Submit(model, {BatchId{1}, ModelId{0}, EndlessExit(), inputs}, answers);
  });
  // The lane may not have begun when the first of these comes, so say it until it is heard.
  while (answers.times(BatchId{1}) == 0) {
    engine_->Terminate(BatchId{1});
    std::this_thread::yield();
  }
  lane.join();
  const BatchResult result = answers.Wait(BatchId{1});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(result.output, nullptr);
  EXPECT_EQ(answers.times(BatchId{1}), 1);
}

TEST_P(EngineConformance, RunsOnAfterABatchWasStopped) {
  if (!engine_->traits().terminates) GTEST_SKIP() << "this engine cannot stop a batch";
  const ModelHandle model = Load(Spec());
  // Stopping a batch as it ends must not stop the one that follows in its place.
  for (std::uint64_t i = 0; i < 20; ++i) {
    std::vector<Row> rows = Images(2);
    std::thread stopper([&] { engine_->Terminate(BatchId{i}); });
    RunBatch(*engine_, model, rows, 0, i);
    stopper.join();
    EXPECT_TRUE(RunBatch(*engine_, model, rows, 0, 1000 + i).status);
  }
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const EngineInfo& info : Engines()) {
    // Operators run one call at a time, without exits: op/op_engine_test.cc. PyTorch's packages are
    // for a device: aoti_on_fake_device_test.cc.
    if (info.name == "op" || info.name == "aoti") continue;
    names.push_back(info.name);
    if (info.name != "emulated") names.push_back(std::string(kIsolated) + info.name);
  }
#ifdef TACTUS_HAVE_CUDA
  names.push_back(kFakeCuda);
#endif
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EngineConformance, ::testing::ValuesIn(EngineNames()),
                         [](const auto& info) { return info.param; });

TEST(EngineRegistry, AnUnknownNameIsAnErrorThatListsThoseThatExist) {
  const auto engine = MakeEngine("tensorrt", {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("identity"));
}

TEST(EngineRegistry, AnEmulatedEngineWithoutLatenciesIsAnError) {
  const auto engine = MakeEngine("emulated", {});
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("profile"));
}

TEST(EmulatedEngine, SaysThatItIsEmulatedAndAnswersZerosOfTheStatedShape) {
  EngineOptions options;
  options.emulated.latencies = EmulatedLatencies;
  auto engine = MakeEngine("emulated", options).value();
  EXPECT_TRUE(engine->traits().emulated);
  ModelSpec spec{.name = "m", .max_batch = 4};
  spec.outputs = {{"map", DataType::kInt16, {-1, 2, -1}}, {"text", DataType::kBytes, {-1, 2}}};
  const ModelHandle model = engine->Load(spec, LaneSpec{}).value();
  std::vector<Row> rows(3);
  const BatchResult result = RunBatch(*engine, model, rows);
  const auto& tensors = result.output->tensors;
  EXPECT_THAT(tensors[0].shape, ElementsAre(3, 2, 1));
  EXPECT_EQ(Values<std::int16_t>(tensors[0].data), std::vector<std::int16_t>(6));
  EXPECT_THAT(tensors[1].shape, ElementsAre(3, 2));
  EXPECT_EQ(tensors[1].Row(2, 3).size(), 2 * 4u);  // two empty strings
  EXPECT_GE(result.infer, Micros(20) * 3 / 2);     // never less than half of the profile's time
}

TEST(IdentityEngine, AnswersWithTheVeryBytesOfARequestThatMayBeKept) {
  auto engine = MakeEngine("identity", {}).value();
  ModelSpec spec{.name = "echo", .max_batch = 2};
  spec.inputs = {{"IN", DataType::kUint16, {-1, 3}}, {"TEXT", DataType::kBytes, {-1, 1}}};
  const ModelHandle model = engine->Load(spec, LaneSpec{}).value();
  std::vector<Row> rows;
  rows.push_back(Row().Add<std::uint16_t>({1, 3}, {1, 2, 3}).AddStrings({1, 1}, {"one"}).Own());
  const BatchResult alias = RunBatch(*engine, model, rows);
  EXPECT_EQ(alias.output->tensors[0].data.data(), rows[0].inputs().inputs[0].data);
  rows.push_back(Row().Add<std::uint16_t>({1, 3}, {4, 5, 6}).AddStrings({1, 1}, {"twenty"}));
  const BatchResult copy = RunBatch(*engine, model, rows);
  EXPECT_EQ(Values<std::uint16_t>(copy.output->tensors[0].data),
            (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(copy.output->tensors[1].Row(0, 2).size(), 4 + 3u);
  EXPECT_EQ(copy.output->tensors[1].Row(1, 2).size(), 4 + 6u);
}

TEST(RefuseOptional, IsOfEnginesThatNeedAllInputs) {
  ModelSpec spec{.name = "echo", .max_batch = 4};
  spec.inputs = {{"IN", DataType::kUint16, {-1, 2}, {}, true}};
  for (const char* name : {"identity", "op"}) {
    const auto refused = MakeEngine(name, {}).value()->Load(spec, LaneSpec{});
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message,
                ::testing::StartsWith("model 'echo': input 'IN' is optional, but "));
  }
}

TEST(IdentityEngine, ReshapesBothWays) {
  auto engine = MakeEngine("identity", {}).value();
  ModelSpec spec{.name = "echo", .max_batch = 4};
  spec.inputs = {{"IN", DataType::kUint16, {-1, 1, -1, 2}, Shape{-1, -1, 2}}};
  spec.outputs = {{"OUT", DataType::kUint16, {-1, -1, 2, 1}, Shape{-1, -1, 2}}};
  const ModelHandle model = engine->Load(spec, LaneSpec{}).value();
  std::vector<Row> rows;
  for (const std::uint16_t first : {0, 10}) {
    rows.push_back(Row().Add<std::uint16_t>({1, 1, 3, 2}, std::vector<std::uint16_t>(6, first)));
  }
  const BatchResult result = RunBatch(*engine, model, rows);
  ASSERT_TRUE(result.status);
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, 3, 2, 1));
  EXPECT_EQ(Values<std::uint16_t>(result.output->tensors[0].Row(1, 2)),
            std::vector<std::uint16_t>(6, 10));
  spec.outputs[0].reshape.reset();
  const auto other = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("'OUT' is UINT16 [-1,-1,2,1], but"));
}

}  // namespace
}  // namespace tactus
