#include "engines/cuda/device.h"

#include <algorithm>

#include <fmt/format.h>

#include "engines/cuda/device_facts.h"

namespace tactus {

Expected<std::unique_ptr<Device>> Device::Open(
    std::shared_ptr<const Driver> driver, int ordinal,
    const std::function<int(const std::string&)>& power_limit) {
  auto facts = ReadFacts(*driver, ordinal, power_limit);
  if (!facts) return std::unexpected(std::move(facts.error()));
  std::unique_ptr<Device> device(new Device(std::move(driver), ordinal));
  device->facts_ = *std::move(facts);
  if (Status started = device->Start(); !started) {
    return Fail(started.error().code,
                fmt::format("device cuda:{}: {}", ordinal, started.error().message));
  }
  return device;
}

Status Device::Start() {
  Status ok = Ask(*driver_, driver_->device, &device_, ordinal_);
  CUcontext context = nullptr;
  if (ok) ok = Ask(*driver_, driver_->retain_context, &context, device_);
  if (!ok) return ok;
  context_ = context;
  ok = Bind();
  if (ok) ok = Ask(*driver_, driver_->priority_range, &least_priority_, &greatest_priority_);
  if (!ok) return ok;
  auto uploads = MakeStream(0);
  if (!uploads) return std::unexpected(uploads.error());
  uploads_ = *uploads;
  return {};
}

Device::~Device() {
  if (context_ == nullptr) return;
  (void)Bind();
  if (uploads_ != nullptr) Destroy(uploads_);
  palette_.reset();
  (void)Ask(*driver_, driver_->release_context, device_);
}

int Device::PriorityOf(int level) const {
  return std::min(greatest_priority_ + std::max(level, 0), least_priority_);
}

Expected<SmPart> Device::PartFor(DeviceShare share) {
  if (palette_ == nullptr) {
    auto palette = SmPalette::Make(driver_, device_, context_, facts_.capability);
    if (!palette) return std::unexpected(palette.error());
    palette_ = *std::move(palette);
  }
  return PartOf(share.offset, share.fraction, palette_->groups());
}

Expected<CUstream> Device::MakeStream(int level, DeviceShare share) {
  if (share.fraction >= 1) {
    CUstream stream = nullptr;
    const Status ok = Ask(*driver_, driver_->create_stream, &stream,
                          static_cast<unsigned>(CU_STREAM_NON_BLOCKING), PriorityOf(level));
    if (!ok) return std::unexpected(ok.error());
    return stream;
  }
  const std::lock_guard lock(palette_mutex_);
  const auto part = PartFor(share);
  if (!part) return std::unexpected(part.error());
  return palette_->MakeStream(*part, PriorityOf(level));
}

Expected<CUevent> Device::MakeEvent(DeviceShare share) {
  if (share.fraction >= 1) {
    CUevent event = nullptr;
    const Status ok =
        Ask(*driver_, driver_->create_event, &event, static_cast<unsigned>(CU_EVENT_DEFAULT));
    if (!ok) return std::unexpected(ok.error());
    return event;
  }
  const std::lock_guard lock(palette_mutex_);
  const auto part = PartFor(share);
  if (!part) return std::unexpected(part.error());
  return palette_->MakeEvent(*part);
}

Expected<std::uint64_t> Device::FreeMemory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  const Status ok = Ask(*driver_, driver_->memory_info, &free, &total);
  if (!ok) return std::unexpected(ok.error());
  return free;
}

}  // namespace tactus
