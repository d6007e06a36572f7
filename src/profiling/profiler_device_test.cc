// What batches use of a device: counted, estimated, or neither.
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/profiler.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::size_t At(Resource resource) { return static_cast<std::size_t>(resource); }

struct Counted {
  std::optional<double> fma;
  std::optional<double> dram;
};

class FakeCounters final : public DeviceCounters {
 public:
  FakeCounters(const Counted& counted, int& looks, int fails_at)
      : counted_(counted), looks_(looks), fails_at_(fails_at) {}
  std::string source() const override { return "counted by a test"; }
  Duration least() const override { return {}; }
  Status Begin() override { return {}; }
  Expected<Reading> Read() override {
    if (++looks_ == fails_at_) return Internal("the counters are gone");
    Reading reading;
    reading[At(Resource::kFma)] = counted_.fma;
    reading[At(Resource::kDram)] = counted_.dram;
    return reading;
  }

 private:
  const Counted counted_;
  int& looks_;
  const int fails_at_;
};

// Each batch keeps the device busy for `kernels`; `longer` than it takes here, so that the time
// between two batches counts for nothing.
class DeviceEngine final : public Engine, public DeviceMeter {
 public:
  EngineTraits traits() const override { return {.name = "a device"}; }
  Expected<ModelHandle> Load(ModelSpec&, const LaneSpec&) override { return ModelHandle{1}; }
  void Unload(ModelHandle) override {}
  void Submit(ModelHandle, const BatchJob& job, Completions& done) noexcept override {
    BatchResult result;
    result.device = DeviceTimes{Millis(3), kernels, Millis(1)};
    done.Done(job.id, std::move(result));
  }
  Expected<DevicePeaks> MeasurePeaks() override {
    if (peaks) return *peaks;
    return Internal("the device is too small");
  }
  Expected<std::unique_ptr<DeviceCounters>> OpenCounters() override {
    if (counted) return std::make_unique<FakeCounters>(*counted, looks, fails_at);
    return Fail(ErrorCode::kUnimplemented, "it counts nothing");
  }

  Duration kernels = Seconds(1000);
  std::optional<DevicePeaks> peaks =
      DevicePeaks{.fmas = 1e6, .l2_bytes = 4000, .memory_bytes = 1000, .cache_bytes = 100};
  std::optional<Counted> counted = Counted{0.25, 0.5};
  int looks = 0;
  int fails_at = 0;
};

// On the processor: each row costs a batch so much.
class Examiner final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = "a processor"}; }
  Expected<ModelHandle> Load(ModelSpec&, const LaneSpec& lane) override {
    EXPECT_NE(std::get_if<CpuPlacement>(&lane.placement), nullptr);
    ++loaded;
    if (!loads) return InvalidArgument("no graph");
    return ModelHandle{7};
  }
  void Unload(ModelHandle) override { ++unloaded; }
  void Submit(ModelHandle, const BatchJob& job, Completions& done) noexcept override {
    done.Done(job.id, {});
  }
  Expected<std::vector<BatchWork>> Examine(ModelHandle handle,
                                           std::span<const BatchJob> jobs) override {
    EXPECT_EQ(handle.value, 7u);
    std::vector<BatchWork> works;
    for (const BatchJob& job : jobs) {
      works.push_back({{.operations = 2e8 * static_cast<double>(job.rows.size()),
                        .weight_bytes = 100'000,
                        .activation_bytes = 50'000 * static_cast<double>(job.rows.size())}});
    }
    return works;
  }
  bool loads = true;
  int loaded = 0;
  int unloaded = 0;
};

class DeviceUses : public ::testing::Test {
 protected:
  std::vector<ProfiledModel> Profile(Engine* examiner) {
    Profiler profiler(engine_, {.repetitions = 2, .least = 1, .warm_up = 1, .pin = false});
    ModelSpec spec{.name = "m", .max_batch = 2};
    spec.inputs = {{"x", DataType::kFp32, {-1, 3}}};
    spec.exits = {{"1", {}, 0}};
    EXPECT_TRUE(profiler.Add(std::move(spec)));
    EXPECT_TRUE(profiler.Run([](const ProfilerProgress&) { return true; }));
    std::vector<ProfiledModel> models = profiler.Result();
    warnings_ = profiler.AddDeviceUses(examiner, models);
    return models;
  }
  static const Throughput& Shares(const std::vector<ProfiledModel>& models, std::size_t batch) {
    return models[0].exits[0].cells[batch - 1].throughput;
  }

  DeviceEngine engine_;
  Examiner examiner_;
  std::vector<std::string> warnings_;
};

// Of batch 1 in 1000 s: 2e8 of 2e9 operations; 150,000 of 4e6 bytes of L2, 150,000 of 1e6 of
// memory, where the device itself counts a half.
TEST_F(DeviceUses, TakesWhatTheDeviceCountsAndEstimatesTheRest) {
  engine_.counted = Counted{std::nullopt, 0.5};
  const auto models = Profile(&examiner_);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kFma)], 0.1);
  EXPECT_DOUBLE_EQ(Shares(models, 2)[At(Resource::kFma)], 0.2);
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kDram)], 0.5);
  // What the memory gives has passed L2: 500 of its 4000 bytes a second.
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kL2)], 0.125);
  EXPECT_EQ(Shares(models, 1)[At(Resource::kL1)], 0);
  EXPECT_THAT(models[0].resources_source, HasSubstr("counted by a test; the others estimated"));
  EXPECT_EQ(models[0].exits[0].cells[0].transfer_ms, 3);
  EXPECT_EQ(examiner_.unloaded, 1);
}

TEST_F(DeviceUses, WithoutCountersAllIsEstimatedAndThatIsSaid) {
  engine_.counted.reset();
  const auto models = Profile(&examiner_);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("not counted: it counts nothing; it is estimated "
                                               "instead")));
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kDram)], 0.15);
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kL2)], 0.0375);
  EXPECT_TRUE(models[0].resources_source.starts_with("estimated: ")) << models[0].resources_source;
}

TEST_F(DeviceUses, WithoutAnExaminerOnlyWhatIsCountedIsThere) {
  const auto models = Profile(nullptr);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_DOUBLE_EQ(Shares(models, 2)[At(Resource::kFma)], 0.25);
  EXPECT_DOUBLE_EQ(Shares(models, 2)[At(Resource::kDram)], 0.5);
  EXPECT_EQ(models[0].resources_source, "counted by a test");
}

TEST_F(DeviceUses, WithNeitherAModelGetsNoFiguresAndTheReasonIsSaid) {
  engine_.counted.reset();
  engine_.peaks.reset();
  const auto models = Profile(&examiner_);
  EXPECT_THAT(
      warnings_,
      ElementsAre(HasSubstr("peaks could not be measured: the device is too small"),
                  HasSubstr("it counts nothing"), HasSubstr("model 'm' gets no resource figures")));
  EXPECT_EQ(models[0].resources_source, "");
  EXPECT_EQ(Shares(models, 1), Throughput{});
  EXPECT_EQ(models[0].exits[0].cells[0].transfer_ms, 0);
}

// The second of two cells cannot be counted: the first is not left with figures of another kind.
TEST_F(DeviceUses, CountersThatFailHalfWayLeaveTheEstimate) {
  engine_.fails_at = 2;
  const auto models = Profile(&examiner_);
  EXPECT_THAT(
      warnings_,
      ElementsAre(HasSubstr("model 'm': what its batches use is not counted: the counters")));
  EXPECT_DOUBLE_EQ(Shares(models, 1)[At(Resource::kFma)], 0.1);
  EXPECT_TRUE(models[0].resources_source.starts_with("estimated: "));
}

TEST_F(DeviceUses, AGraphThatNobodyCanExamineKeepsWhatIsCounted) {
  examiner_.loads = false;
  const auto models = Profile(&examiner_);
  EXPECT_EQ(examiner_.unloaded, 0);
  EXPECT_EQ(models[0].resources_source, "counted by a test");
}

// A batch that keeps the device busy for a fraction of the time that the counters saw.
TEST_F(DeviceUses, TheTimeBetweenBatchesIsNotTheirs) {
  engine_.kernels = Nanos(1);
  const auto models = Profile(nullptr);
  EXPECT_EQ(Shares(models, 1)[At(Resource::kFma)], 1);
}

TEST(DeviceUsesOfAProcessor, AreNone) {
  Examiner engine;
  Profiler profiler(engine, {});
  std::vector<ProfiledModel> models;
  EXPECT_THAT(profiler.AddDeviceUses(nullptr, models), ElementsAre(HasSubstr("tells nothing")));
}

}  // namespace
}  // namespace tactus
