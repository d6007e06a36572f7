// Engines in processes of their own. Without these a process that dies would take its server along,
// hang the lane, or leave a batch without an answer.
#include "engines/isolated/isolated_engine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/isolated/crashing_engine_test.h"
#include "engines/isolated/sharing_famine.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using testing::Answers;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Row;
using testing::RunBatch;
using testing::Values;

constexpr std::int64_t kNumber = 7;

Row NumberRow(std::int64_t number) { return Row().Add<std::int64_t>({1, 1}, {number}); }

ModelSpec NumberModel(const std::string& name = "numbers") {
  ModelSpec spec{.name = name, .max_batch = 4};
  spec.inputs = {{"x", DataType::kInt64, {-1, 1}}};
  spec.outputs = spec.inputs;
  return spec;
}

LaneSpec LaneOf(int process) {
  LaneSpec lane;
  lane.placement = CpuPlacement{.process = process};
  return lane;
}

class IsolatedEngine : public ::testing::Test {
 protected:
  void SetUp() override { Make({}); }
  void Make(IsolationOptions options) {
    auto engine = MakeIsolatedEngine(testing::kCrashingEngine, "", options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }
  ModelHandle Load(int process = 0) {
    ModelSpec spec = NumberModel();
    auto handle = engine_->Load(spec, LaneOf(process));
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(ModelHandle{});
  }
  std::int64_t Ask(ModelHandle model, std::int64_t number) {
    const BatchResult result = RunBatch(*engine_, model, NumberRow(number));
    EXPECT_TRUE(result.status) << result.status.error().message;
    return result.status ? Values<std::int64_t>(result.output->tensors[0].data)[0] : -1;
  }
  // The number of the process that runs the model.
  pid_t ProcessOf(ModelHandle model) {
    return static_cast<pid_t>(Ask(model, testing::kSayProcess));
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(IsolatedEngine, RunsTheModelsOfALaneInOneProcessThatIsNotThisOne) {
  const ModelHandle first = Load();
  const ModelHandle second = Load();
  const ModelHandle beside = Load(1);
  const ModelHandle trial = Load(kTrialProcess);
  EXPECT_EQ(Ask(first, kNumber), kNumber);
  EXPECT_NE(ProcessOf(first), getpid());
  EXPECT_EQ(ProcessOf(first), ProcessOf(second));
  EXPECT_NE(ProcessOf(first), ProcessOf(beside));
  EXPECT_NE(ProcessOf(first), ProcessOf(trial));
  EXPECT_TRUE(engine_->traits().isolated);
  EXPECT_EQ(engine_->traits().max_slots, 1);
}

TEST_F(IsolatedEngine, ATrialsProcessEndsWithItsModel) {
  const ModelHandle trial = Load(kTrialProcess);
  const pid_t process = ProcessOf(trial);
  EXPECT_EQ(kill(process, 0), 0);
  engine_->Unload(trial);
  EXPECT_NE(kill(process, 0), 0);
}

TEST_F(IsolatedEngine, ABatchOfWhichTheProcessDiesIsLostAndSuspect) {
  const struct {
    std::int64_t row;
    const char* how;
  } deaths[] = {{testing::kDivide, "SIGFPE"},
                {testing::kTouchNothing, "SIGSEGV"},
                {testing::kKilled, "SIGKILL"},
                {testing::kLeave, "ended with code 3"}};
  for (const auto& death : deaths) {
    const ModelHandle model = Load();
    const BatchResult result = RunBatch(*engine_, model, NumberRow(death.row));
    ASSERT_FALSE(result.status) << death.how;
    EXPECT_TRUE(result.lane_lost);
    EXPECT_TRUE(result.suspect);
    EXPECT_THAT(result.status.error().message, HasSubstr(death.how));
    const BatchResult after = RunBatch(*engine_, model, NumberRow(kNumber));
    EXPECT_TRUE(after.lane_lost);
    EXPECT_FALSE(after.suspect) << "it was dead before this batch";
    engine_->Unload(model);
  }
  EXPECT_EQ(Ask(Load(), kNumber), kNumber) << "the next model has a new process";
}

TEST_F(IsolatedEngine, OtherLanesRunOnWhenOneDies) {
  const ModelHandle dying = Load(0);
  const ModelHandle living = Load(1);
  EXPECT_TRUE(RunBatch(*engine_, dying, NumberRow(testing::kDivide)).lane_lost);
  EXPECT_EQ(Ask(living, kNumber), kNumber);
}

TEST_F(IsolatedEngine, AProcessThatDiedIdleIsReplacedByTheNextLoad) {
  const ModelHandle model = Load();
  const pid_t process = ProcessOf(model);
  kill(process, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT);
  const ModelHandle again = Load();
  EXPECT_NE(ProcessOf(again), process);
  const BatchResult result = RunBatch(*engine_, model, NumberRow(kNumber));
  EXPECT_TRUE(result.lane_lost) << "what was loaded in the dead one is dead";
  EXPECT_FALSE(result.suspect);
}

TEST_F(IsolatedEngine, ALoadThatKillsSaysSoAndHarmsNoOtherProcess) {
  const ModelHandle model = Load();
  ModelSpec bad = NumberModel(testing::kDiesLoading);
  const auto handle = engine_->Load(bad, LaneOf(kTrialProcess));
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, ErrorCode::kInternal);
  EXPECT_THAT(handle.error().message, HasSubstr(testing::kDiesLoading));
  EXPECT_THAT(handle.error().message, HasSubstr("died while it loaded the model"));
  EXPECT_THAT(handle.error().message, HasSubstr("SIGFPE"));
  EXPECT_EQ(Ask(model, kNumber), kNumber);
}

TEST_F(IsolatedEngine, ARunThatHeedsNoStopIsStoppedWithItsProcess) {
  Make({.stop_grace = Millis(1)});
  const ModelHandle model = Load();
  Answers answers;
  std::thread lane([&] {
    std::vector<Row> rows{NumberRow(testing::kForEver)};
    const std::vector<RowInputs> inputs{rows[0].inputs()};
    engine_->Submit(model, {BatchId{5}, ModelId{0}, ExitId{0}, inputs}, answers);
  });
  while (answers.times(BatchId{5}) == 0) {
    engine_->Terminate(BatchId{5});
    std::this_thread::yield();
  }
  lane.join();
  const BatchResult result = answers.Wait(BatchId{5});
  EXPECT_EQ(result.status.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(RunBatch(*engine_, model, NumberRow(kNumber)).lane_lost);
}

// Without these a process that stands still (a stopped one, a library's deadlock) would hold its
// lane, every load, and the end of its server for ever.
TEST_F(IsolatedEngine, AHungProcessIsKilledWhateverItWasAsked) {
  Make({.stop_grace = Seconds(3600), .hang_limit = Millis(500)});
  const ModelHandle model = Load();
  const pid_t process = ProcessOf(model);
  testing::StandStill(process);
  const BatchResult run = RunBatch(*engine_, model, NumberRow(kNumber));
  EXPECT_TRUE(run.lane_lost);
  EXPECT_THAT(run.status.error().message, HasSubstr("gave no sign of life"));

  const ModelHandle second = Load();
  testing::StandStill(ProcessOf(second));
  ModelSpec spec = NumberModel();
  const auto load = engine_->Load(spec, LaneOf(0));
  ASSERT_FALSE(load);
  EXPECT_THAT(load.error().message, HasSubstr("gave no sign of life"));

  const ModelHandle third = Load();
  testing::StandStill(ProcessOf(third));
  engine_->Unload(third);
  EXPECT_EQ(Ask(Load(), kNumber), kNumber);
}

TEST_F(IsolatedEngine, AHungProcessOfAnIdleLaneIsFound) {
  Make({.hang_limit = Millis(500)});
  testing::StandStill(ProcessOf(Load()));
  while (ProcessesOf(*engine_)[0].runs) std::this_thread::yield();
  EXPECT_THAT(ProcessesOf(*engine_)[0].ending, HasSubstr("gave no sign of life"));
}

// Long before it is killed: without this its lane would be ready and take batches until then.
TEST_F(IsolatedEngine, AProcessThatStandsStillIsSilentUntilItGoesOn) {
  Make({.hang_limit = Seconds(20)});
  const ModelHandle model = Load();
  const pid_t process = ProcessOf(model);
  testing::StandStill(process);
  while (!ProcessesOf(*engine_)[0].silent) std::this_thread::yield();
  EXPECT_TRUE(ProcessesOf(*engine_)[0].runs);
  kill(process, SIGCONT);
  while (ProcessesOf(*engine_)[0].silent) std::this_thread::yield();
  EXPECT_EQ(Ask(model, kNumber), kNumber);
}

// Without this the memory that arenas keep in the processes would look like a leak.
TEST_F(IsolatedEngine, ArenasOfAllLanesAreAddedUp) {
  Make({.hang_limit = Seconds(2)});
  Load(0);
  Load(1);
  std::vector<ArenaUse> arenas;
  while (arenas.empty() || arenas[0].bytes < 2 * testing::kArenaBytes) arenas = engine_->Arenas();
  ASSERT_EQ(arenas.size(), 1u);
  EXPECT_EQ(arenas[0].model, "numbers");
  EXPECT_EQ(arenas[0].bytes, 2 * testing::kArenaBytes);
  EXPECT_EQ(arenas[0].in_use_bytes, 2u);
}

// Without this the memory of the largest call would stay taken in a lane to which no more come.
TEST_F(IsolatedEngine, TheProcessGivesBackWhatRests) {
  Make({.hang_limit = Seconds(2)});
  RunBatch(*engine_, Load(), NumberRow(testing::kLeaveMemory));
  std::vector<ArenaUse> arenas;
  while (arenas.empty() || arenas[0].version != 2) arenas = engine_->Arenas();
  EXPECT_EQ(arenas[0].bytes, testing::kArenaBytes);
}

TEST_F(IsolatedEngine, AProcessThatIsBusyDoesNotHang) {
  Make({.stop_grace = {}, .hang_limit = Millis(500)});
  const ModelHandle model = Load();
  const pid_t process = ProcessOf(model);
  std::thread lane([&] { RunBatch(*engine_, model, NumberRow(testing::kForEver)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_TRUE(ProcessesOf(*engine_)[0].runs);
  while (ProcessesOf(*engine_)[0].silent) std::this_thread::yield();
  kill(process, SIGKILL);
  lane.join();
}

// Without this the stop of a server would wait for processes that hang, beyond its grace.
TEST_F(IsolatedEngine, WhatIsAbandonedEndsWhateverItDoesAndNoneIsStarted) {
  Make({.stop_grace = Seconds(3600), .hang_limit = Seconds(3600)});
  const ModelHandle model = Load(0);
  const ModelHandle busy = Load(1);
  testing::StandStill(ProcessOf(model));
  Answers answers;
  std::vector<std::thread> lanes;
  for (const auto& [id, handle, number] :
       {std::tuple(BatchId{5}, model, kNumber), std::tuple(BatchId{6}, busy, testing::kForEver)}) {
    lanes.emplace_back([this, &answers, id, handle, number] {
      std::vector<Row> rows{NumberRow(number)};
      const std::vector<RowInputs> inputs{rows[0].inputs()};
      engine_->Submit(handle, {id, ModelId{0}, ExitId{0}, inputs}, answers);
    });
  }
  lanes.emplace_back([this] {
    ModelSpec spec = NumberModel();
    EXPECT_FALSE(engine_->Load(spec, LaneOf(0)));
  });
  engine_->Abandon();
  for (std::thread& lane : lanes) lane.join();
  for (const BatchId id : {BatchId{5}, BatchId{6}}) {
    const BatchResult result = answers.Wait(id);
    EXPECT_TRUE(result.lane_lost);
    EXPECT_THAT(result.status.error().message, HasSubstr("the server is stopping"));
  }
  engine_->Unload(model);
  ModelSpec spec = NumberModel();
  for (const int process : {0, 2, kTrialProcess}) {
    const auto handle = engine_->Load(spec, LaneOf(process));
    ASSERT_FALSE(handle);
    EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable) << handle.error().message;
  }
}

// The first answers of a connection find room for so much only, and later ones too much room.
TEST_F(IsolatedEngine, OutputsOfAnySizeComeWholeAndStayAsTheyWere) {
  ModelSpec spec{.name = "large", .max_batch = 0};
  spec.inputs = {{"x", DataType::kInt64, {-1}}};
  spec.outputs = spec.inputs;
  const ModelHandle model = engine_->Load(spec, LaneOf(0)).value();
  std::vector<BatchResult> kept;
  std::vector<std::vector<std::int64_t>> sent;
  for (const std::size_t size : {1, 300'000, 10, 70'000, 0, 5, 6, 7, 8, 9, 10, 11, 12}) {
    std::vector<std::int64_t> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = 100 + static_cast<std::int64_t>(i * size);
    sent.push_back(values);
    kept.push_back(RunBatch(*engine_, model,
                            Row().Add<std::int64_t>({static_cast<std::int64_t>(size)}, values)));
    ASSERT_TRUE(kept.back().status) << kept.back().status.error().message;
  }
  engine_.reset();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(Values<std::int64_t>(kept[i].output->tensors[0].data), sent[i]) << i;
  }
}

// Without this one moment without descriptors made every later large call fail, of a model that
// says that it is ready.
TEST_F(IsolatedEngine, AProcessThatCannotMapABatchRefusesItAndLives) {
  ModelSpec spec{.name = "large", .max_batch = 0};
  spec.inputs = {{"x", DataType::kInt64, {-1}}};
  spec.outputs = spec.inputs;
  const ModelHandle model = engine_->Load(spec, LaneOf(0)).value();
  const auto run = [&](std::int64_t size) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(size), kNumber);
    return RunBatch(*engine_, model, Row().Add<std::int64_t>({size}, values));
  };
  ASSERT_TRUE(run(1).status);
  const pid_t process = ProcessesOf(*engine_)[0].pid;
  rlimit before{};
  ASSERT_EQ(prlimit(process, RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit few{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(prlimit(process, RLIMIT_NOFILE, &few, nullptr), 0);
  for (int i = 0; i < 2; ++i) {
    const BatchResult result = run(100'000);
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code, ErrorCode::kResourceExhausted);
    EXPECT_FALSE(result.lane_lost) << result.status.error().message;
  }
  ASSERT_EQ(prlimit(process, RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(run(100'000).status);
  EXPECT_EQ(ProcessesOf(*engine_)[0].pid, process);
}

// Without this a large call that found no room for its answer took the line with it, and small ones
// asked for as much as the last one: all were refused for as long as there were no descriptors.
TEST_F(IsolatedEngine, WithoutDescriptorsWhatHasRoomRunsOn) {
  ModelSpec spec{.name = "large", .max_batch = 0};
  spec.inputs = {{"x", DataType::kInt64, {-1}}};
  spec.outputs = spec.inputs;
  const ModelHandle model = engine_->Load(spec, LaneOf(0)).value();
  const auto run = [&](std::int64_t size) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(size), kNumber);
    return RunBatch(*engine_, model, Row().Add<std::int64_t>({size}, values));
  };
  constexpr std::int64_t kLarge = 100'000;
  std::optional<BatchResult> room = run(1);
  std::optional<BatchResult> kept = run(kLarge);
  ASSERT_TRUE(room->status && kept->status);
  room.reset();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool small = run(1).status.has_value();
  const BatchResult large = run(kLarge);
  const bool lasts = SharingFamine::Lasts();
  const bool small_again = run(1).status.has_value();
  const bool lasts_still = SharingFamine::Lasts();
  kept.reset();
  const bool large_again = run(kLarge).status.has_value();
  const bool over = !SharingFamine::Lasts();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(small) << "there is room for it";
  ASSERT_FALSE(large.status);
  EXPECT_EQ(large.status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_FALSE(large.lane_lost);
  EXPECT_TRUE(small_again);
  EXPECT_TRUE(lasts && lasts_still) << "a call as large would be refused";
  EXPECT_TRUE(large_again);
  EXPECT_TRUE(over) << "none is refused any more";
}

// Without this the largest call's memory stays taken, on both sides, whatever comes later.
TEST_F(IsolatedEngine, MemoryOfALargeBatchIsGivenBackAtRest) {
  ModelSpec spec{.name = "large", .max_batch = 0};
  spec.inputs = {{"x", DataType::kInt64, {-1}}};
  spec.outputs = spec.inputs;
  const ModelHandle model = engine_->Load(spec, LaneOf(0)).value();
  const std::vector<std::int64_t> values(300'000, kNumber);
  const Row row = Row().Add<std::int64_t>({300'000}, values);
  ASSERT_TRUE(RunBatch(*engine_, model, row).status);
  EXPECT_FALSE(engine_->GiveBackAtRest()) << "it was used since the last look";
  EXPECT_TRUE(engine_->GiveBackAtRest());
  EXPECT_FALSE(engine_->GiveBackAtRest()) << "there is no more";
  EXPECT_TRUE(RunBatch(*engine_, model, row).status);
}

TEST_F(IsolatedEngine, StringsComeRowByRow) {
  ModelSpec spec{.name = "text", .max_batch = 4};
  spec.inputs = {{"x", DataType::kBytes, {-1, 2}}};
  spec.outputs = spec.inputs;
  const ModelHandle model = engine_->Load(spec, LaneOf(0)).value();
  std::vector<Row> rows;
  rows.push_back(Row().AddStrings({1, 2}, {"one", ""}));
  rows.push_back(Row().AddStrings({1, 2}, {"three", "four"}));
  const BatchResult result = RunBatch(*engine_, model, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  const BatchOutput::Tensor& tensor = result.output->tensors[0];
  EXPECT_THAT(tensor.shape, ElementsAre(2, 2));
  EXPECT_EQ(tensor.Row(0, 2).size(), 4 + 3 + 4u);
  EXPECT_EQ(tensor.Row(1, 2).size(), 4 + 5 + 4 + 4u);
}

TEST_F(IsolatedEngine, AnEngineThatCannotBeMadeSaysWhy) {
  const auto engine = MakeIsolatedEngine("no such engine", "", {});
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, HasSubstr("no such engine"));
}

TEST_F(IsolatedEngine, AProgramThatIsNotThereSaysWhy) {
  IsolationOptions options;
  options.program = {"/no/such/program"};
  const auto engine = MakeIsolatedEngine("identity", "", options);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, HasSubstr("/no/such/program"));
}

// A server that is killed leaves nobody behind: its engine's process ends with it. The server is a
// child of this test; the pipe is held open by the server and by the engine's process alone.
TEST(IsolatedEngineProcess, DiesWithItsServer) {
  int said[2];
  ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
  const pid_t server = fork();
  if (server == 0) {
    const std::string end = std::to_string(said[1]);
    fcntl(said[1], F_SETFD, 0);
    execl("/proc/self/exe", "server", testing::kServerToKill, end.c_str(), nullptr);
    _exit(1);
  }
  close(said[1]);
  pid_t process = 0;
  ASSERT_EQ(read(said[0], &process, sizeof process), static_cast<ssize_t>(sizeof process));
  EXPECT_EQ(kill(process, 0), 0);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  // Nobody's child here: gone when the system says so.
  while (kill(process, 0) == 0 && testing::Running(process)) std::this_thread::yield();
  close(said[0]);
}

}  // namespace
}  // namespace tactus
