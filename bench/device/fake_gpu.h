// A device that is not there, in real time: NVIDIA's driver over a BlockScheduler. Kernels are the
// two of this benchmark, known by their names; none of their instructions are executed. How long
// they and copies take is made up. It exists to run the benchmark's code from end to end, and tells
// nothing about any device.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/serving_time.h"
#include "device/block_scheduler.h"
#include "engines/cuda/scripted_driver_test.h"
#include "engines/cuda/scripted_nvml_test.h"

namespace tactus {

class FakeGpu {
 public:
  // By hand: time passes where somebody waits for a stream, and in AdvanceTo.
  enum class Time { kReal, kByHand };

  explicit FakeGpu(Time time);
  ~FakeGpu();
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  // Good while this lives.
  std::shared_ptr<const Driver> driver() const { return table_; }
  std::shared_ptr<const Nvml> nvml() const { return nvml_.nvml(); }
  void AdvanceTo(Duration now);
  // "streams 2", of what nobody destroyed; empty: all is gone.
  std::string Leaks();

 private:
  using Lock = std::unique_lock<std::recursive_mutex>;
  struct Library {
    std::string code;
    std::map<std::string, std::string> kernels =
        {};  // by name; a kernel's handle is its place here
  };

  void Replace();
  void ReplaceKernels();
  CUresult Load(CUlibrary* library, const void* code);
  CUresult Find(CUkernel* kernel, CUlibrary library, const char* name);
  CUresult Launch(const std::string& name, Grid grid, CUstream stream, void** arguments);
  CUresult Copy(CUstream stream, CUdeviceptr device, std::byte* host, std::size_t bytes, bool up);
  CUresult Await(CUstream stream);
  // Puts what is done by `tick` into the stream; it says at once or later that it has passed.
  void Put(CUstream stream, testing::FakeWork work);
  std::optional<Duration> Next() const;
  void Tick(Duration now);
  void Pace();  // in real time, on a thread
  Duration Now() const;

  const Time time_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  testing::ScriptedDriver script_;
  testing::ScriptedNvml nvml_;
  const std::shared_ptr<Driver> table_;
  BlockScheduler blocks_;
  std::multiset<Duration> copies_;  // when those under way end
  std::map<CUlibrary, Library> libraries_;
  std::condition_variable_any changed_;
  bool stop_ = false;
  std::thread pacer_;  // last: it uses what stands above
};

}  // namespace tactus
