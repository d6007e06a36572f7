#include "device/fake_gpu.h"

#include <cstring>
#include <utility>

#include "gpu_kernel.h"

namespace tactus {
namespace {

// Made up, all of them.
constexpr double kNanosPerStep = 43;
constexpr double kBlockBytesPerNano = 2.8;
constexpr double kCopyBytesPerNano = 25;
constexpr Duration kLaunch = Micros(2);
constexpr Duration kIdle = Millis(1);  // between two looks where nothing runs

constexpr BlockScheduler::Options kDevice{.sms = 132, .group_sms = 8, .threads_per_sm = 1024};

Duration Nanos(double count) { return Duration{static_cast<Duration::rep>(count)}; }

template <class Number>
Number Argument(void** arguments, std::size_t i) {
  Number value{};
  std::memcpy(&value, arguments[i], sizeof value);
  return value;
}

}  // namespace

FakeGpu::FakeGpu(Time time)
    : time_(time), table_(std::make_shared<Driver>(*script_.driver())), blocks_(kDevice) {
  Replace();
  ReplaceKernels();
  nvml_.percents = {{NVML_GPM_METRIC_FP32_UTIL, 50}, {NVML_GPM_METRIC_DRAM_BW_UTIL, 50}};
  if (time_ == Time::kReal) pacer_ = std::thread([this] { Pace(); });
}

FakeGpu::~FakeGpu() {
  {
    const Lock lock(script_.device.mutex);
    stop_ = true;
    changed_.notify_all();
  }
  if (pacer_.joinable()) pacer_.join();
}

std::string FakeGpu::Leaks() {
  const Lock lock(script_.device.mutex);
  return script_.device.Leaks() +
         (libraries_.empty() ? "" : "libraries " + std::to_string(libraries_.size()));
}

Duration FakeGpu::Now() const {
  if (time_ == Time::kByHand) return script_.device.clock;
  return std::chrono::steady_clock::now() - start_;
}

void FakeGpu::AdvanceTo(Duration now) {
  const Lock lock(script_.device.mutex);
  Tick(now);
}

std::optional<Duration> FakeGpu::Next() const {
  std::optional<Duration> next = blocks_.Next();
  if (!copies_.empty() && (!next || *copies_.begin() < *next)) next = *copies_.begin();
  return next;
}

// From one end to the next, so that what follows begins, and events have passed, just then.
void FakeGpu::Tick(Duration now) {
  Duration& clock = script_.device.clock;
  for (auto next = Next(); next && *next <= now; next = Next()) {
    clock = *next;
    blocks_.Advance(clock);
    copies_.erase(copies_.begin(), copies_.upper_bound(clock));
    script_.device.Turn();
  }
  if (now > clock) clock = now;
  blocks_.Advance(clock);
  script_.device.Turn();
}

void FakeGpu::Pace() {
  Lock lock(script_.device.mutex);
  while (!stop_) {
    Tick(Now());
    changed_.notify_all();
    const auto next = Next();
    if (!next) {
      changed_.wait_for(lock, kIdle);
    } else if (*next > Now()) {
      changed_.wait_until(lock, start_ + *next);
    }
  }
}

void FakeGpu::Put(CUstream stream, testing::FakeWork work) {
  const Lock lock(script_.device.mutex);
  Tick(Now());
  script_.device.Put(stream, std::move(work));
  changed_.notify_all();
}

CUresult FakeGpu::Await(CUstream stream) {
  Lock lock(script_.device.mutex);
  const auto passed = [&] { return script_.device.streams.at(stream).work.empty(); };
  if (time_ == Time::kReal) {
    changed_.wait(lock, passed);
    return CUDA_SUCCESS;
  }
  for (auto next = Next(); !passed() && next; next = Next()) Tick(*next);
  return passed() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult FakeGpu::Copy(CUstream stream, CUdeviceptr device, std::byte* host, std::size_t bytes,
                       bool up) {
  const Lock lock(script_.device.mutex);
  if (script_.device.At(device, bytes) == nullptr || !script_.device.IsPinned(host, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto end = std::make_shared<std::optional<Duration>>();
  const Duration takes = kLaunch + Nanos(static_cast<double>(bytes) / kCopyBytesPerNano);
  Put(stream, [this, device, host, bytes, up, end, takes] {
    const Duration now = script_.device.clock;
    if (!*end) copies_.insert(*(*end = now + takes));
    if (now < **end) return false;
    std::byte* const there = script_.device.At(device, bytes);
    if (there == nullptr) {
      script_.device.Lose();
    } else {
      std::memcpy(up ? there : host, up ? host : there, bytes);
    }
    return true;
  });
  return CUDA_SUCCESS;
}

void FakeGpu::Replace() {
  table_->upload.call = [this](CUdeviceptr to, const void* from, std::size_t bytes, CUstream s) {
    return Copy(s, to, static_cast<std::byte*>(const_cast<void*>(from)), bytes, true);
  };
  table_->download.call = [this](void* to, CUdeviceptr from, std::size_t bytes, CUstream s) {
    return Copy(s, from, static_cast<std::byte*>(to), bytes, false);
  };
  table_->await_stream.call = [this](CUstream stream) { return Await(stream); };
  // These two happen now, or when the stream comes to them.
  table_->record_event.call = [this, base = table_->record_event.call](CUevent event,
                                                                       CUstream stream) {
    const Lock lock(script_.device.mutex);
    Tick(Now());
    return base(event, stream);
  };
  table_->launch_host.call = [this, base = table_->launch_host.call](CUstream stream, CUhostFn call,
                                                                     void* data) {
    const Lock lock(script_.device.mutex);
    Tick(Now());
    return base(stream, call, data);
  };
}

void FakeGpu::ReplaceKernels() {
  table_->load_library.call = [this](CUlibrary* library, const void* code, auto...) {
    return Load(library, code);
  };
  table_->unload_library.call = [this](CUlibrary library) {
    const Lock lock(script_.device.mutex);
    return libraries_.erase(library) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  };
  table_->library_kernel.call = [this](CUkernel* kernel, CUlibrary library, const char* name) {
    return Find(kernel, library, name);
  };
  table_->launch_kernel.call = [this](CUfunction kernel, unsigned blocks, unsigned, unsigned,
                                      unsigned threads, unsigned, unsigned, unsigned,
                                      CUstream stream, void** arguments, void**) {
    const Lock lock(script_.device.mutex);
    const auto found = script_.device.streams.find(stream);
    if (found == script_.device.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    Grid grid{.priority = found->second.priority, .groups = found->second.groups};
    grid.blocks = static_cast<int>(blocks);
    grid.threads = static_cast<int>(threads);
    if (blocks < 1 || threads < 1 || grid.threads > kDevice.threads_per_sm) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Launch(*reinterpret_cast<const std::string*>(kernel), std::move(grid), stream,
                  arguments);
  };
}

CUresult FakeGpu::Load(CUlibrary* library, const void* code) {
  const Lock lock(script_.device.mutex);
  *library = script_.device.NewHandle<CUlibrary>();
  libraries_[*library].code = static_cast<const char*>(code);
  return CUDA_SUCCESS;
}

CUresult FakeGpu::Find(CUkernel* kernel, CUlibrary library, const char* name) {
  const Lock lock(script_.device.mutex);
  Library& loaded = libraries_.at(library);
  if (!loaded.code.contains(".entry " + std::string(name) + "(")) return CUDA_ERROR_NOT_FOUND;
  const auto found = loaded.kernels.emplace(name, name).first;
  *kernel = reinterpret_cast<CUkernel>(&found->second);
  return CUDA_SUCCESS;
}

CUresult FakeGpu::Launch(const std::string& name, Grid grid, CUstream stream, void** arguments) {
  if (name == "hold") {
    const auto notes = Argument<CUdeviceptr>(arguments, 0);
    grid.each = Nanos(static_cast<double>(Argument<std::uint64_t>(arguments, 1)));
    grid.on_end = [this, notes](const EndedBlock& ended) {
      const auto at = static_cast<std::size_t>(ended.block) * sizeof(BlockNote);
      const BlockNote note{static_cast<std::uint64_t>(ended.sm),
                           static_cast<std::uint64_t>(ended.begin.count()),
                           static_cast<std::uint64_t>(ended.end.count())};
      std::byte* const there = script_.device.At(notes + at, sizeof note);
      there == nullptr ? script_.device.Lose() : (void)std::memcpy(there, &note, sizeof note);
    };
  } else if (name == "work") {
    const auto bytes = static_cast<double>(Argument<std::uint32_t>(arguments, 2));
    const auto steps = static_cast<double>(Argument<std::uint32_t>(arguments, 3));
    grid.each = kLaunch + Nanos(bytes / kBlockBytesPerNano + steps * kNanosPerStep);
  } else {
    return CUDA_ERROR_NOT_FOUND;
  }
  auto number = std::make_shared<std::optional<std::uint64_t>>();
  Put(stream, [this, grid = std::move(grid), number] {
    if (!*number) *number = blocks_.Add(grid, script_.device.clock);
    return blocks_.Done(**number);
  });
  return CUDA_SUCCESS;
}

}  // namespace tactus
