// A device that is not there: streams that run what is put into them in order, events, memory of
// the host that stands for the device's, and SMs that are numbers. It is as strict as a driver is:
// a copy from memory that is not pinned, a call without a context or from a host function is
// refused, so is an event in a stream of another context, and the time between events of two; work
// on memory that was freed loses the device. One lock guards all of it.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda.h>

#include "base/serving_time.h"

namespace tactus::testing {

struct FakeEvent {
  std::uint64_t recorded = 0;  // the last time that it was put into a stream, counted from 1
  std::uint64_t passed = 0;    // the last time that a stream came to it
  Duration at{};
  CUcontext context = nullptr;
};

// What a stream has still to do; false: it waits.
using FakeWork = std::function<bool()>;

struct FakeStream {
  int priority = 0;
  std::set<int> groups;  // of SMs; empty: all
  std::deque<FakeWork> work;
  CUcontext context = nullptr;
};

struct FakeGreen {
  unsigned sms = 0;
  std::set<int> groups;
};

class ScriptedDevice {
 public:
  // What it says that it is.
  std::string name = "fake-cuda (no GPU)";
  int devices = 1;
  int capability = 90;
  int sms = 132;
  int driver_version = 13000;
  std::size_t memory = std::size_t{1} << 30;
  unsigned sms_short = 0;  // of what was asked for, each part gets so many fewer
  bool tells_grain = false;

  std::recursive_mutex mutex;
  std::map<CUstream, FakeStream> streams;
  std::map<CUevent, FakeEvent> events;
  std::map<CUgreenCtx, FakeGreen> greens;
  std::map<CUdevResourceDesc, FakeGreen> descriptions;
  std::map<CUdeviceptr, std::vector<std::byte>> allocations;
  std::map<std::byte*, std::vector<std::byte>> pinned;
  std::map<std::thread::id, CUcontext> current;
  int contexts = 0;
  std::size_t occupied = 0;  // by programs
  bool in_host_function = false;
  std::optional<CUresult> lost;
  Duration clock{};

  template <class Handle>
  Handle NewHandle() {
    return reinterpret_cast<Handle>(next_handle_ += 16);
  }

  // That of this thread's calls.
  CUcontext& here() { return current[std::this_thread::get_id()]; }
  // A part's context is one thread's at a time.
  bool IsElsewhere(CUcontext context) const {
    const bool of_part = greens.contains(reinterpret_cast<CUgreenCtx>(context));
    return of_part && std::ranges::any_of(current, [&](const auto& each) {
             return each.second == context && each.first != std::this_thread::get_id();
           });
  }

  // Streams do nothing until they are let go again.
  void Hold() {
    const std::lock_guard lock(mutex);
    held_ = true;
  }
  void LetGo() {
    const std::lock_guard lock(mutex);
    held_ = false;
    Pump();
  }
  // Runs what can run now, where work waits for something beside other streams: a time, say.
  void Turn() {
    const std::lock_guard lock(mutex);
    Pump();
  }
  // Every call fails from now on, and nothing that is under way ends.
  void Lose(CUresult code = CUDA_ERROR_ILLEGAL_ADDRESS) {
    const std::lock_guard lock(mutex);
    lost = code;
    for (auto& [handle, stream] : streams) stream.work.clear();
  }

  void Put(CUstream stream, FakeWork work) {
    streams.at(stream).work.push_back(std::move(work));
    Pump();
  }
  // A kernel that takes `length`.
  void Launch(CUstream stream, std::function<void()> kernel, Duration length = Millis(2)) {
    const std::lock_guard lock(mutex);
    if (lost) return;
    Put(stream, [this, kernel = std::move(kernel), length] {
      clock += length;
      kernel();
      return true;
    });
  }

  std::size_t used() const {
    std::size_t bytes = occupied;
    for (const auto& [address, block] : allocations) bytes += block.size();
    return bytes;
  }
  // The bytes at `address` of the device; null where nobody has allocated them.
  std::byte* At(CUdeviceptr address, std::size_t bytes) {
    auto block = allocations.upper_bound(address);
    if (block == allocations.begin()) return nullptr;
    --block;
    const std::size_t from = address - block->first;
    if (from + bytes > block->second.size()) return nullptr;
    return block->second.data() + from;
  }
  bool IsPinned(const std::byte* data, std::size_t bytes) {
    for (const auto& [begin, block] : pinned) {
      if (data >= begin && data + bytes <= begin + block.size()) return true;
    }
    return false;
  }
  void Copy(CUstream stream, CUdeviceptr device, std::byte* host, std::size_t bytes, bool up) {
    Put(stream, [this, device, host, bytes, up] {
      std::byte* const there = At(device, bytes);
      if (there == nullptr || !IsPinned(host, bytes)) {
        Lose();
        return true;
      }
      clock += Micros(500);
      std::memcpy(up ? there : host, up ? host : there, bytes);
      return true;
    });
  }

  // What a test looks for at the end: nothing is left of an engine that is gone.
  std::string Leaks() {
    const std::lock_guard lock(mutex);
    std::string left;
    const auto add = [&](const char* what, std::size_t count) {
      if (count > 0) left += std::string(what) + " " + std::to_string(count) + " ";
    };
    add("streams", streams.size());
    add("events", events.size());
    add("green contexts", greens.size());
    add("allocations", allocations.size());
    add("pinned", pinned.size());
    add("contexts", static_cast<std::size_t>(contexts));
    add("bytes of programs", occupied);
    return left;
  }

 private:
  // Runs whatever can run, one piece of each stream in turn, the newest stream first: what only
  // happens to come in order does not.
  void Pump() {
    if (pumping_ || held_) return;
    pumping_ = true;
    for (bool moved = true; moved && !lost;) {
      moved = false;
      for (auto at = streams.rbegin(); at != streams.rend(); ++at) {
        FakeStream& stream = at->second;
        if (stream.work.empty()) continue;
        const FakeWork first = stream.work.front();  // it may lose the device, and all work
        if (!first()) continue;
        if (!stream.work.empty()) stream.work.pop_front();
        moved = true;
      }
    }
    pumping_ = false;
  }

  std::uintptr_t next_handle_ = 0;
  bool held_ = false;
  bool pumping_ = false;
};

}  // namespace tactus::testing
