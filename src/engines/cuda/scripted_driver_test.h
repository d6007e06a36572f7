// The driver's functions over a ScriptedDevice. It keeps what was called, and fails what it is told
// to fail.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engines/cuda/driver.h"
#include "engines/cuda/scripted_device_test.h"

namespace tactus::testing {

class ScriptedDriver {
 public:
  ScriptedDriver() { Fill(); }
  ScriptedDriver(const ScriptedDriver&) = delete;
  ScriptedDriver& operator=(const ScriptedDriver&) = delete;

  ScriptedDevice device;

  // Good while this lives.
  std::shared_ptr<const Driver> driver() const { return table_; }

  // The call of `function` after `skip` more gives `code`, and so do `times` - 1 behind it.
  void FailCall(const std::string& function, CUresult code, int skip = 0, int times = 1) {
    const std::lock_guard lock(device.mutex);
    failures_[function] = {code, skip, times};
  }
  int calls(const std::string& function) {
    const std::lock_guard lock(device.mutex);
    return static_cast<int>(std::ranges::count(calls_, function));
  }
  std::vector<std::string> called() {
    const std::lock_guard lock(device.mutex);
    return calls_;
  }

 private:
  struct Failure {
    CUresult code = CUDA_SUCCESS;
    int skip = 0;
    int times = 0;
  };

  CUresult Verdict(const std::string& function) {
    calls_.push_back(function);
    if (device.in_host_function) return CUDA_ERROR_NOT_PERMITTED;
    Failure& failure = failures_[function];
    if (failure.times > 0 && failure.skip-- <= 0) {
      --failure.times;
      return failure.code;
    }
    if (device.lost) return *device.lost;
    const auto is = [&](const char* prefix) { return function.starts_with(prefix); };
    const bool needs_context =
        is("cuMem") || is("cuStream") || is("cuEvent") || is("cuLaunch") || is("cuCtxGet");
    if (needs_context && device.here() == nullptr) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    return CUDA_SUCCESS;
  }

  template <class... P, class Body>
  void Set(DriverFunction<CUresult(P...)>& function, Body body) {
    function.call = [this, name = std::string(function.name), body](P... arguments) {
      const std::lock_guard lock(device.mutex);
      const CUresult verdict = Verdict(name);
      return verdict == CUDA_SUCCESS ? body(arguments...) : verdict;
    };
  }

  void Fill() {
    FillErrors();
    FillDevice();
    FillContext();
    FillMemory();
    FillStreams();
    FillEvents();
    FillParts();
    const auto absent = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
    Set(table_->load_library, absent);
    Set(table_->unload_library, absent);
    Set(table_->library_kernel, absent);
    Set(table_->launch_kernel, absent);
  }

  void FillErrors() {
    static const std::map<CUresult, std::array<const char*, 2>> kTexts = {
        {CUDA_ERROR_OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
        {CUDA_ERROR_NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
        {CUDA_ERROR_INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
        {CUDA_ERROR_ILLEGAL_ADDRESS,
         {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}}};
    const auto text = [](std::size_t which) {
      return [which](CUresult code, const char** out) {
        const auto found = kTexts.find(code);
        if (found == kTexts.end()) return CUDA_ERROR_INVALID_VALUE;
        *out = found->second[which];
        return CUDA_SUCCESS;
      };
    };
    table_->error_name.call = text(0);
    table_->error_text.call = text(1);
  }

  void FillDevice() {
    Set(table_->init, [](unsigned) { return CUDA_SUCCESS; });
    Set(table_->driver_version, [this](int* version) {
      *version = device.driver_version;
      return CUDA_SUCCESS;
    });
    Set(table_->device_count, [this](int* count) {
      *count = device.devices;
      return CUDA_SUCCESS;
    });
    Set(table_->device, [this](CUdevice* handle, int ordinal) {
      *handle = ordinal;
      return ordinal < device.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    });
    Set(table_->device_name, [this](char* text, int room, CUdevice) {
      std::strncpy(text, device.name.c_str(), static_cast<std::size_t>(room));
      return CUDA_SUCCESS;
    });
    Set(table_->device_uuid, [](CUuuid* uuid, CUdevice handle) {
      std::memset(uuid->bytes, 0xa0 + handle, sizeof uuid->bytes);
      return CUDA_SUCCESS;
    });
    Set(table_->device_memory, [this](std::size_t* bytes, CUdevice) {
      *bytes = device.memory;
      return CUDA_SUCCESS;
    });
    Set(table_->device_attribute, [this](int* value, CUdevice_attribute which, CUdevice) {
      *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? device.capability / 10
               : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? device.capability % 10
               : which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 50 << 20
                                                                       : device.sms;
      return CUDA_SUCCESS;
    });
  }

  void FillContext() {
    Set(table_->retain_context, [this](CUcontext* context, CUdevice handle) {
      *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(handle) + 0xc0);
      ++device.contexts;
      return CUDA_SUCCESS;
    });
    Set(table_->release_context, [this](CUdevice) {
      --device.contexts;
      return CUDA_SUCCESS;
    });
    Set(table_->set_current, [this](CUcontext context) {
      if (device.IsElsewhere(context)) return CUDA_ERROR_INVALID_CONTEXT;
      device.here() = context;
      return CUDA_SUCCESS;
    });
    Set(table_->priority_range, [](int* least, int* greatest) {
      *least = 0;
      *greatest = -5;
      return CUDA_SUCCESS;
    });
  }

  void FillMemory() {
    Set(table_->memory_info, [this](std::size_t* free, std::size_t* total) {
      *total = device.memory;
      *free = device.memory - device.used();
      return CUDA_SUCCESS;
    });
    Set(table_->allocate, [this](CUdeviceptr* address, std::size_t bytes) {
      if (device.used() + bytes > device.memory) return CUDA_ERROR_OUT_OF_MEMORY;
      std::vector<std::byte> block(bytes);
      *address = reinterpret_cast<CUdeviceptr>(block.data());
      device.allocations.emplace(*address, std::move(block));
      return CUDA_SUCCESS;
    });
    Set(table_->free, [this](CUdeviceptr address) {
      return device.allocations.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
    Set(table_->allocate_pinned, [this](void** data, std::size_t bytes, unsigned) {
      std::vector<std::byte> block(bytes);
      *data = block.data();
      device.pinned.emplace(block.data(), std::move(block));
      return CUDA_SUCCESS;
    });
    Set(table_->free_pinned, [this](void* data) {
      const auto gone = device.pinned.erase(static_cast<std::byte*>(data));
      return gone == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
    const auto copy = [this](CUdeviceptr address, const void* host, std::size_t bytes,
                             CUstream stream, bool up) {
      auto* data = static_cast<std::byte*>(const_cast<void*>(host));
      const bool there = device.At(address, bytes) != nullptr && device.IsPinned(data, bytes);
      if (!there || !device.streams.contains(stream)) return CUDA_ERROR_INVALID_VALUE;
      device.Copy(stream, address, data, bytes, up);
      return CUDA_SUCCESS;
    };
    Set(table_->upload, [copy](CUdeviceptr to, const void* from, std::size_t bytes, CUstream s) {
      return copy(to, from, bytes, s, true);
    });
    Set(table_->download, [copy](void* to, CUdeviceptr from, std::size_t bytes, CUstream s) {
      return copy(from, to, bytes, s, false);
    });
  }

  void FillStreams() {
    Set(table_->create_stream, [this](CUstream* stream, unsigned, int priority) {
      *stream = device.NewHandle<CUstream>();
      device.streams[*stream] = {priority, {}, {}, device.here()};
      return CUDA_SUCCESS;
    });
    Set(table_->destroy_stream, [this](CUstream stream) {
      return device.streams.erase(stream) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    });
    // Nobody lets go while this waits, and so it is only asked of streams that are not held.
    Set(table_->await_stream, [this](CUstream stream) {
      return device.streams.at(stream).work.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    });
    Set(table_->launch_host, [this](CUstream stream, CUhostFn function, void* data) {
      device.Put(stream, [this, function, data] {
        device.in_host_function = true;
        function(data);
        device.in_host_function = false;
        return true;
      });
      return CUDA_SUCCESS;
    });
  }

  void FillEvents() {
    Set(table_->create_event, [this](CUevent* event, unsigned) {
      *event = device.NewHandle<CUevent>();
      device.events[*event].context = device.here();
      return CUDA_SUCCESS;
    });
    Set(table_->destroy_event, [this](CUevent event) {
      return device.events.erase(event) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    });
    Set(table_->record_event, [this](CUevent event, CUstream stream) {
      if (device.events.at(event).context != device.streams.at(stream).context) {
        return CUDA_ERROR_INVALID_HANDLE;
      }
      const std::uint64_t time = ++device.events.at(event).recorded;
      device.Put(stream, [this, event, time] {
        device.events.at(event).passed = time;
        device.events.at(event).at = device.clock;
        return true;
      });
      return CUDA_SUCCESS;
    });
    Set(table_->stream_waits, [this](CUstream stream, CUevent event, unsigned) {
      const std::uint64_t time = device.events.at(event).recorded;
      device.Put(stream, [this, event, time] { return device.events.at(event).passed >= time; });
      return CUDA_SUCCESS;
    });
    Set(table_->query_event, [this](CUevent event) {
      const FakeEvent& e = device.events.at(event);
      return e.passed >= e.recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    });
    Set(table_->elapsed, [this](float* milliseconds, CUevent from, CUevent to) {
      if (device.events.at(from).context != device.events.at(to).context) {
        return CUDA_ERROR_INVALID_HANDLE;
      }
      const Duration between = device.events.at(to).at - device.events.at(from).at;
      *milliseconds = static_cast<float>(ToMillis(between));
      return CUDA_SUCCESS;
    });
  }

  // A group of SMs carries its number, from 1, in the padding of its resource.
  static int& GroupOf(CUdevResource& resource) {
    return *reinterpret_cast<int*>(resource._internal_padding);
  }

  void FillParts() {
    Set(table_->device_resource, [this](CUdevice, CUdevResource* all, CUdevResourceType) {
      *all = {};
      all->sm.smCount = static_cast<unsigned>(device.sms);
      if (device.tells_grain) all->sm.minSmPartitionSize = all->sm.smCoscheduledAlignment = 2;
      return CUDA_SUCCESS;
    });
    Set(table_->split_sms, [](CUdevResource* parts, unsigned* count, const CUdevResource* all,
                              CUdevResource* rest, unsigned, unsigned least) {
      *count = std::min(*count, all->sm.smCount / least);
      for (unsigned i = 0; i < *count; ++i) {
        parts[i] = {};
        parts[i].sm.smCount = least;
        GroupOf(parts[i]) = static_cast<int>(i) + 1;
      }
      *rest = {};
      rest->sm.smCount = all->sm.smCount - *count * least;
      return CUDA_SUCCESS;
    });
    Set(table_->describe_resources,
        [this](CUdevResourceDesc* description, CUdevResource* parts, unsigned count) {
          FakeGreen green;
          for (unsigned i = 0; i < count; ++i) {
            green.sms += parts[i].sm.smCount;
            green.groups.insert(GroupOf(parts[i]) - 1);
          }
          *description = device.NewHandle<CUdevResourceDesc>();
          device.descriptions[*description] = green;
          return CUDA_SUCCESS;
        });
    Set(table_->create_green,
        [this](CUgreenCtx* context, CUdevResourceDesc description, CUdevice, unsigned) {
          *context = device.NewHandle<CUgreenCtx>();
          device.greens[*context] = device.descriptions.at(description);
          return CUDA_SUCCESS;
        });
    Set(table_->destroy_green, [this](CUgreenCtx context) {
      return device.greens.erase(context) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    });
    Set(table_->green_resource, [this](CUgreenCtx context, CUdevResource* got, CUdevResourceType) {
      *got = {};
      got->sm.smCount = device.greens.at(context).sms - device.sms_short;
      return CUDA_SUCCESS;
    });
    Set(table_->create_green_stream,
        [this](CUstream* stream, CUgreenCtx context, unsigned, int priority) {
          *stream = device.NewHandle<CUstream>();
          device.streams[*stream] = {
              priority, device.greens.at(context).groups, {}, reinterpret_cast<CUcontext>(context)};
          return CUDA_SUCCESS;
        });
    Set(table_->green_as_context, [this](CUcontext* context, CUgreenCtx green) {
      *context = reinterpret_cast<CUcontext>(green);
      return device.greens.contains(green) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    });
  }

  const std::shared_ptr<Driver> table_ = std::make_shared<Driver>();
  std::map<std::string, Failure> failures_;
  std::vector<std::string> calls_;
};

}  // namespace tactus::testing
