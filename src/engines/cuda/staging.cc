#include "engines/cuda/staging.h"

namespace tactus {

Expected<std::byte*> AllocatePinned(const Driver& driver, std::size_t bytes) {
  void* data = nullptr;
  const Status ok = Ask(driver, driver.allocate_pinned, &data, bytes,
                        static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE));
  if (!ok) return std::unexpected(ok.error());
  return static_cast<std::byte*>(data);
}

void FreePinned(const Driver& driver, std::byte* data) {
  (void)Ask(driver, driver.free_pinned, static_cast<void*>(data));
}

Expected<CUdeviceptr> AllocateOnDevice(const Driver& driver, std::size_t bytes) {
  CUdeviceptr data = 0;
  const Status ok = Ask(driver, driver.allocate, &data, bytes);
  if (!ok) return std::unexpected(ok.error());
  return data;
}

void FreeOnDevice(const Driver& driver, CUdeviceptr data) { (void)Ask(driver, driver.free, data); }

Staging::Staging(const Driver& driver, std::size_t inputs, std::size_t outputs) : driver_(driver) {
  for (std::size_t i = 0; i < inputs; ++i) inputs_.emplace_back(driver);
  for (std::size_t i = 0; i < inputs; ++i) device_inputs_.emplace_back(driver);
  for (std::size_t i = 0; i < outputs; ++i) outputs_.emplace_back(driver);
}

Expected<std::unique_ptr<Staging>> Staging::Make(Device& device, DeviceShare share,
                                                 std::size_t inputs, std::size_t outputs) {
  std::unique_ptr<Staging> staging(new Staging(device.driver(), inputs, outputs));
  for (std::size_t e = 0; e < kEvents; ++e) {
    const bool around_kernels = e == kKernelsBegin || e == kComputed;
    const auto event = device.MakeEvent(around_kernels ? share : DeviceShare{});
    if (!event) return std::unexpected(event.error());
    staging->events_[e] = *event;
  }
  return staging;
}

Staging::~Staging() {
  for (const CUevent event : events_) {
    if (event != nullptr) (void)Ask(driver_, driver_.destroy_event, event);
  }
}

std::uint64_t Staging::device_bytes() const {
  std::uint64_t bytes = 0;
  for (const DeviceBuffer& buffer : device_inputs_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace tactus
