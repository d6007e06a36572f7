// What this engine promises beyond the conformance test: true answers, and an error with a remedy
// for everything that can be wrong with a graph.
#include "engines/onnxruntime/onnxruntime_engine.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "base/source_path_for_test.h"
#include "engines/onnxruntime/arena_growth.h"
#include "engines/onnxruntime/batch_tensors.h"
#include "engines/onnxruntime/engine_fixture_for_test.h"
#include "engines/onnxruntime/library.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using testing::Row;
using testing::RunBatch;
using testing::Values;

const fs::path kRoot = kSourceDir;

struct Reference {
  std::vector<std::vector<float>> images;               // scaled
  std::vector<std::vector<std::vector<float>>> logits;  // by image, exit
};

Reference ReadReference() {
  Reference reference;
  std::ifstream file(kRoot / "tests/data/ee_s_reference.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "image") {
      int label = 0;
      words >> label;
      std::vector<float> pixels{std::istream_iterator<float>(words), {}};
      for (float& pixel : pixels) pixel = (pixel / 255 - 0.2860f) / 0.3530f;
      reference.images.push_back(std::move(pixels));
      reference.logits.emplace_back(4);
    } else if (kind == "logits") {
      std::size_t image = 0;
      std::size_t exit = 0;
      words >> image >> exit;
      reference.logits[image][exit - 1] = {std::istream_iterator<float>(words), {}};
    }
  }
  return reference;
}

class OnnxRuntimeEngine : public OnnxEngineFixture {
 protected:
  static ModelSpec Small(const std::string& graph, int max_batch) {
    ModelSpec spec{.name = graph, .max_batch = max_batch};
    spec.exits = {{"1", kRoot / "tests/data" / (graph + ".onnx")}};
    return spec;
  }
  ModelHandle Load(ModelSpec spec) {
    auto handle = engine_->Load(spec, LaneSpec{});
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(ModelHandle{});
  }
};

TEST_F(OnnxRuntimeEngine, AnswersAsOnnxRuntimeCalledFromPythonDid) {
  const Reference reference = ReadReference();
  ASSERT_EQ(reference.images.size(), 4u);
  ModelSpec spec{.name = "ee_s", .max_batch = 10};
  for (int i = 1; i <= 4; ++i) {
    spec.exits.push_back(
        {std::to_string(i), kRoot / "models/ee_s/1" / ("exit" + std::to_string(i) + ".onnx")});
  }
  const ModelHandle model = Load(spec);
  std::vector<Row> rows;
  for (const auto& image : reference.images)
    rows.push_back(Row().Add<float>({1, 1, 28, 28}, image));
  for (int exit = 0; exit < 4; ++exit) {
    const BatchResult result = RunBatch(*engine_, model, rows, exit);
    ASSERT_TRUE(result.status) << result.status.error().message;
    EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(4, 10));
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(reference.logits[i][exit].size(), 10u);
      EXPECT_THAT(Values<float>(result.output->tensors[0].Row(i, 4)),
                  Pointwise(FloatNear(1e-3f), reference.logits[i][exit]))
          << "image " << i << ", exit " << exit + 1;
    }
  }
}

std::set<pid_t> Threads() {
  std::set<pid_t> threads;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    threads.insert(std::stoi(task.path().filename()));
  }
  return threads;
}

// Where the thread may run, when it has begun: it moves itself to its cores.
cpu_set_t AwaitOneCore(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int tries = 0; tries < 10'000 && CPU_COUNT(&set) != 1; ++tries) {
    EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return set;
}

TEST_F(OnnxRuntimeEngine, ASessionHasTheThreadsOfItsLaneOnItsCores) {
  const int core = sched_getcpu();
  const LaneSpec lane{.placement = CpuPlacement{.threads = 3, .cores = {core}}};
  ModelSpec spec{.name = "ee_s", .max_batch = 10};
  spec.load = 1;
  spec.exits = {{"1", kRoot / "models/ee_s/1/exit1.onnx"}};
  const ModelHandle alone = Load(spec);
  const std::set<pid_t> before = Threads();
  const auto together = engine_->Load(spec, lane);
  ASSERT_TRUE(together);
  int added = 0;
  for (const pid_t thread : Threads()) {
    if (before.contains(thread)) continue;
    ++added;
    const cpu_set_t set = AwaitOneCore(thread);
    EXPECT_EQ(CPU_COUNT(&set), 1);
    EXPECT_TRUE(CPU_ISSET(core, &set));
  }
  EXPECT_EQ(added, 2) << "the third is whoever runs the batch";
  const auto again = engine_->Load(spec, lane);
  EXPECT_EQ(Threads().size(), before.size() + 2) << "one session for lanes of the same cores";
  std::vector<Row> rows(3, Row().Add<float>({1, 1, 28, 28}, std::vector<float>(784, 0.5F)));
  const BatchResult expected = RunBatch(*engine_, alone, rows, 0);
  const BatchResult result = RunBatch(*engine_, *together, rows, 0);
  ASSERT_TRUE(result.status && expected.status);
  EXPECT_THAT(Values<float>(result.output->tensors[0].data),
              Pointwise(FloatNear(1e-4F), Values<float>(expected.output->tensors[0].data)));
}

TEST_F(OnnxRuntimeEngine, KnowsItsVersionAndTheMemoryOfAModel) {
  EXPECT_THAT(engine_->traits().name, ::testing::MatchesRegex("onnxruntime 1\\.[0-9]+\\..*"));
  const ModelHandle model = Load(Small("pair", 4));
  EXPECT_EQ(engine_->Memory(model).weight_bytes, fs::file_size(kRoot / "tests/data/pair.onnx"));
}

// What an operator sees of the memory that runs leave behind, which looks like a leak.
TEST_F(OnnxRuntimeEngine, SaysWhatItsArenasHoldByModel) {
  ModelSpec spec{.name = "ee_s", .version = 3, .max_batch = 10};
  spec.load = 1;
  spec.exits = {{"1", kRoot / "models/ee_s/1/exit1.onnx"}};
  const ModelHandle first = Load(spec);
  const ModelHandle second = Load(spec);
  std::vector<Row> rows(3, Row().Add<float>({1, 1, 28, 28}, std::vector<float>(784, 0.5F)));
  ASSERT_TRUE(RunBatch(*engine_, first, rows, 0).status);
  const std::vector<ArenaUse> arenas = engine_->Arenas();
  ASSERT_EQ(arenas.size(), 1u) << "two lanes of one load share their arena";
  EXPECT_EQ(arenas[0].model, "ee_s");
  EXPECT_EQ(arenas[0].version, 3);
  EXPECT_GT(arenas[0].in_use_bytes, 0u);
  EXPECT_GT(arenas[0].bytes, arenas[0].in_use_bytes) << "it keeps what the run no longer uses";
  engine_->Unload(first);
  engine_->Unload(second);
  EXPECT_TRUE(engine_->Arenas().empty());
}

// Without this the memory of the largest call ever made would stay taken where no call follows it.
TEST_F(OnnxRuntimeEngine, GivesBackWhatRestsInItsArenas) {
  constexpr std::int64_t kMany = 8 << 20;
  ModelSpec spec = Small("pair", 4);
  spec.load = 1;
  const ModelHandle model = Load(spec);
  std::vector<Row> rows(1, Row()
                               .Add<float>({1, kMany, 2}, std::vector<float>(2 * kMany, 1.0F))
                               .Add<float>({1, kMany, 2}, std::vector<float>(2 * kMany, 2.0F)));
  // What the first run took stays: this one takes little.
  ASSERT_TRUE(RunBatch(*engine_, model,
                       Row().Add<float>({1, 1, 2}, {1, 1}).Add<float>({1, 1, 2}, {2, 2}), 0)
                  .status);
  ASSERT_TRUE(RunBatch(*engine_, model, rows, 0).status);
  const std::uint64_t before = engine_->Arenas()[0].bytes;
  ASSERT_GT(before, std::uint64_t{kMany}) << "the run left nothing: this test shows nothing";
  std::uint64_t gave_back = 0;
  for (std::uint64_t look = 0; look < 4 * ArenaGrowth::kStill; ++look) {
    gave_back += engine_->GiveBackAtRest() ? 1 : 0;
  }
  EXPECT_EQ(gave_back, 1u);
  EXPECT_LT(engine_->Arenas()[0].bytes, before / 4);
  EXPECT_TRUE(RunBatch(*engine_, model, rows, 0).status) << "it takes it again";
}

// The same of what rows were copied into, where only small batches follow.
TEST_F(OnnxRuntimeEngine, LetsGoOfBuffersThatWereNeededOnce) {
  const std::vector<TensorSpec> specs{{"x", DataType::kFp32, {-1, -1}}};
  BatchInputs inputs;
  const auto gather = [&](std::int64_t count) {
    const std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
    Row row = Row().Add<float>({1, count}, values);
    const std::vector<RowInputs> rows{row.inputs(), row.inputs()};  // not one behind the other
    ASSERT_TRUE(inputs.Gather(specs, true, rows));
  };
  constexpr std::size_t kLarge = 4 << 20;
  gather(kLarge);
  EXPECT_GE(inputs.kept(), 2 * sizeof(float) * kLarge);
  for (int i = 0; i < 128; ++i) gather(1);
  EXPECT_LT(inputs.kept(), 1000u);
  for (int i = 0; i < 128; ++i) gather(i % 64 == 0 ? kLarge : 1);
  EXPECT_GE(inputs.kept(), 2 * sizeof(float) * kLarge) << "it is needed now and then";
}

TEST_F(OnnxRuntimeEngine, TakesInputsInTheOrderOfTheConfigurationAndOpenDimensions) {
  ModelSpec spec = Small("pair", 4);
  spec.inputs = {{"b", DataType::kFp32, {-1, -1, 2}}, {"a", DataType::kFp32, {-1, -1, -1}}};
  spec.outputs = {{"rows", DataType::kFp32, {-1, -1}}};  // one of its two
  const ModelHandle model = Load(spec);
  std::vector<Row> rows;
  for (const float base : {0.f, 100.f}) {
    rows.push_back(Row()
                       .Add<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6})
                       .Add<float>({1, 3, 2}, std::vector<float>(6, base)));
  }
  const BatchResult result = RunBatch(*engine_, model, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  ASSERT_EQ(result.output->tensors.size(), 1u);
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(9, 12, 309, 312));
}

TEST_F(OnnxRuntimeEngine, RunsRowsWhereTheyLieWhenTheyAreAdjacent) {
  ModelSpec spec = Small("pair", 4);
  const ModelHandle model = Load(spec);
  const std::vector<float> a{1, 2, 3, 4};
  const std::vector<float> b{10, 20, 30, 40};
  const Shape shape{1, 1, 2};
  std::vector<std::vector<TensorView>> views(2);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto* values : {&a, &b}) {
      const auto* first = reinterpret_cast<const std::byte*>(values->data() + 2 * i);
      views[i].push_back({first, 8, shape});
    }
  }
  const std::vector<RowInputs> rows{{views[0], {}}, {views[1], {}}};
  testing::Answers answers;
  engine_->Submit(model, {BatchId{1}, ModelId{0}, ExitId{0}, rows}, answers);
  const BatchResult result = answers.Wait(BatchId{1});
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(Values<float>(result.output->tensors[0].data), ElementsAre(11, 22, 33, 44));
}

// Without this an answer is read from memory that holds another request by then.
TEST_F(OnnxRuntimeEngine, AnOutputThatIsAnInputIsTheAnswersOwn) {
  const ModelHandle model = Load(Small("passed_on", 4));
  const auto rows_of = [](float first) {
    std::vector<Row> rows;
    for (const float x : {first, first + 10}) {
      rows.push_back(Row()
                         .Add<float>({1, 2}, {x, x + 1})
                         .Add<std::int64_t>({1}, {static_cast<std::int64_t>(x)}));
    }
    return rows;
  };
  std::vector<Row> sent = rows_of(1);
  const BatchResult many = RunBatch(*engine_, model, sent);
  ASSERT_TRUE(many.status) << many.status.error().message;
  // It is run where it lies, and is gone when the answer is read.
  const BatchResult one = RunBatch(*engine_, model, rows_of(7)[0]);
  ASSERT_TRUE(one.status) << one.status.error().message;
  sent = rows_of(1000);
  RunBatch(*engine_, model, sent);  // is gathered where the first two were
  EXPECT_THAT(Values<float>(many.output->tensors[0].data), ElementsAre(1, 2, 11, 12));
  EXPECT_THAT(Values<std::int64_t>(many.output->tensors[1].data), ElementsAre(1, 11));
  EXPECT_THAT(Values<float>(many.output->tensors[2].data), ElementsAre(2, 4, 22, 24));
  EXPECT_THAT(Values<float>(one.output->tensors[0].data), ElementsAre(7, 8));
  EXPECT_THAT(Values<std::int64_t>(one.output->tensors[1].data), ElementsAre(7));
}

TEST_F(OnnxRuntimeEngine, BytesThatAreNotAlignedAreCopiedNotMisread) {
  const ModelHandle model = Load(Small("single", 0));
  const std::vector<std::int64_t> values{7, -8, 1LL << 40};
  std::vector<std::byte> body(1 + sizeof(std::int64_t) * 3);  // as behind a header of odd length
  std::memcpy(body.data() + 1, values.data(), body.size() - 1);
  const Shape shape{3};
  const std::vector<TensorView> views{{body.data() + 1, body.size() - 1, shape}};
  const std::vector<RowInputs> rows{{views, {}}};
  testing::Answers answers;
  engine_->Submit(model, {BatchId{1}, ModelId{0}, ExitId{0}, rows}, answers);
  const BatchResult result = answers.Wait(BatchId{1});
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(3));
  EXPECT_THAT(Values<std::int64_t>(result.output->tensors[0].data),
              ElementsAre(14, -16, 1LL << 41));
}

TEST_F(OnnxRuntimeEngine, StringsKeepEveryByteAndEveryRowItsOwn) {
  const ModelHandle model = Load(Small("strings", 4));
  std::vector<Row> rows;
  rows.push_back(Row().AddStrings({1, 2}, {"", std::string("a\0b", 3)}));
  rows.push_back(Row().AddStrings({1, 2}, {std::string(300, 'x'), "\xc3\xa9"}));
  const BatchResult result = RunBatch(*engine_, model, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  const BatchOutput::Tensor& same = result.output->tensors[0];
  EXPECT_THAT(same.shape, ElementsAre(2, 2));
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorView sent = rows[i].inputs().inputs[0];
    EXPECT_EQ(Values<char>(same.Row(i, 2)), Values<char>({sent.data, sent.bytes})) << "row " << i;
  }
}

TEST_F(OnnxRuntimeEngine, InputsThatAreNotWhatTheirShapeSaysAreRefused) {
  const ModelHandle strings = Load(Small("strings", 4));
  const ModelHandle pair = Load(Small("pair", 4));
  struct Case {
    const char* about;
    ModelHandle model;
    std::vector<Row> rows;
  };
  const auto length = [](std::uint32_t value) {
    return Row().Add<std::uint32_t>({1, 2}, {value, 0});
  };
  const auto one = [](Shape shape, int values) {
    return Row()
        .Add<float>(shape, std::vector<float>(values))
        .Add<float>(shape, std::vector<float>(values));
  };
  std::vector<Case> cases;
  cases.push_back({"a string that ends beyond its tensor", strings, {length(5)}});
  cases.push_back({"a string of four gigabytes", strings, {length(0xffffffff)}});
  cases.push_back({"bytes behind the last string",
                   strings,
                   {Row().AddBytes({1, 2}, std::vector<std::byte>(9))}});
  cases.push_back({"more strings than there are bytes for",
                   strings,
                   {Row().AddBytes({1'000'000'000'000, 2}, std::vector<std::byte>(8))}});
  cases.push_back({"too few numbers", pair, {one({1, 2, 3}, 5)}});
  cases.push_back({"a shape beyond 2^62", pair, {one({1, 1LL << 40, 1LL << 40}, 4)}});
  cases.push_back({"a negative dimension", pair, {one({1, -2, 3}, 6)}});
  cases.push_back({"rows of different shapes", pair, {one({1, 2, 3}, 6), one({1, 3, 2}, 6)}});
  for (Case& c : cases) {
    const BatchResult result = RunBatch(*engine_, c.model, c.rows);
    ASSERT_FALSE(result.status) << c.about;
    EXPECT_EQ(result.status.error().code, ErrorCode::kInvalidArgument) << c.about;
    EXPECT_THAT(result.status.error().message, HasSubstr("input '")) << c.about;
  }
}

TEST_F(OnnxRuntimeEngine, AnEmptyTensorIsATensor) {
  const ModelHandle model = Load(Small("pair", 4));
  const BatchResult result =
      RunBatch(*engine_, model, Row().Add<float>({1, 2, 0}, {}).Add<float>({1, 2, 0}, {}));
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(1, 2, 0));
  EXPECT_TRUE(result.output->tensors[0].data.empty());
}

TEST_F(OnnxRuntimeEngine, AGraphThatFailsWhileItRunsIsAnErrorOfTheBatchOnly) {
  const ModelHandle model = Load(Small("pair", 4));
  const BatchResult bad = RunBatch(*engine_, model,
                                   Row()
                                       .Add<float>({1, 2, 3}, std::vector<float>(6))
                                       .Add<float>({1, 5, 7}, std::vector<float>(35)));
  ASSERT_FALSE(bad.status);
  EXPECT_EQ(bad.status.error().code, ErrorCode::kInternal);
  EXPECT_THAT(bad.status.error().message, HasSubstr("pair.onnx"));
  const Row good = Row().Add<float>({1, 1, 1}, {1}).Add<float>({1, 1, 1}, {2});
  EXPECT_TRUE(RunBatch(*engine_, model, good).status);
}

// Builds of the vendor tell it of sessions and of runs that fail, through a database in the user's
// cache: nobody may hear of the models, and a bad row would cost twenty writes.
TEST_F(OnnxRuntimeEngine, NothingIsKeptForTheVendor) {
  const ModelHandle model = Load(Small("pair", 4));
  const BatchResult bad = RunBatch(*engine_, model,
                                   Row()
                                       .Add<float>({1, 2, 3}, std::vector<float>(6))
                                       .Add<float>({1, 5, 7}, std::vector<float>(35)));
  EXPECT_FALSE(bad.status);
  for (const fs::directory_entry& open : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;  // the iterator's own
    const std::string path = fs::read_symlink(open.path(), closed).string();
    EXPECT_THAT(path, Not(HasSubstr("onnxruntime.db")));
    EXPECT_THAT(path, Not(HasSubstr("mat-debug")));
  }
}

TEST_F(OnnxRuntimeEngine, AConfigurationThatContradictsTheGraphIsAnError) {
  struct Case {
    const char* expected;
    std::vector<TensorSpec> inputs, outputs;
    int max_batch = 4;
  };
  const TensorSpec a{"a", DataType::kFp32, {-1, -1, -1}};
  const TensorSpec b{"b", DataType::kFp32, {-1, -1, -1}};
  const std::vector<Case> cases{
      {"no input 'c'", {{"c", DataType::kFp32, {-1, 2, 2}}}, {}},
      {"its input 'b' is not stated", {a}, {}},
      {"is FP32 [-1,-1,-1] in the graph, not INT8", {a, {"b", DataType::kInt8, {-1, -1, -1}}}, {}},
      {"not FP32 [-1,2]", {a, {"b", DataType::kFp32, {-1, 2}}}, {}},
      {"no output 'total'", {a, b}, {{"total", DataType::kFp32, {-1, 1}}}},
  };
  for (const Case& c : cases) {
    ModelSpec spec = Small("pair", c.max_batch);
    spec.inputs = c.inputs;
    spec.outputs = c.outputs;
    const Error error = LoadError(spec);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, AllOf(HasSubstr(c.expected), HasSubstr("pair.onnx")));
  }
  const Error fixed = LoadError(Small("single", 8));
  EXPECT_THAT(fixed.message, HasSubstr("no open batch dimension"));
}

TEST_F(OnnxRuntimeEngine, AScalarMayBeStatedAsOneElement) {
  // config.pbtxt has no way to write dims that are none.
  ModelSpec spec = Small("scalar", 0);
  spec.inputs = {{"x", DataType::kFp32, {1}}, {"word", DataType::kBytes, {1}}};
  spec.outputs = {{"y", DataType::kFp32, {1}}, {"same", DataType::kBytes, {1}}};
  Row row = Row().Add<float>({1}, {1.5F}).AddStrings({1}, {"one"});
  const auto stated = RunBatch(*engine_, Load(spec), row);
  ASSERT_TRUE(stated.status) << stated.status.error().message;
  EXPECT_THAT(stated.output->tensors[0].shape, ElementsAre(1));
  EXPECT_THAT(Values<float>(stated.output->tensors[0].data), ElementsAre(3.0F));
  EXPECT_THAT(stated.output->tensors[1].shape, ElementsAre(1));
  EXPECT_EQ(stated.output->tensors[1].data.size(), 7U);
  // Where nothing is stated it is what the graph says.
  row = Row().Add<float>({}, {2.F}).AddStrings({}, {"one"});
  const auto taken = RunBatch(*engine_, Load(Small("scalar", 0)), row);
  ASSERT_TRUE(taken.status) << taken.status.error().message;
  EXPECT_TRUE(taken.output->tensors[0].shape.empty());
  spec.inputs[0].dims = {2};
  EXPECT_THAT(LoadError(spec).message, HasSubstr("input 'x' is FP32 [] in the graph"));
}

TEST_F(OnnxRuntimeEngine, ExitsWithDifferentTensorsAreAnError) {
  ModelSpec spec = Small("pair", 4);
  spec.exits.push_back({"2", kRoot / "tests/data/strings.onnx"});
  EXPECT_THAT(LoadError(spec).message, HasSubstr("strings.onnx"));
}

TEST_F(OnnxRuntimeEngine, SaysWhatTheKernelsOfABatchDid) {
  ModelSpec spec{.name = "ee_s", .max_batch = 4};
  spec.exits = {{"1", kRoot / "models/ee_s/1/exit1.onnx"}};
  const ModelHandle model = Load(spec);
  std::vector<Row> rows(3, Row().Add<float>({1, 1, 28, 28}, std::vector<float>(784)));
  std::vector<RowInputs> inputs;
  for (Row& row : rows) inputs.push_back(row.inputs());
  const std::vector<BatchJob> jobs{{BatchId{1}, ModelId{0}, ExitId{0}, std::span(inputs).first(1)},
                                   {BatchId{2}, ModelId{0}, ExitId{0}, inputs}};
  const auto works = engine_->Examine(model, jobs);
  ASSERT_TRUE(works) << works.error().message;
  ASSERT_EQ(works->size(), 2u);
  const auto sum = [](const BatchWork& work, double KernelWork::*what) {
    double all = 0;
    for (const KernelWork& kernel : work) all += kernel.*what;
    return all;
  };
  // Three convolutions of 3 x 3 at 28 x 28 places: 1 to 16 channels, then twice 16 to 16.
  const double convolutions = 2. * 784 * 9 * (16 + 2 * 256);
  for (std::size_t i = 0; i < 2; ++i) {
    const double rows_run = i == 0 ? 1 : 3;
    const double operations = sum((*works)[i], &KernelWork::operations);
    EXPECT_GT(operations, rows_run * convolutions);
    EXPECT_LT(operations, rows_run * convolutions * 1.05) << "the rest is small";
    // 16 x 9 + 2 x 16 x 144 weights, 3 x 16 biases, a classifier of 160 and 10, four bytes each
    EXPECT_EQ(sum((*works)[i], &KernelWork::weight_bytes), 4 * (144 + 4608 + 48 + 170));
  }
  EXPECT_DOUBLE_EQ(sum((*works)[1], &KernelWork::activation_bytes),
                   3 * sum((*works)[0], &KernelWork::activation_bytes));
  engine_->Unload(model);
  EXPECT_EQ(engine_->Examine(model, jobs).error().code, ErrorCode::kUnavailable);
}

TEST(OnnxRuntimeLibrary, LooksWhereToldThenBesideTheProgramThenWhereTheSystemDoes) {
  const auto given = LibraryCandidates("/opt/x/libonnxruntime.so.1.2");
  EXPECT_THAT(given, ElementsAre("/opt/x/libonnxruntime.so.1.2"));
  const auto searched = LibraryCandidates({});
  ASSERT_GE(searched.size(), 6u);
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(searched, ::testing::Contains(program / "libonnxruntime.so.1"));
  EXPECT_THAT(searched, ::testing::Contains(program.parent_path() / "lib" / "tactus" /
                                            "libonnxruntime.so.1"));
  EXPECT_EQ(searched.back(), "libonnxruntime.so");
}

// Without it the wheel's command finds no library in the Python package beside it.
TEST(OnnxRuntimeLibrary, TheRootMayBeTheLibraryItself) {
  const TemporaryFolder folder;
  const fs::path library = folder.path() / "libonnxruntime.so.1.99.0";
  std::ofstream(library) << "not one";
  const char* before = std::getenv("ONNXRUNTIME_ROOT");
  const std::string kept = before == nullptr ? "" : before;
  setenv("ONNXRUNTIME_ROOT", library.c_str(), 1);
  const auto of_file = LibraryCandidates({});
  setenv("ONNXRUNTIME_ROOT", folder.path().c_str(), 1);
  const auto of_folder = LibraryCandidates({});
  setenv("ONNXRUNTIME_ROOT", kept.c_str(), 1);  // empty is as if there were none
  EXPECT_EQ(of_file.front(), library);
  EXPECT_EQ(of_folder.front(), folder.path() / "lib" / "libonnxruntime.so.1");
}

// A server logs it for each model: it is one line, however many folders there are.
TEST(OnnxRuntimeLibrary, WhereItLooksIsSaidInOneLine) {
  EXPECT_EQ(WhereLooked("/opt/x/lib.so"), "/opt/x/lib.so");
  EXPECT_EQ(WhereLooked("/tmp"), "libonnxruntime.so.1 or libonnxruntime.so in /tmp");
  const std::string searched = WhereLooked({});
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path().string();
  EXPECT_THAT(searched, ::testing::HasSubstr(", " + program +
                                             "/.cache/onnxruntime/lib and that of "
                                             "each folder above, the system's folders"));
  EXPECT_THAT(searched, ::testing::Not(::testing::HasSubstr("\n")));
  const auto first = searched.find("/.cache/onnxruntime/lib");
  EXPECT_EQ(searched.find("/.cache/onnxruntime/lib", first + 1), std::string::npos);
}

// In a process of its own, because a library that is open stays open.
TEST(OnnxRuntimeLibraryDeathTest, AMissingLibraryIsAnErrorThatSaysWhereItWasLookedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open_nothing = [] {
    const auto engine = MakeOnnxRuntimeEngine("/nonexistent/libonnxruntime.so");
    std::fputs(engine ? "opened" : engine.error().message.c_str(), stderr);
    std::exit(engine ? 0 : 3);
  };
  EXPECT_EXIT(open_nothing(), ::testing::ExitedWithCode(3),
              "^ONNX Runtime's library was not found .looked for /nonexistent/libonnxruntime.so.; "
              "name the library or its folder; [^\n]*$");
}

TEST(OnnxRuntimeLibraryDeathTest, AFileThatIsNotTheLibraryIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open_another = [] {
    const auto engine = MakeOnnxRuntimeEngine("/proc/self/exe");
    std::fputs(engine ? "opened" : engine.error().message.c_str(), stderr);
    std::exit(engine ? 0 : 3);
  };
  EXPECT_EXIT(open_another(), ::testing::ExitedWithCode(3), "/proc/self/exe");
}

}  // namespace
}  // namespace tactus
