#include "profiling/profiler.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "engines/registry.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Takes no time worth speaking of and notes what it was asked to run.
class NotingEngine final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = "noting 1"}; }
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    if (spec.exits.empty()) return InvalidArgument("model '" + spec.name + "' is broken");
    return ModelHandle{++loaded};
  }
  void Unload(ModelHandle) override { ++unloaded; }
  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    asked.push_back({handle.value, job.exit.value(), job.rows.size()});
    for (const RowInputs& row : job.rows) starts.insert(row.inputs[0].data);
    BatchResult result;
    if (fail_at > 0 && static_cast<int>(asked.size()) >= fail_at) {
      result.status = Internal("the device burns");
    }
    if (on_device) {
      result.device = DeviceTimes{Millis(1), Millis(static_cast<int>(asked.size())), Millis(2)};
    }
    if (handle.value == rejects) result.status = InvalidArgument("this is no sample");
    done.Done(job.id, std::move(result));
  }
  MemoryUse Memory(ModelHandle handle) const override { return {1000 * handle.value, 2000}; }
  Expected<std::vector<BatchWork>> Examine(ModelHandle handle,
                                           std::span<const BatchJob> jobs) override {
    if (handle.value == opaque) return Engine::Examine(handle, jobs);
    std::vector<BatchWork> works;
    for (const BatchJob& job : jobs) {
      works.push_back({{1e3 * static_cast<double>(job.rows.size() * (job.exit.value() + 1))}});
    }
    return works;
  }

  struct Asked {
    std::uint64_t model;
    std::uint32_t exit;
    std::size_t rows;
    auto operator<=>(const Asked&) const = default;
  };
  std::uint64_t loaded = 0;
  std::uint64_t unloaded = 0;
  std::uint64_t opaque = 0;   // the model of which it cannot tell what its batches do
  std::uint64_t rejects = 0;  // the model whose batches fail
  bool on_device = false;     // its k-th batch takes k ms in kernels there
  int fail_at = 0;
  std::vector<Asked> asked;
  std::set<const std::byte*> starts;
};

ModelSpec Spec(const std::string& name, int exits, int max_batch) {
  ModelSpec spec{.name = name, .max_batch = max_batch, .slo = Millis(25)};
  spec.inputs = {{"x", DataType::kFp32, {-1, 3}}};
  for (int i = 1; i <= exits; ++i) spec.exits.push_back({std::to_string(i), {}, 0.5 + 0.1 * i});
  return spec;
}

bool GoOn(const ProfilerProgress&) { return true; }

ProfilerOptions Few(int repetitions) {
  return {.repetitions = repetitions, .least = 2, .warm_up = 1, .pin = false};
}

// A mean of the runs that count; warm-up is none of them.
TEST(Profiler, KeepsCopiesApartFromKernelsWhereTheEngineTells) {
  NotingEngine engine;
  Profiler on_processor(engine, Few(2));
  ASSERT_TRUE(on_processor.Add(Spec("a", 1, 1)));
  ASSERT_TRUE(on_processor.Run(GoOn));
  EXPECT_FALSE(on_processor.Result()[0].exits[0].cells[0].device);
  engine.on_device = true;
  engine.asked.clear();
  Profiler profiler(engine, Few(2));
  ASSERT_TRUE(profiler.Add(Spec("a", 1, 1)));
  ASSERT_TRUE(profiler.Run(GoOn));
  // Batch 1 warms up, batches 2 and 3 count.
  EXPECT_EQ(profiler.Result()[0].exits[0].cells[0].device, (ProfiledDeviceTimes{1, 2.5, 2}));
}

TEST(Profiler, AModelThatRejectsItsSamplesIsLeftOutAndTheOthersAreMeasured) {
  NotingEngine engine;
  engine.rejects = 1;
  Profiler profiler(engine, Few(5));
  ASSERT_TRUE(profiler.Add(Spec("a", 1, 2)));
  ASSERT_TRUE(profiler.Add(Spec("b", 1, 2)));
  ASSERT_TRUE(profiler.Run(GoOn));
  EXPECT_TRUE(profiler.complete());
  EXPECT_EQ(profiler.left_out().size(), 1u);
  const auto models = profiler.Result();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "b");
  EXPECT_EQ(models[0].exits[0].cells.size(), 2u);
  EXPECT_EQ(engine.unloaded, 1u);
}

TEST(Profiler, RunsEveryExitAndBatchOfEveryModelEquallyOften) {
  NotingEngine engine;
  Profiler profiler(engine, Few(5));
  ASSERT_TRUE(profiler.Add(Spec("a", 2, 3)));
  ASSERT_TRUE(profiler.Add(Spec("b", 1, 4)));
  ASSERT_TRUE(profiler.Run(GoOn));
  EXPECT_TRUE(profiler.complete());
  std::map<NotingEngine::Asked, int> times;
  for (const auto& asked : engine.asked) ++times[asked];
  EXPECT_EQ(times.size(), 2 * 3 + 1 * 4u);
  for (const auto& [asked, n] : times) EXPECT_EQ(n, 1 + 5) << "warm-up and five that count";
  EXPECT_EQ(engine.starts.size(), 3 + 4u) << "rows of a batch lie apart";

  const std::vector<ProfiledModel> models = profiler.Result();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[0].slo_ms, 25);
  EXPECT_EQ(models[0].weight_bytes, 1000u);
  EXPECT_EQ(models[0].peak_memory_bytes, 2000u);
  ASSERT_EQ(models[0].exits.size(), 2u);
  EXPECT_EQ(models[0].exits[1].name, "2");
  EXPECT_DOUBLE_EQ(models[0].exits[1].accuracy, 0.7);
  ASSERT_EQ(models[1].exits[0].cells.size(), 4u);
  EXPECT_EQ(models[1].exits[0].cells[3].repetitions, 5);
  EXPECT_GT(models[1].exits[0].cells[3].mean_ms, 0);
}

TEST(Profiler, SaysWhatEachBatchUsesAndWhereThatComesFromOrWhyNot) {
  NotingEngine engine;
  engine.opaque = 2;
  Profiler profiler(engine, Few(2));
  ASSERT_TRUE(profiler.Add(Spec("open", 2, 3)));
  ASSERT_TRUE(profiler.Add(Spec("closed", 1, 2)));
  ASSERT_TRUE(profiler.Run(GoOn));
  std::vector<ProfiledModel> models = profiler.Result();
  for (ProfiledModel& model : models) {
    for (ProfiledExit& exit : model.exits) {
      for (ProfileCell& cell : exit.cells) cell.p50_ms = 1;
    }
  }
  MachinePeaks peaks{.cores = 2, .operations = 1e8, .l1 = 1, .l2 = 1, .beyond = 1};
  const auto missing = profiler.AddUses(peaks, models);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_THAT(missing[0], HasSubstr("model 'closed' gets no resource figures: this engine cannot"));
  EXPECT_EQ(models[1].resources_source, "");
  EXPECT_THAT(models[0].resources_source, HasSubstr("noting 1"));
  const auto fma = static_cast<std::size_t>(Resource::kFma);
  for (std::size_t e = 0; e < 2; ++e) {
    for (std::size_t b = 1; b <= 3; ++b) {
      const double share = models[0].exits[e].cells[b - 1].throughput[fma];
      EXPECT_DOUBLE_EQ(share, static_cast<double>(b * (e + 1)) * 1e3 / (1e-3 * 1e8)) << e << b;
    }
  }
}

// Runs of which the last third was half as quick again: shares that go by their median may be off
// as much.
TEST(Profiler, PointsOutWhatBatchesUseWhereTheLatencyMovedWhileItWasMeasured) {
  NotingEngine engine;
  Profiler profiler(engine, Few(6));
  ASSERT_TRUE(profiler.Add(Spec("steady", 1, 2)));
  ASSERT_TRUE(profiler.Add(Spec("moved", 1, 3)));
  const std::vector<Duration> steady{Micros(100), Micros(90),  Micros(100),
                                     Micros(101), Micros(300), Micros(100)};
  std::vector<Duration> moved(6, Micros(100));
  moved[4] = moved[5] = Micros(150);
  Samples samples;
  for (const int batch : {1, 2}) samples[{"steady", 1000, "1", batch}] = steady;
  for (const int batch : {1, 2, 3}) {
    samples[{"moved", 2000, "1", batch}] = batch == 2 ? moved : steady;
  }
  profiler.Adopt(samples);
  ASSERT_TRUE(profiler.complete());
  std::vector<ProfiledModel> models = profiler.Result();
  const MachinePeaks peaks{.cores = 2, .operations = 1e8, .l1 = 1, .l2 = 1, .beyond = 1};
  const auto warnings = profiler.AddUses(peaks, models);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("model 'moved'"));
  EXPECT_THAT(warnings[0], HasSubstr("1 of 3 cells"));
  EXPECT_THAT(warnings[0], HasSubstr("batch 2 of exit 1"));
  EXPECT_THAT(warnings[0], HasSubstr("moved by 50 % while it was measured (bound: 15 %)"));
  EXPECT_THAT(warnings[0], HasSubstr("profile again"));
  EXPECT_NE(models[1].resources_source, "") << "they are there all the same";
}

TEST(MedianDrift, IsThatOfTheThirdThatMovedMost) {
  const auto of = [](const std::vector<int>& micros) {
    std::vector<Duration> runs;
    for (const int run : micros) runs.push_back(Micros(run));
    return MedianDrift(runs);
  };
  EXPECT_EQ(of({}), 0);
  EXPECT_EQ(of({100, 900}), 0) << "too few to tell";
  EXPECT_EQ(of({100, 900, 100, 100, 100, 100, 100, 100, 900}), 0) << "single runs do not count";
  EXPECT_DOUBLE_EQ(of({80, 80, 80, 100, 100, 100, 110, 110, 110}), 0.2);
}

TEST(Profiler, TheCellsTakeTurnsOfAFewRuns) {
  NotingEngine engine;
  Profiler profiler(engine,
                    {.repetitions = 8, .least = 1, .in_a_row = 2, .warm_up = 0, .pin = false});
  ASSERT_TRUE(profiler.Add(Spec("a", 2, 3)));
  ASSERT_TRUE(profiler.Run(GoOn));
  ASSERT_EQ(engine.asked.size(), 8 * 6u);
  for (std::size_t round = 0; round < 4; ++round) {
    const auto begin = engine.asked.begin() + static_cast<std::ptrdiff_t>(round * 12);
    EXPECT_EQ(std::set<NotingEngine::Asked>(begin, begin + 12).size(), 6u) << "round " << round;
    for (int turn = 0; turn < 6; ++turn) EXPECT_EQ(begin[2 * turn], begin[2 * turn + 1]);
  }
}

TEST(Profiler, GoesOnFromTheRunsOfAnEarlierMeasurement) {
  const TemporaryFolder folder;
  const fs::path file = folder / "samples";
  const Machine machine{.fingerprint = "here"};
  {
    NotingEngine engine;
    Profiler first(engine, Few(3));
    ASSERT_TRUE(first.Add(Spec("a model", 1, 2)));
    ASSERT_TRUE(first.Run(GoOn));
    ASSERT_TRUE(SaveSamples(first.samples(), machine, file));
  }
  NotingEngine engine;
  Profiler second(engine, Few(5));
  ASSERT_TRUE(second.Add(Spec("a model", 1, 2)));
  const auto earlier = LoadSamples(machine, file);
  ASSERT_TRUE(earlier) << earlier.error().message;
  second.Adopt(*earlier);
  EXPECT_FALSE(second.complete());
  ASSERT_TRUE(second.Run(GoOn));
  EXPECT_EQ(engine.asked.size(), 2 * (1 + 2u)) << "a warm-up and the two runs that each cell lacks";
  const auto foreign = LoadSamples({.fingerprint = "elsewhere"}, file);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("another machine"));
}

TEST(Profiler, AFileOfSamplesThatIsNotOneIsAnErrorThatNamesTheLine) {
  const TemporaryFolder folder;
  const fs::path file = folder / "garbage";
  const std::string head = "tactus-profile-samples 1\nmachine m\n";
  struct Case {
    std::string text;
    std::string place;
  };
  for (const Case& c :
       {Case{"", "is empty"}, Case{"PNG", ":1:"}, Case{"tactus-profile-samples 1\n", ":2:"},
        Case{head + "cell a 1 final\n", ":3:"},
        Case{head + "cell a 1 final 1 5\ncell a 1 final 0 5\n", ":4:"},
        Case{head + "cell a 1 final 1 -5\n", ":3:"},
        Case{head + "cell a 1 final 1 5 x\n", ":3:"}}) {
    std::ofstream(file) << c.text;
    const auto samples = LoadSamples({.fingerprint = "m"}, file);
    ASSERT_FALSE(samples) << c.text;
    EXPECT_THAT(samples.error().message, HasSubstr(c.place)) << c.text;
  }
}

TEST(Profiler, AModelThatFailsIsAnErrorThatNamesTheCell) {
  NotingEngine engine;
  engine.fail_at = 4;
  Profiler profiler(engine, Few(3));
  ASSERT_TRUE(profiler.Add(Spec("fragile", 1, 2)));
  const Status failed = profiler.Run(GoOn);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("model 'fragile', exit '1', batch"));
  EXPECT_FALSE(profiler.Add({.name = "hollow"}));
}

TEST(Profiler, UnloadsWhatItLoaded) {
  NotingEngine engine;
  {
    Profiler profiler(engine, Few(3));
    ASSERT_TRUE(profiler.Add(Spec("a", 1, 1)));
    ASSERT_TRUE(profiler.Add(Spec("b", 1, 1)));
  }
  EXPECT_EQ(engine.unloaded, 2u);
}

TEST(Condense, GivesTheDistributionOfTheRuns) {
  std::vector<Duration> runs;
  for (int i = 100; i >= 1; --i) runs.push_back(Millis(i));
  const ProfileCell cell = Condense(runs);
  EXPECT_EQ(cell.repetitions, 100);
  EXPECT_DOUBLE_EQ(cell.mean_ms, 50.5);
  EXPECT_DOUBLE_EQ(cell.min_ms, 1);
  EXPECT_DOUBLE_EQ(cell.p50_ms, 50);
  EXPECT_DOUBLE_EQ(cell.p95_ms, 95);
  EXPECT_DOUBLE_EQ(cell.p99_ms, 99);
  EXPECT_DOUBLE_EQ(cell.max_ms, 100);
  EXPECT_NEAR(cell.cv, 28.866 / 50.5, 1e-4);
}

TEST(LetRise, MakesNeighboursThatFallTheirMeanAndLeavesTheOthers) {
  std::vector<ProfileCell> cells(6);
  const double p50[] = {1, 3, 2, 4, 3.5, 1.5};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].p50_ms = p50[i];
    cells[i].p95_ms = 10 + static_cast<double>(i);
    cells[i].cv = 0.1 * static_cast<double>(i);
  }
  LetRise(cells);
  const double risen[] = {1, 2.5, 2.5, 3, 3, 3};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_DOUBLE_EQ(cells[i].p50_ms, risen[i]) << "batch " << i + 1;
    EXPECT_DOUBLE_EQ(cells[i].p95_ms, 10 + static_cast<double>(i)) << "batch " << i + 1;
    EXPECT_DOUBLE_EQ(cells[i].cv, 0.1 * static_cast<double>(i)) << "batch " << i + 1;
  }
  std::vector<ProfileCell> none;
  LetRise(none);
}

TEST(SampleRow, TakesOpenDimensionsFromTheConfiguration) {
  ModelSpec spec{.name = "det", .max_batch = 4};
  spec.inputs = {{"x", DataType::kFp32, {-1, 3, -1, -1}}, {"names", DataType::kBytes, {-1, 2}}};
  spec.parameters["profile_shape.x"] = "3, 32, 64";
  const auto row = SampleRow::Make(spec, 1);
  ASSERT_TRUE(row) << row.error().message;
  const auto inputs = row->inputs().inputs;
  EXPECT_THAT(inputs[0].shape, ::testing::ElementsAre(1, 3, 32, 64));
  EXPECT_EQ(inputs[0].bytes, 3 * 32 * 64 * sizeof(float));
  EXPECT_EQ(inputs[1].bytes, 2 * 4u);  // two empty strings
  for (const char* wrong : {"3,32", "3,32,64,1", "3,-1,64", "4,32,64", "3,32,x", ""}) {
    spec.parameters["profile_shape.x"] = wrong;
    const auto refused = SampleRow::Make(spec, 1);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("profile_shape.x"));
  }
}

TEST(SampleRow, LeavesOutOptionalInputsThatAreNotStated) {
  ModelSpec spec{.name = "m", .max_batch = 4};
  spec.inputs = {{"z", DataType::kFp32, {-1, 2}, {}, true}, {"x", DataType::kFp32, {-1, 2}}};
  const auto absent = [&] {
    const auto row = SampleRow::Make(spec, 1);
    EXPECT_TRUE(row && !row->inputs().inputs[1].absent);
    return row->inputs().inputs[0].absent;
  };
  EXPECT_TRUE(absent());
  spec.parameters["profile_shape.z"] = "2";
  EXPECT_FALSE(absent());
  spec.parameters.clear();
  spec.sample = {{.input = "z", .dims = {2}, .data = StatedSample::Data::kZeros, .file = {}}};
  EXPECT_FALSE(absent());
}

TEST(SampleRow, IsWhatTheModelsFolderStates) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  };
  ModelSpec spec{.name = "m", .max_batch = 4};
  spec.inputs = {{"words", DataType::kBytes, {-1, 2}},
                 {"ids", DataType::kInt32, {-1, -1}},
                 {"zeros", DataType::kFp32, {-1, 3}}};
  using Data = StatedSample::Data;
  const std::string words("\2\0\0\0no\3\0\0\0yes", 13);
  const std::string ids("\7\0\0\0\1\0\0\0", 8);
  spec.sample = {{"words", {2}, Data::kFile, write("words", words)},
                 {"ids", {2}, Data::kFile, write("ids", ids)},
                 {"zeros", {3}, Data::kZeros, {}}};
  const auto row = SampleRow::Make(spec, 1);
  ASSERT_TRUE(row) << row.error().message;
  const auto inputs = row->inputs().inputs;
  const auto text = [](const TensorView& each) {
    return std::string(reinterpret_cast<const char*>(each.data), each.bytes);
  };
  EXPECT_EQ(text(inputs[0]), words);
  EXPECT_EQ(text(inputs[1]), ids);
  EXPECT_THAT(inputs[1].shape, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(text(inputs[2]), std::string(12, '\0'));

  const auto refused = [&](std::size_t at, StatedSample stated) {
    ModelSpec wrong = spec;
    wrong.sample[at] = std::move(stated);
    const auto made = SampleRow::Make(wrong, 1);
    return made ? "none" : made.error().message;
  };
  EXPECT_THAT(refused(1, {"ids", {3}, Data::kFile, folder / "ids"}),
              HasSubstr("/ids: 8 bytes are not 3 elements of INT32"));
  EXPECT_THAT(refused(1, {"ids", {2}, Data::kFile, folder / "none"}),
              HasSubstr("/none: cannot read this sample of input 'ids'"));
  EXPECT_THAT(refused(1, {"ids", {2}, Data::kFile, folder.path()}), HasSubstr("directory"));
  EXPECT_THAT(refused(0, {"words", {2}, Data::kFile, write("cut", words.substr(0, 12))}),
              HasSubstr("12 bytes are not 2 elements of BYTES, each a length"));
  EXPECT_THAT(refused(0, {"words", {2}, Data::kFile, write("more", words + "x")}),
              HasSubstr("14 bytes are not 2 elements of BYTES"));
  EXPECT_THAT(refused(2, {"zeros", {4}, Data::kZeros, {}}),
              HasSubstr("model_warmup states [4] for a row of input 'zeros'"));
  EXPECT_THAT(refused(2, {"other", {3}, Data::kZeros, {}}), HasSubstr("which it has not"));
}

// The choice of lanes would have nothing to go by, or go by runs of the wrong threads.
TEST(Profiler, ComparesThreadsInTurns) {
  NotingEngine engine;
  Profiler profiler(engine, Few(2));
  ASSERT_TRUE(profiler.Add(Spec("m", 2, 3)));
  ASSERT_TRUE(profiler.Run(GoOn));
  std::vector<ProfiledModel> models = profiler.Result();
  const std::uint64_t before = engine.loaded;
  engine.asked.clear();
  EXPECT_THAT(profiler.AddThreads({1, 2, 4}, models), ::testing::IsEmpty());
  EXPECT_EQ(engine.loaded, before + 3);
  EXPECT_EQ(engine.unloaded, 3u);
  for (const ProfiledExit& exit : models[0].exits) {
    ASSERT_EQ(exit.by_threads.size(), 3u);
    EXPECT_EQ(exit.by_threads[2].threads, 4);
    EXPECT_GT(exit.by_threads[2].one_ms, 0);
    EXPECT_GE(exit.by_threads[2].largest_ms, exit.by_threads[2].one_ms);
  }
  // Batches of one and of three, each with all three before the first has its turn again.
  ASSERT_GT(engine.asked.size(), 18u);
  EXPECT_EQ(engine.asked[0], (NotingEngine::Asked{before + 1, 0, 1}));
  EXPECT_EQ(engine.asked[3], (NotingEngine::Asked{before + 1, 0, 3}));
  EXPECT_EQ(engine.asked[6], (NotingEngine::Asked{before + 2, 0, 1}));
  EXPECT_EQ(engine.asked[18], (NotingEngine::Asked{before + 1, 0, 1}));
  EXPECT_THAT(profiler.AddThreads({}, models), ::testing::IsEmpty());
}

TEST(Profiler, SaysOfWhichModelItCannotCompareThreads) {
  NotingEngine engine;
  Profiler profiler(engine, Few(2));
  ASSERT_TRUE(profiler.Add(Spec("m", 1, 1)));
  ASSERT_TRUE(profiler.Run(GoOn));
  std::vector<ProfiledModel> models = profiler.Result();
  engine.rejects = engine.loaded + 2;
  const std::vector<std::string> said = profiler.AddThreads({1, 2}, models);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("model 'm': how it gains from threads is not known: "));
  EXPECT_THAT(models[0].exits[0].by_threads, ::testing::IsEmpty());
}

TEST(ThreadsToTry, DoublesUpToTheProcessors) {
  EXPECT_THAT(ThreadsToTry(1, 1), ::testing::IsEmpty());
  EXPECT_THAT(ThreadsToTry(1, 2), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(ThreadsToTry(3, 12), ::testing::ElementsAre(1, 2, 3, 4, 8, 12));
}

}  // namespace
}  // namespace tactus
