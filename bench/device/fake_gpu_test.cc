// The fake device must do what the benchmark's kernels do, or the benchmark's arithmetic is tested
// against something that no device does.
#include "device/fake_gpu.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/kernel_net.h"
#include "device/served_nets.h"
#include "engines/cuda/device.h"
#include "engines/cuda/device_facts.h"
#include "engines/cuda/staging.h"
#include "engines/submit_testing.h"
#include "gpu_kernel.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::Row;
using testing::RunBatch;

constexpr std::size_t kSms = 132;

int NoWatts(const std::string&) { return 0; }

class FakeGpuTest : public ::testing::Test {
 protected:
  FakeGpuTest() : driver_(gpu_.driver()) {
    device_ = Device::Open(driver_, 0, NoWatts).value();
    EXPECT_TRUE(device_->Bind());
    EXPECT_TRUE(Ask(*driver_, driver_->load_library, &library_,
                    static_cast<const void*>(kHoldKernel), nullptr, nullptr, 0u, nullptr, nullptr,
                    0u));
    EXPECT_TRUE(Ask(*driver_, driver_->library_kernel, &hold_, library_, "hold"));
    notes_ = std::make_unique<DeviceBuffer>(*driver_);
    EXPECT_TRUE(notes_->Get(16 * kSms * sizeof(BlockNote)));
  }
  void TearDown() override {
    EXPECT_TRUE(Ask(*driver_, driver_->unload_library, library_));
    notes_.reset();
    device_.reset();
    EXPECT_EQ(gpu_.Leaks(), "");
  }

  Status Hold(CUstream stream, std::size_t blocks, Duration each, std::size_t first_note = 0) {
    CUdeviceptr notes = notes_->data() + first_note * sizeof(BlockNote);
    auto nanos = static_cast<std::uint64_t>(each.count());
    void* arguments[] = {&notes, &nanos};
    return Ask(*driver_, driver_->launch_kernel, reinterpret_cast<CUfunction>(hold_),
               static_cast<unsigned>(blocks), 1u, 1u, 1024u, 1u, 1u, 0u, stream,
               static_cast<void**>(arguments), nullptr);
  }
  std::vector<BlockNote> Notes(CUstream stream, std::size_t count) {
    PinnedBuffer host(*driver_);
    const std::size_t bytes = count * sizeof(BlockNote);
    std::byte* const data = host.Get(bytes).value();
    EXPECT_TRUE(
        Ask(*driver_, driver_->download, static_cast<void*>(data), notes_->data(), bytes, stream));
    EXPECT_TRUE(Ask(*driver_, driver_->await_stream, stream));
    std::vector<BlockNote> notes(count);
    std::memcpy(notes.data(), data, bytes);
    return notes;
  }

  FakeGpu gpu_{FakeGpu::Time::kByHand};
  std::shared_ptr<const Driver> driver_;
  std::unique_ptr<Device> device_;
  CUlibrary library_ = nullptr;
  CUkernel hold_ = nullptr;
  std::unique_ptr<DeviceBuffer> notes_;
};

TEST_F(FakeGpuTest, EventsTellHowLongAKernelTook) {
  const CUstream stream = device_->MakeStream(0).value();
  CUevent events[2];
  for (CUevent& event : events) {
    ASSERT_TRUE(
        Ask(*driver_, driver_->create_event, &event, static_cast<unsigned>(CU_EVENT_DEFAULT)));
  }
  ASSERT_TRUE(Ask(*driver_, driver_->record_event, events[0], stream));
  ASSERT_TRUE(Hold(stream, 3 * kSms, Millis(2)));  // three waves
  ASSERT_TRUE(Ask(*driver_, driver_->record_event, events[1], stream));
  EXPECT_EQ(driver_->query_event.call(events[1]), CUDA_ERROR_NOT_READY);
  ASSERT_TRUE(Ask(*driver_, driver_->await_stream, stream));
  float milliseconds = 0;
  ASSERT_TRUE(Ask(*driver_, driver_->elapsed, &milliseconds, events[0], events[1]));
  EXPECT_FLOAT_EQ(milliseconds, 6);
  for (CUevent event : events) EXPECT_TRUE(Ask(*driver_, driver_->destroy_event, event));
  device_->Destroy(stream);
}

TEST_F(FakeGpuTest, BlocksNoteTheSmsOfTheirPart) {
  const CUstream part = device_->MakeStream(0, {.offset = 0.25, .fraction = 0.5}).value();
  ASSERT_TRUE(Hold(part, 2 * kSms, Micros(100)));
  std::set<std::uint64_t> sms;
  for (const BlockNote& note : Notes(part, 2 * kSms)) {
    sms.insert(note.sm);
    EXPECT_EQ(note.end - note.begin, 100'000u);
  }
  EXPECT_EQ(sms.size(), 64u);  // 8 of 16 groups of 8
  EXPECT_EQ(*sms.begin(), 32u);
  EXPECT_EQ(*sms.rbegin(), 95u);
  device_->Destroy(part);
}

// Eight waves of blocks of 1 ms are under way: the urgent kernel begins when the first of them end.
TEST_F(FakeGpuTest, AStreamOfHighPriorityPassesBlocksThatHaveNotBegun) {
  const CUstream low = device_->MakeStream(99).value();
  const CUstream high = device_->MakeStream(0).value();
  ASSERT_TRUE(Hold(low, 8 * kSms, Millis(1), kSms));
  gpu_.AdvanceTo(FromMillis(2.5));
  ASSERT_TRUE(Hold(high, kSms, Micros(100)));
  const std::vector<BlockNote> notes = Notes(high, kSms);
  EXPECT_EQ(notes.front().begin, 3'000'000u);
  EXPECT_EQ(notes.back().end, 3'100'000u);
  ASSERT_TRUE(Ask(*driver_, driver_->await_stream, low));
  device_->Destroy(low);
  device_->Destroy(high);
}

TEST_F(FakeGpuTest, KnowsTheKernelsOfTheBenchmarkAndNoOthers) {
  CUkernel kernel = nullptr;
  EXPECT_EQ(driver_->library_kernel.call(&kernel, library_, "work"), CUDA_ERROR_NOT_FOUND);
}

// A net through the engine: its answer has a row for each of the batch, and nothing of it is left.
TEST(KernelNets, RunThroughTheEngine) {
  FakeGpu gpu(FakeGpu::Time::kReal);
  BenchDevice device{.driver = gpu.driver(), .facts = {}, .fake = true, .power_limit = NoWatts};
  device.facts = ReadFacts(*device.driver, 0, NoWatts).value();
  auto engine = MakeNetEngine(device, {1, 2}).value();
  ModelSpec spec = SpecOf(NetNamed("exits_s"), "a");
  const ModelHandle model = engine->Load(spec, LaneSpec{}).value();
  std::vector<float> numbers(kRowFloats, 3);
  std::vector<Row> rows;
  for (int i = 0; i < 2; ++i) rows.push_back(Row().Add<float>({1, kRowFloats}, numbers));
  const BatchResult result = RunBatch(*engine, model, rows, 2);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_THAT(result.output->tensors[0].shape, ElementsAre(2, kAnswerFloats));
  engine.reset();
  EXPECT_EQ(gpu.Leaks(), "");
}

TEST(KernelNets, WorkGrowsWithTheExitAndTheBatch) {
  const KernelNet net{"n", 4, {{2, 3, 1, 10, 4096}, {1, 0, 2, 10, 4096}}, true};
  EXPECT_DOUBLE_EQ(WorkOf(net, 0, 1).bytes, 2 * 4 * 4096);
  EXPECT_DOUBLE_EQ(WorkOf(net, 1, 1).bytes, (2 * 4 + 2) * 4096);
  EXPECT_DOUBLE_EQ(WorkOf(net, 1, 4).bytes, (2 * 7 + 8) * 4096);
  EXPECT_DOUBLE_EQ(WorkOf(net, 0, 1).fmas, 8 * 256 * 16 * 10.0);
}

// Through the engine and the profiler: copies and kernels are at least what the device makes up for
// them, and stand apart.
TEST(KernelNets, AProfileHasCopiesApartFromKernels) {
  FakeGpu gpu(FakeGpu::Time::kReal);
  BenchDevice device{.driver = gpu.driver(), .facts = {}, .fake = true, .power_limit = NoWatts};
  device.facts = ReadFacts(*device.driver, 0, NoWatts).value();
  const BenchOptions few{.repetitions = 1, .quick = true};
  const auto profile = ProfileNets(device, {"tiny"}, few);
  ASSERT_TRUE(profile) << profile.error().message;
  const auto& cells = profile->Find("tiny")->exits[0].cells;
  ASSERT_TRUE(cells[0].device);
  EXPECT_GE(cells[0].device->upload_ms, 0.002 + kRowFloats * 4 / 25e6);
  EXPECT_GE(cells[0].device->kernels_ms, 3 * 400 * 43e-6);
  EXPECT_GE(cells[0].device->download_ms, 0.002);
  EXPECT_THAT(profile->provenance, ::testing::HasSubstr("FAKE"));
}

// What Strait and the linear model count on: half of the time that the peak would take is a share
// of one half; weights that fit the cache are no memory's.
TEST(KernelNets, UseIsAShareOfThePeaks) {
  const KernelNet net{"n", 1, {{1, 0, 1, 10, 4096}}, false, std::uint64_t{16} << 20};
  const DevicePeaks peaks{.fmas = 2 * 256 * 16 * 10, .l2_bytes = 4 * 4096, .memory_bytes = 4096};
  const DeviceFacts large{.memory_bytes = std::uint64_t{80} << 30};
  const Throughput use = ResourceShares(net, 0, 1, 1, peaks, large);
  EXPECT_DOUBLE_EQ(use[static_cast<std::size_t>(Resource::kFma)], 0.5);
  EXPECT_DOUBLE_EQ(use[static_cast<std::size_t>(Resource::kL2)], 0.25);
  EXPECT_DOUBLE_EQ(use[static_cast<std::size_t>(Resource::kDram)], 0);
  KernelNet beyond = net;
  beyond.weight_bytes = std::uint64_t{128} << 20;
  EXPECT_DOUBLE_EQ(
      ResourceShares(beyond, 0, 1, 1, peaks, large)[static_cast<std::size_t>(Resource::kDram)], 1);
}

}  // namespace
}  // namespace tactus
