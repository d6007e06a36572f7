// A device that is open: its context, its streams, its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/expected.h"
#include "core/device_facts.h"
#include "engines/cuda/driver.h"
#include "engines/cuda/sm_palette.h"

namespace tactus {

// A part of the device, as shares of the whole; see PartOf.
struct DeviceShare {
  double offset = 0;
  double fraction = 1;
};

class Device {
 public:
  // The errors of ReadFacts, and of a context that cannot be had.
  static Expected<std::unique_ptr<Device>> Open(
      std::shared_ptr<const Driver> driver, int ordinal,
      const std::function<int(const std::string&)>& power_limit);
  ~Device();  // all streams are gone
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return device_; }
  const DeviceFacts& facts() const { return facts_; }

  // Makes the device's context that of this thread's calls. All below need it.
  Status Bind() const { return Ask(*driver_, driver_->set_current, context_); }

  // What the driver calls the priority of a level, 0 the highest: one apart, and alike where there
  // are more levels than the device has.
  int PriorityOf(int level) const;

  // On the whole device, or on the SMs of a part of it: the device is split when the first part is
  // asked for. Thread-safe.
  Expected<CUstream> MakeStream(int level, DeviceShare share = {});
  // One that those streams can record: the driver takes no event of another context.
  Expected<CUevent> MakeEvent(DeviceShare share = {});
  void Destroy(CUstream stream) const { (void)Ask(*driver_, driver_->destroy_stream, stream); }

  // The one stream that takes inputs to the device: they share a link. Hold the lock from the first
  // to the last call for one batch, so that what is measured is its own.
  CUstream uploads() const { return uploads_; }
  std::mutex& upload_mutex() { return upload_mutex_; }

  // Held while a model is loaded, so that what is missing afterwards is the model's.
  std::mutex& load_mutex() { return load_mutex_; }
  Expected<std::uint64_t> FreeMemory() const;

 private:
  Device(std::shared_ptr<const Driver> driver, int ordinal)
      : driver_(std::move(driver)), ordinal_(ordinal) {}
  Status Start();
  // A part of the palette, which it makes if there is none yet. The mutex is held.
  Expected<SmPart> PartFor(DeviceShare share);

  const std::shared_ptr<const Driver> driver_;
  const int ordinal_;
  DeviceFacts facts_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  int least_priority_ = 0;
  int greatest_priority_ = 0;
  CUstream uploads_ = nullptr;
  std::mutex upload_mutex_;
  std::mutex load_mutex_;
  std::mutex palette_mutex_;
  std::unique_ptr<SmPalette> palette_;  // null: nobody has asked for a part
};

}  // namespace tactus
