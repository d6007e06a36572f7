// The one thread that waits for all batches of an engine, whatever the number of lanes. It asks the
// batches' events while they are young and the host has a core to spare. After that the stream's
// call behind each batch (cuLaunchHostFunc) wakes it. A device that is lost calls nobody, so the
// thread also looks by itself now and then.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/expected.h"
#include "engines/cuda/device.h"

namespace tactus {

class CompletionThread {
 public:
  CompletionThread();
  ~CompletionThread();  // after the last batch was finished
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  // `finish` is called once on the thread, with the device's context: when `event` has passed, or
  // with the error that the device gives instead.
  void Add(const Device& device, CUevent event, std::function<void(Status)> finish);
  // `finish` is called with `failed`.
  void AddFailed(const Device& device, Error failed, std::function<void(Status)> finish);

  // For cuLaunchHostFunc; the argument is the CompletionThread. Calls no driver.
  static void CUDA_CB Ring(void* self);

 private:
  struct Awaited {
    const Device* device = nullptr;
    CUevent event = nullptr;
    Status verdict;  // failed already
    std::function<void(Status)> finish;
  };
  void Add(Awaited awaited);
  void Run();
  // Whether it is done; it was finished then.
  static bool Look(Awaited& awaited);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Awaited> added_;
  bool rung_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it uses what stands above
};

}  // namespace tactus
