// Parts of a device as contexts: CUDA's green contexts, each bound to some of the SMs. None can be
// resized, so that a lane which changes its share changes to another one. The device is split into
// its smallest groups once, and every part is made of groups of that one split: separate splits
// would overlap. Memory, caches and copy engines stay common to all.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "engines/cuda/driver.h"
#include "engines/cuda/sm_shares.h"

namespace tactus {

class SmPalette {
 public:
  // Splits `device`, whose primary context is current. kUnimplemented where the device or the
  // driver cannot be split, with what to do.
  static Expected<std::unique_ptr<SmPalette>> Make(std::shared_ptr<const Driver> driver,
                                                   CUdevice device, CUcontext primary,
                                                   int capability);
  ~SmPalette();  // all of its streams are gone
  SmPalette(const SmPalette&) = delete;
  SmPalette& operator=(const SmPalette&) = delete;

  int groups() const { return static_cast<int>(groups_.size()); }
  int group_sms() const { return group_sms_; }

  // A stream on the part, of a priority as the driver counts it. The part's context is made when
  // the first stream on it is, and must have just the SMs that the part is to have: kInternal says
  // what the driver gave instead. Thread-safe.
  Expected<CUstream> MakeStream(SmPart part, int priority);

  // An event that can be recorded in the streams of the part, and in no others: the driver wants
  // both of one context. Any stream may wait for it. The primary context is current before and
  // afterwards. Thread-safe.
  Expected<CUevent> MakeEvent(SmPart part);

 private:
  SmPalette(std::shared_ptr<const Driver> driver, CUdevice device, CUcontext primary)
      : driver_(std::move(driver)), device_(device), primary_(primary) {}
  Status Split(int capability);
  Status CheckPart(SmPart part) const;
  Expected<CUgreenCtx> ContextOf(SmPart part);
  Status CheckSize(CUgreenCtx context, SmPart part) const;

  const std::shared_ptr<const Driver> driver_;
  const CUdevice device_;
  const CUcontext primary_;
  std::vector<CUdevResource> groups_;
  int group_sms_ = 0;
  std::mutex mutex_;
  std::map<std::pair<int, int>, CUgreenCtx> contexts_;  // by first and count
};

}  // namespace tactus
