// Where a batch's tensors lie on their way: pinned memory of the host, which copies need that are
// to run beside kernels, memory of the device, and the events that tell how far the batch is. Kept
// from batch to batch; grows to the largest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "engines/cuda/device.h"
#include "engines/cuda/driver.h"

namespace tactus {

// Memory of the host or the device, as `Allocate` and `Free` say. The context is current whenever
// it is asked for more, and when it goes.
template <class Pointer, Expected<Pointer> (*Allocate)(const Driver&, std::size_t),
          void (*Free)(const Driver&, Pointer)>
class StagingBuffer {
 public:
  explicit StagingBuffer(const Driver& driver) : driver_(&driver) {}
  StagingBuffer(StagingBuffer&& other) noexcept
      : driver_(other.driver_),
        data_(std::exchange(other.data_, Pointer{})),
        bytes_(std::exchange(other.bytes_, 0)) {}
  StagingBuffer& operator=(StagingBuffer&&) = delete;
  ~StagingBuffer() { Clear(); }

  // At least so many bytes; what was in it is lost where it grows.
  Expected<Pointer> Get(std::size_t bytes) {
    if (bytes <= bytes_ && data_ != Pointer{}) return data_;
    Clear();
    const std::size_t wanted = bytes < kLeast ? kLeast : bytes;
    auto data = Allocate(*driver_, wanted);
    if (!data) return data;
    data_ = *data;
    bytes_ = wanted;
    return data_;
  }
  Pointer data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kLeast = 256;
  void Clear() {
    if (data_ != Pointer{}) Free(*driver_, data_);
    data_ = Pointer{};
    bytes_ = 0;
  }

  const Driver* driver_;
  Pointer data_{};
  std::size_t bytes_ = 0;
};

Expected<std::byte*> AllocatePinned(const Driver& driver, std::size_t bytes);
void FreePinned(const Driver& driver, std::byte* data);
Expected<CUdeviceptr> AllocateOnDevice(const Driver& driver, std::size_t bytes);
void FreeOnDevice(const Driver& driver, CUdeviceptr data);

using PinnedBuffer = StagingBuffer<std::byte*, AllocatePinned, FreePinned>;
using DeviceBuffer = StagingBuffer<CUdeviceptr, AllocateOnDevice, FreeOnDevice>;

class Staging {
 public:
  // What an event stands behind.
  enum Event : std::size_t {
    kUploadBegins,
    kUploaded,
    kKernelsBegin,  // what the stream ran before is done
    kComputed,
    kDownloadBegins,
    kDownloaded,
    kEvents
  };

  // `share`: the part of the device that the batch's kernels run on. The two events around them are
  // of that part, the others of the whole device, whose streams the copies are in; how long it was
  // from one to another can be asked of two of a kind alone.
  static Expected<std::unique_ptr<Staging>> Make(Device& device, DeviceShare share,
                                                 std::size_t inputs, std::size_t outputs);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  CUevent event(Event which) const { return events_[which]; }
  PinnedBuffer& input(std::size_t i) { return inputs_[i]; }
  DeviceBuffer& device_input(std::size_t i) { return device_inputs_[i]; }
  PinnedBuffer& output(std::size_t i) { return outputs_[i]; }
  std::uint64_t device_bytes() const;

 private:
  Staging(const Driver& driver, std::size_t inputs, std::size_t outputs);

  const Driver& driver_;
  std::vector<PinnedBuffer> inputs_;
  std::vector<DeviceBuffer> device_inputs_;
  std::vector<PinnedBuffer> outputs_;
  std::array<CUevent, kEvents> events_{};
};

}  // namespace tactus
