#include "engines/cuda/sm_palette.h"

#include <fmt/format.h>

namespace tactus {
namespace {

Error CannotSplit(const Error& error) {
  return {ErrorCode::kUnimplemented,
          fmt::format("this device cannot be split into parts of its SMs: {}; serve without shares "
                      "(--lanes or --slots instead of --plan)",
                      error.message)};
}

}  // namespace

Expected<std::unique_ptr<SmPalette>> SmPalette::Make(std::shared_ptr<const Driver> driver,
                                                     CUdevice device, CUcontext primary,
                                                     int capability) {
  std::unique_ptr<SmPalette> palette(new SmPalette(std::move(driver), device, primary));
  if (Status split = palette->Split(capability); !split) {
    if (IsDeviceLost(split.error())) return std::unexpected(split.error());
    return std::unexpected(CannotSplit(split.error()));
  }
  return palette;
}

SmPalette::~SmPalette() {
  for (const auto& [part, context] : contexts_)
    (void)Ask(*driver_, driver_->destroy_green, context);
}

Status SmPalette::Split(int capability) {
  CUdevResource all{};
  Status ok = Ask(*driver_, driver_->device_resource, device_, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (!ok) return ok;
  // A driver that says what the grain is knows better than a table.
  SmGrain grain = GrainOf(capability);
  if (all.sm.minSmPartitionSize > 0 && all.sm.smCoscheduledAlignment > 0) {
    grain = {static_cast<int>(all.sm.minSmPartitionSize),
             static_cast<int>(all.sm.smCoscheduledAlignment)};
  }
  group_sms_ = grain.group();
  unsigned count = all.sm.smCount / static_cast<unsigned>(group_sms_);
  if (count < 2) {
    return InvalidArgument(
        fmt::format("it has {} SMs, and the smallest part has {}", all.sm.smCount, group_sms_));
  }
  groups_.resize(count);
  CUdevResource rest{};
  ok = Ask(*driver_, driver_->split_sms, groups_.data(), &count, &all, &rest, 0u,
           static_cast<unsigned>(group_sms_));
  if (!ok) return ok;
  groups_.resize(count);  // it may have made fewer
  return {};
}

Expected<CUgreenCtx> SmPalette::ContextOf(SmPart part) {
  const auto known = contexts_.find({part.first, part.count});
  if (known != contexts_.end()) return known->second;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  Status ok = Ask(*driver_, driver_->describe_resources, &description, groups_.data() + part.first,
                  static_cast<unsigned>(part.count));
  if (ok) {
    ok = Ask(*driver_, driver_->create_green, &context, description, device_,
             static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
  }
  if (!ok) return std::unexpected(ok.error());
  if (Status size = CheckSize(context, part); !size) {
    (void)Ask(*driver_, driver_->destroy_green, context);
    return std::unexpected(size.error());
  }
  contexts_.emplace(std::pair(part.first, part.count), context);
  return context;
}

Status SmPalette::CheckSize(CUgreenCtx context, SmPart part) const {
  CUdevResource got{};
  Status ok = Ask(*driver_, driver_->green_resource, context, &got, CU_DEV_RESOURCE_TYPE_SM);
  const int wanted = part.count * group_sms_;
  if (!ok || static_cast<int>(got.sm.smCount) == wanted) return ok;
  return Internal(
      fmt::format("cuGreenCtxCreate: a part that was to have {} SMs has {}; report it with the "
                  "device's name and driver, and serve without shares",
                  wanted, got.sm.smCount));
}

Status SmPalette::CheckPart(SmPart part) const {
  if (part.first >= 0 && part.count >= 1 && part.first + part.count <= groups()) return {};
  return InvalidArgument(fmt::format("groups {} to {} of a device that has {}", part.first,
                                     part.first + part.count, groups()));
}

Expected<CUevent> SmPalette::MakeEvent(SmPart part) {
  if (Status there = CheckPart(part); !there) return std::unexpected(there.error());
  // A green context is current to one thread at a time, says CUDA.
  const std::lock_guard lock(mutex_);
  const auto green = ContextOf(part);
  if (!green) return std::unexpected(green.error());
  CUcontext context = nullptr;
  CUevent event = nullptr;
  Status ok = Ask(*driver_, driver_->green_as_context, &context, *green);
  if (ok) ok = Ask(*driver_, driver_->set_current, context);
  if (!ok) return std::unexpected(ok.error());
  ok = Ask(*driver_, driver_->create_event, &event, static_cast<unsigned>(CU_EVENT_DEFAULT));
  const Status back = Ask(*driver_, driver_->set_current, primary_);
  if (ok && !back) (void)Ask(*driver_, driver_->destroy_event, event);
  if (ok) ok = back;
  if (!ok) return std::unexpected(ok.error());
  return event;
}

Expected<CUstream> SmPalette::MakeStream(SmPart part, int priority) {
  if (Status there = CheckPart(part); !there) return std::unexpected(there.error());
  const std::lock_guard lock(mutex_);
  const auto context = ContextOf(part);
  if (!context) return std::unexpected(context.error());
  CUstream stream = nullptr;
  const Status ok = Ask(*driver_, driver_->create_green_stream, &stream, *context,
                        static_cast<unsigned>(CU_STREAM_NON_BLOCKING), priority);
  if (!ok) return std::unexpected(ok.error());
  return stream;
}

}  // namespace tactus
