#include "engines/cuda/driver.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

namespace tactus {
namespace {

constexpr const char* kInstall = "install NVIDIA's driver (580 or later) and restart the machine";

// Work queues between the host and a device. Streams beyond their number share one, where work of
// either waits behind the other's, whatever its priority; the driver makes 8 unless it is told to
// make more, and a lane has two streams for each of its models. 32 are the most.
constexpr const char* kQueues = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr const char* kMostQueues = "32";
// The driver reads it as it starts. Set before there are threads, of which another might read the
// environment meanwhile.
[[maybe_unused]] const int kQueuesSet = setenv(kQueues, kMostQueues, 0);

// After these every further call of the process fails alike.
constexpr std::array kLost = {
    CUDA_ERROR_DEINITIALIZED,
    CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_SYSTEM_NOT_READY,
    CUDA_ERROR_EXTERNAL_DEVICE,
    CUDA_ERROR_CONTAINED,
    CUDA_ERROR_UNKNOWN,
};

// What the driver calls a code; a driver that does not know it has no text.
std::string TextOf(const DriverFunction<decltype(cuGetErrorName)>& function, CUresult code) {
  const char* text = nullptr;
  if (function.call == nullptr || function.call(code, &text) != CUDA_SUCCESS || text == nullptr) {
    return "";
  }
  return text;
}

std::string Remedy(CUresult code) {
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    return "; serve fewer models or lanes there, or smaller batches: each lane holds the weights "
           "of its models";
  }
  if (code == CUDA_ERROR_NO_DEVICE) {
    return "; `nvidia-smi -L` lists those that the driver sees, of which CUDA_VISIBLE_DEVICES may "
           "hide some";
  }
  if (std::ranges::find(kLost, code) != kLost.end()) {
    return "; this process cannot use the device any more: restart it, and look for Xid in `dmesg`";
  }
  return "";
}

ErrorCode CodeOf(CUresult code) {
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return ErrorCode::kResourceExhausted;
  if (code == CUDA_ERROR_NO_DEVICE) return ErrorCode::kNotFound;
  const bool lost = std::ranges::find(kLost, code) != kLost.end();
  return lost ? ErrorCode::kUnavailable : ErrorCode::kInternal;
}

}  // namespace

Error DriverError(const Driver& driver, const char* function, CUresult code) {
  std::string name = TextOf(driver.error_name, code);
  if (name.empty()) name = fmt::format("code {}", static_cast<int>(code));
  const std::string text = TextOf(driver.error_text, code);
  return {CodeOf(code), fmt::format("{}: {}{}{}", function, name,
                                    text.empty() ? "" : " (" + text + ")", Remedy(code))};
}

Status StartDriver(const Driver& driver) {
  Status started = Ask(driver, driver.init, 0u);
  if (started) return {};
  return Fail(started.error().code,
              fmt::format("NVIDIA's driver does not start: {}", started.error().message));
}

Expected<std::shared_ptr<const Driver>> OpenDriver(const std::filesystem::path& library) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return NotFound(fmt::format("NVIDIA's driver was not found ({}); {}", dlerror(), kInstall));
  }
  auto driver = std::make_shared<Driver>();
  std::string missing;
  ForEachFunction(*driver, [&](auto& function) {
    using Signature = typename std::remove_reference_t<decltype(function)>::Type;
    auto* symbol = reinterpret_cast<Signature*>(dlsym(opened, function.name));
    if (symbol == nullptr)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", function.name);
    function.call = symbol;
  });
  if (!missing.empty()) {
    dlclose(opened);
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("{} lacks {}: it is not NVIDIA's driver, or too old a one; {}",
                            library.string(), missing, kInstall));
  }
  if (Status started = StartDriver(*driver); !started) return std::unexpected(started.error());
  return driver;
}

}  // namespace tactus
