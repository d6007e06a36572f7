// The engine and the device by themselves, with a kernel that holds each SM for a known time.
//
//   parts       two lanes with shares run side by side; %smid says on which SMs each ran
//   priorities  urgent work is launched behind work that fills the device many times over: on
//               streams, and as batches of the engine
//   engine      batches through the engine, one behind the other, beside the same calls of the
//               driver in a loop
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/plan.h"
#include "device/parts.h"
#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/device.h"
#include "engines/cuda/staging.h"
#include "gpu_kernel.h"
#include "profiling/one_answer.h"
#include "program.h"

namespace tactus {
namespace {

constexpr unsigned kHoldThreads = 1024;
constexpr std::size_t kRow = 4096;  // numbers

// The kernel on a device, and notes for some number of blocks.
class Holder {
 public:
  Holder(Device& device, std::size_t blocks)
      : device_(device),
        driver_(device.driver()),
        blocks_(blocks),
        notes_(driver_),
        read_(driver_) {}
  ~Holder() {
    if (library_ != nullptr) (void)Ask(driver_, driver_.unload_library, library_);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  // Runs it once there: the driver loads a kernel's code when it is first launched, and may wait
  // until whatever else runs on the device has ended.
  Status Open(CUstream stream) {
    Status ok = Ask(driver_, driver_.load_library, &library_, static_cast<const void*>(kHoldKernel),
                    nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    if (ok) ok = Ask(driver_, driver_.library_kernel, &hold_, library_, "hold");
    if (!ok) return ok;
    if (const auto got = notes_.Get(blocks_ * sizeof(BlockNote)); !got) {
      return std::unexpected(got.error());
    }
    const auto got = read_.Get(blocks_ * sizeof(BlockNote));
    if (!got) return std::unexpected(got.error());
    ok = Launch(stream, 1, Duration{});
    if (ok) ok = Ask(driver_, driver_.await_stream, stream);
    return ok;
  }

  Status Launch(CUstream stream, std::size_t blocks, Duration each) {
    CUdeviceptr notes = notes_.data();
    auto nanoseconds = static_cast<std::uint64_t>(each.count());
    void* arguments[] = {&notes, &nanoseconds};
    return Ask(driver_, driver_.launch_kernel, reinterpret_cast<CUfunction>(hold_),
               static_cast<unsigned>(blocks), 1u, 1u, kHoldThreads, 1u, 1u, 0u, stream,
               static_cast<void**>(arguments), nullptr);
  }

  // Waits for the stream, then reads.
  Expected<std::span<const BlockNote>> Notes(CUstream stream, std::size_t blocks) {
    Status ok = Ask(driver_, driver_.download, static_cast<void*>(read_.data()), notes_.data(),
                    blocks * sizeof(BlockNote), stream);
    if (ok) ok = Ask(driver_, driver_.await_stream, stream);
    if (!ok) return std::unexpected(ok.error());
    return std::span(reinterpret_cast<const BlockNote*>(read_.data()), blocks);
  }

 private:
  Device& device_;
  const Driver& driver_;
  const std::size_t blocks_;
  CUlibrary library_ = nullptr;
  CUkernel hold_ = nullptr;  // of no context: it runs in that of the stream, which may be a part's
  DeviceBuffer notes_;
  PinnedBuffer read_;
};

// A model whose batches hold all SMs for a time and answer with their input.
class HoldProgram final : public DeviceProgram {
 public:
  HoldProgram(std::unique_ptr<Holder> holder, CUstream stream, std::size_t blocks, Duration each)
      : holder_(std::move(holder)), stream_(stream), blocks_(blocks), each_(each) {}
  Expected<DeviceOutputs> Enqueue(ExitId, std::span<const DeviceTensor> inputs) override {
    if (Status ok = holder_->Launch(stream_, blocks_, each_); !ok) {
      return std::unexpected(ok.error());
    }
    return DeviceOutputs{{inputs.begin(), inputs.end()}, nullptr};
  }

 private:
  const std::unique_ptr<Holder> holder_;
  const CUstream stream_;
  const std::size_t blocks_;
  const Duration each_;
};

class BasicBench {
 public:
  BasicBench(std::unique_ptr<Device> device, const Bench& bench)
      : driver_(bench.device.driver), device_(std::move(device)), bench_(bench) {}

  Status Parts();
  Status Priorities();
  Status EngineBesideLoop();

 private:
  std::size_t sms() const { return static_cast<std::size_t>(device_->facts().multiprocessors); }
  Expected<double> WaitBehind(Holder& low_work, Holder& high_work, CUstream low, CUstream high);
  Status BatchesBehind();
  Expected<double> RawRate();
  Expected<double> EngineRate();
  // An engine of models that hold the device: `blocks` of them by name, each for so long.
  struct Held {
    std::size_t blocks = 0;
    Duration each{};
  };
  Expected<std::unique_ptr<Engine>> HoldEngine(std::map<std::string, Held> models,
                                               std::vector<int> priorities);

  static constexpr Duration kBlock = Millis(1);  // of the work that is waited for
  static constexpr Duration kUrgent = Micros(100);
  static constexpr Duration kBatch = Micros(500);

  const std::shared_ptr<const Driver> driver_;
  const std::unique_ptr<Device> device_;
  const Bench& bench_;
};

Status BasicBench::Parts() {
  const double shares[] = {0.25, 0.75};
  const std::size_t blocks = 8 * sms();
  std::set<std::uint64_t> seen[2];
  std::unique_ptr<Holder> holders[2];
  CUstream streams[2];
  for (int i = 0; i < 2; ++i) {
    const auto stream = device_->MakeStream(0, {i == 0 ? 0 : shares[0], shares[i]});
    if (!stream) return std::unexpected(stream.error());
    streams[i] = *stream;
    holders[i] = std::make_unique<Holder>(*device_, blocks);
    if (Status ok = holders[i]->Open(streams[i]); !ok) return ok;
  }
  for (int i = 0; i < 2; ++i) {
    if (Status ok = holders[i]->Launch(streams[i], blocks, kUrgent); !ok) return ok;
  }
  for (int i = 0; i < 2; ++i) {
    const auto notes = holders[i]->Notes(streams[i], blocks);
    if (!notes) return std::unexpected(notes.error());
    for (const BlockNote& note : *notes) seen[i].insert(note.sm);
    fmt::print("a lane with {:g} % ran on {} of {} SMs\n", 100 * shares[i], seen[i].size(), sms());
    device_->Destroy(streams[i]);
  }
  double common = 0;
  for (const std::uint64_t sm : seen[0]) common += seen[1].contains(sm) ? 1 : 0;
  bench_.Add(AtMost("SMs that two lanes with shares had in common", common, 0));
  const double part = static_cast<double>(seen[0].size()) / static_cast<double>(sms());
  bench_.Add(AtMost("part of the SMs that a lane with 25 % ran on", part, 0.28));
  return {};
}

// From the launch of the urgent work to its end on the host's clock, less its own time, in ms.
Expected<double> BasicBench::WaitBehind(Holder& low_work, Holder& high_work, CUstream low,
                                        CUstream high) {
  const std::size_t blocks = 32 * sms();
  Status ok = low_work.Launch(low, blocks, kBlock);
  std::this_thread::sleep_for(std::chrono::milliseconds(4));  // until the device is full of it
  const auto begin = BenchClock::now();
  if (ok) ok = high_work.Launch(high, sms(), kUrgent);
  if (ok) ok = Ask(*driver_, driver_->await_stream, high);
  const double waited = NanosSince(begin) / 1e6 - ToMillis(kUrgent);
  if (ok) ok = Ask(*driver_, driver_->await_stream, low);
  if (!ok) return std::unexpected(ok.error());
  return waited;
}

Status BasicBench::Priorities() {
  Holder low_work(*device_, 32 * sms());
  Holder high_work(*device_, sms());
  if (Status ok = low_work.Open(device_->uploads()); !ok) return ok;
  if (Status ok = high_work.Open(device_->uploads()); !ok) return ok;
  constexpr int kLowest = 99;  // PriorityOf clamps
  for (const int level : {kLowest, 0}) {
    const auto low = device_->MakeStream(kLowest);
    if (!low) return std::unexpected(low.error());
    const auto high = device_->MakeStream(level);
    if (!high) return std::unexpected(high.error());
    std::vector<double> waits;
    for (int round = 0; round < bench_.options.rounds; ++round) {
      const auto waited = WaitBehind(low_work, high_work, *low, *high);
      if (!waited) return std::unexpected(waited.error());
      waits.push_back(*waited);
    }
    std::ranges::sort(waits);
    fmt::print(
        "urgent work of {} priority behind blocks of {:g} ms waits {:.3f} ms (median), "
        "{:.3f} ms (most)\n",
        level == 0 ? "the highest" : "the same", ToMillis(kBlock), waits[waits.size() / 2],
        waits.back());
    if (level == 0) {
      bench_.Add(AtMost("urgent work: most ms behind blocks of 1 ms", waits.back(),
                        ToMillis(kBlock) + 0.2));
    }
    device_->Destroy(*high);
    device_->Destroy(*low);
  }
  const Status behind = BatchesBehind();
  (void)device_->Bind();
  return behind;
}

Expected<double> BasicBench::RawRate() {
  const Driver& driver = *driver_;
  const std::size_t bytes = kRow * sizeof(float);
  Holder work(*device_, sms());
  PinnedBuffer host(driver);
  DeviceBuffer there(driver);
  Status ok = work.Open(device_->uploads());
  if (!ok) return std::unexpected(ok.error());
  const auto data = host.Get(bytes);
  if (!data) return std::unexpected(data.error());
  const auto address = there.Get(bytes);
  if (!address) return std::unexpected(address.error());
  const auto stream = device_->MakeStream(0);
  if (!stream) return std::unexpected(stream.error());
  const auto begin = BenchClock::now();
  for (int i = 0; i < bench_.options.batches && ok; ++i) {
    ok = Ask(driver, driver.upload, *address, static_cast<const void*>(*data), bytes, *stream);
    if (ok) ok = work.Launch(*stream, sms(), kBatch);
    if (ok) ok = Ask(driver, driver.download, static_cast<void*>(*data), *address, bytes, *stream);
    if (ok) ok = Ask(driver, driver.await_stream, *stream);
  }
  const double seconds = NanosSince(begin) / 1e9;
  device_->Destroy(*stream);
  if (!ok) return std::unexpected(ok.error());
  return bench_.options.batches / seconds;
}

Expected<std::unique_ptr<Engine>> BasicBench::HoldEngine(std::map<std::string, Held> models,
                                                         std::vector<int> priorities) {
  CudaOptions options{.name = "hold", .devices = {bench_.device.ordinal}};
  options.priorities = std::move(priorities);
  options.power_limit = bench_.device.power_limit;
  options.load = [this, models = std::move(models)](
                     ModelSpec& spec,
                     const DeviceStream& stream) -> Expected<std::unique_ptr<DeviceProgram>> {
    const Held& held = models.at(spec.name);
    auto* const handle = static_cast<CUstream>(stream.handle);
    auto holder = std::make_unique<Holder>(*device_, held.blocks);
    if (Status ok = holder->Open(handle); !ok) return std::unexpected(ok.error());
    spec.outputs = {{"y", DataType::kFp32, spec.inputs[0].dims}};
    return std::make_unique<HoldProgram>(std::move(holder), handle, held.blocks, held.each);
  };
  return MakeCudaEngine(driver_, std::move(options));
}

// A row of kRow numbers, and a model that takes it.
struct HoldRow {
  std::vector<float> numbers = std::vector<float>(kRow, 1);
  Shape shape = {1, kRow};
  TensorView view{reinterpret_cast<const std::byte*>(numbers.data()), kRow * sizeof(float), shape};
  RowInputs row{std::span(&view, 1), nullptr};
  HoldRow() = default;
  HoldRow(const HoldRow&) = delete;
  HoldRow& operator=(const HoldRow&) = delete;

  BatchJob Job(std::uint64_t id) const {
    return {BatchId{id}, ModelId{0}, ExitId{0}, std::span(&row, 1)};
  }
};
ModelSpec HoldSpec(const std::string& name, int priority) {
  ModelSpec spec{.name = name, .max_batch = 1, .priority = priority};
  spec.inputs = {{"x", DataType::kFp32, {-1, kRow}}};
  spec.exits = {{"1", {}, 0}};
  return spec;
}

Expected<double> BasicBench::EngineRate() {
  auto engine = HoldEngine({{"hold", {sms(), kBatch}}}, {});
  if (!engine) return std::unexpected(engine.error());
  ModelSpec spec = HoldSpec("hold", 1);
  const auto model = (*engine)->Load(spec, LaneSpec{});
  if (!model) return std::unexpected(model.error());
  const HoldRow row;
  const auto begin = BenchClock::now();
  for (int i = 0; i < bench_.options.batches; ++i) {
    OneAnswer answer;
    (*engine)->Submit(*model, row.Job(static_cast<std::uint64_t>(i)), answer);
    if (const BatchResult result = answer.Wait(); !result.status) {
      return std::unexpected(result.status.error());
    }
  }
  return bench_.options.batches / (NanosSince(begin) / 1e9);
}

// The same of batches: what one of a model of high priority waits on the device, by its clock,
// behind one of low priority that fills it many times over.
Status BasicBench::BatchesBehind() {
  auto engine = HoldEngine({{"low", {32 * sms(), kBlock}}, {"high", {sms(), kUrgent}}}, {1, 2});
  if (!engine) return std::unexpected(engine.error());
  ModelSpec low = HoldSpec("low", 2);
  ModelSpec high = HoldSpec("high", 1);
  const auto below = (*engine)->Load(low, LaneSpec{});
  if (!below) return std::unexpected(below.error());
  const auto above = (*engine)->Load(high, LaneSpec{});
  if (!above) return std::unexpected(above.error());
  const HoldRow row;
  std::vector<double> waits;
  for (int round = -1; round < bench_.options.rounds; ++round) {  // the first allocates
    const auto id = static_cast<std::uint64_t>(2 * round + 2);
    OneAnswer of_low;
    OneAnswer of_high;
    (*engine)->Submit(*below, row.Job(id), of_low);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    (*engine)->Submit(*above, row.Job(id + 1), of_high);
    const BatchResult urgent = of_high.Wait();
    const BatchResult rest = of_low.Wait();
    if (!urgent.status) return std::unexpected(urgent.status.error());
    if (!rest.status) return std::unexpected(rest.status.error());
    if (round < 0) continue;
    waits.push_back(ToMillis(urgent.device ? urgent.device->kernels : urgent.infer) -
                    ToMillis(kUrgent));
  }
  std::ranges::sort(waits);
  fmt::print(
      "a batch of high priority behind one of low waits {:.3f} ms (median), {:.3f} ms (most)\n",
      waits[waits.size() / 2], waits.back());
  bench_.Add(AtMost("batch of high priority: most ms behind blocks of 1 ms of a low one",
                    waits.back(), ToMillis(kBlock) + 0.2));
  return Status();
}

Status BasicBench::EngineBesideLoop() {
  std::vector<double> ratios;
  for (int round = 0; round < 5; ++round) {
    const auto raw = RawRate();
    if (!raw) return std::unexpected(raw.error());
    const auto engine = EngineRate();
    if (!engine) return std::unexpected(engine.error());
    if (Status ok = device_->Bind(); !ok) return ok;
    fmt::print("round {}: raw {:.0f}, engine {:.0f} batches/s, {:.1f} us more for each\n",
               round + 1, *raw, *engine, 1e6 / *engine - 1e6 / *raw);
    ratios.push_back(*engine / *raw);
  }
  std::ranges::sort(ratios);
  bench_.Add(AtLeast("batches/s of the engine over a raw loop", ratios[2], 0.95));
  return {};
}

Expected<std::unique_ptr<BasicBench>> Open(const Bench& bench) {
  auto device = Device::Open(bench.device.driver, bench.device.ordinal, bench.device.power_limit);
  if (!device) return std::unexpected(device.error());
  if (Status ok = (*device)->Bind(); !ok) return std::unexpected(ok.error());
  return std::make_unique<BasicBench>(*std::move(device), bench);
}

}  // namespace

Status MeasureParts(const Bench& bench) {
  const auto opened = Open(bench);
  return opened ? (*opened)->Parts() : std::unexpected(opened.error());
}

Status MeasurePriorities(const Bench& bench) {
  const auto opened = Open(bench);
  return opened ? (*opened)->Priorities() : std::unexpected(opened.error());
}

Status MeasureEngine(const Bench& bench) {
  const auto opened = Open(bench);
  return opened ? (*opened)->EngineBesideLoop() : std::unexpected(opened.error());
}

}  // namespace tactus
