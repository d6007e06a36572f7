// The functions of NVIDIA's driver that this engine calls, each by its name in libcuda.so.1 and
// with the type that cuda.h gives it. The library is opened at run time; tests fill the table
// themselves (scripted_driver_test.h).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <cuda.h>

#include "base/expected.h"

namespace tactus {

template <class Signature>
struct DriverFunction {
  using Type = Signature;
  const char* name;  // of the symbol
  std::function<Signature> call = nullptr;
};

struct Driver {
  DriverFunction<decltype(cuInit)> init{"cuInit"};
  DriverFunction<decltype(cuDriverGetVersion)> driver_version{"cuDriverGetVersion"};
  DriverFunction<decltype(cuGetErrorName)> error_name{"cuGetErrorName"};
  DriverFunction<decltype(cuGetErrorString)> error_text{"cuGetErrorString"};

  DriverFunction<decltype(cuDeviceGetCount)> device_count{"cuDeviceGetCount"};
  DriverFunction<decltype(cuDeviceGet)> device{"cuDeviceGet"};
  DriverFunction<decltype(cuDeviceGetName)> device_name{"cuDeviceGetName"};
  DriverFunction<decltype(cuDeviceGetUuid)> device_uuid{"cuDeviceGetUuid_v2"};
  DriverFunction<decltype(cuDeviceGetAttribute)> device_attribute{"cuDeviceGetAttribute"};
  DriverFunction<decltype(cuDeviceTotalMem)> device_memory{"cuDeviceTotalMem_v2"};

  DriverFunction<decltype(cuDevicePrimaryCtxRetain)> retain_context{"cuDevicePrimaryCtxRetain"};
  DriverFunction<decltype(cuDevicePrimaryCtxRelease)> release_context{
      "cuDevicePrimaryCtxRelease_v2"};
  DriverFunction<decltype(cuCtxSetCurrent)> set_current{"cuCtxSetCurrent"};
  DriverFunction<decltype(cuCtxGetStreamPriorityRange)> priority_range{
      "cuCtxGetStreamPriorityRange"};

  DriverFunction<decltype(cuMemGetInfo)> memory_info{"cuMemGetInfo_v2"};
  DriverFunction<decltype(cuMemAlloc)> allocate{"cuMemAlloc_v2"};
  DriverFunction<decltype(cuMemFree)> free{"cuMemFree_v2"};
  DriverFunction<decltype(cuMemHostAlloc)> allocate_pinned{"cuMemHostAlloc"};
  DriverFunction<decltype(cuMemFreeHost)> free_pinned{"cuMemFreeHost"};
  DriverFunction<decltype(cuMemcpyHtoDAsync)> upload{"cuMemcpyHtoDAsync_v2"};
  DriverFunction<decltype(cuMemcpyDtoHAsync)> download{"cuMemcpyDtoHAsync_v2"};

  DriverFunction<decltype(cuStreamCreateWithPriority)> create_stream{"cuStreamCreateWithPriority"};
  DriverFunction<decltype(cuStreamDestroy)> destroy_stream{"cuStreamDestroy_v2"};
  DriverFunction<decltype(cuStreamSynchronize)> await_stream{"cuStreamSynchronize"};
  DriverFunction<decltype(cuStreamWaitEvent)> stream_waits{"cuStreamWaitEvent"};
  DriverFunction<decltype(cuLaunchHostFunc)> launch_host{"cuLaunchHostFunc"};
  DriverFunction<decltype(cuEventCreate)> create_event{"cuEventCreate"};
  DriverFunction<decltype(cuEventDestroy)> destroy_event{"cuEventDestroy_v2"};
  DriverFunction<decltype(cuEventRecord)> record_event{"cuEventRecord"};
  DriverFunction<decltype(cuEventQuery)> query_event{"cuEventQuery"};
  // The newer form of this one has the same type and is not in drivers before 12.8.
  DriverFunction<decltype(cuEventElapsedTime)> elapsed{"cuEventElapsedTime"};

  DriverFunction<decltype(cuDeviceGetDevResource)> device_resource{"cuDeviceGetDevResource"};
  DriverFunction<decltype(cuDevSmResourceSplitByCount)> split_sms{"cuDevSmResourceSplitByCount"};
  DriverFunction<decltype(cuDevResourceGenerateDesc)> describe_resources{
      "cuDevResourceGenerateDesc"};
  DriverFunction<decltype(cuGreenCtxCreate)> create_green{"cuGreenCtxCreate"};
  DriverFunction<decltype(cuGreenCtxDestroy)> destroy_green{"cuGreenCtxDestroy"};
  DriverFunction<decltype(cuGreenCtxGetDevResource)> green_resource{"cuGreenCtxGetDevResource"};
  DriverFunction<decltype(cuGreenCtxStreamCreate)> create_green_stream{"cuGreenCtxStreamCreate"};
  DriverFunction<decltype(cuCtxFromGreenCtx)> green_as_context{"cuCtxFromGreenCtx"};

  DriverFunction<decltype(cuLibraryLoadData)> load_library{"cuLibraryLoadData"};
  DriverFunction<decltype(cuLibraryUnload)> unload_library{"cuLibraryUnload"};
  DriverFunction<decltype(cuLibraryGetKernel)> library_kernel{"cuLibraryGetKernel"};
  DriverFunction<decltype(cuLaunchKernel)> launch_kernel{"cuLaunchKernel"};
};

inline constexpr std::size_t kDriverFunctions = 43;
static_assert(sizeof(Driver) == kDriverFunctions * sizeof(DriverFunction<decltype(cuInit)>),
              "a function that was added here is also one of ForEachFunction");

// Each function of `driver`, in the order of its members: `visit(function)`.
template <class Visit>
void ForEachFunction(Driver& driver, Visit&& visit) {
  auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
         f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37,
         f38, f39, f40, f41, f42] = driver;
  const auto all = [&](auto&... functions) { (visit(functions), ...); };
  all(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
      f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39,
      f40, f41, f42);
}

// Opens the driver and calls cuInit. `library`: libcuda.so.1, by the system's loader. One line
// names what is missing and what to do: the library (kNotFound), a function that its version lacks
// (kUnimplemented), or a driver that does not start. It stays open until the process ends.
Expected<std::shared_ptr<const Driver>> OpenDriver(
    const std::filesystem::path& library = "libcuda.so.1");

// cuInit, of a table that is filled.
Status StartDriver(const Driver& driver);

// The error that the CUresult of `function` stands for: kResourceExhausted where memory is short,
// kUnavailable where the device is lost, else kInternal. Names the function, the code and what the
// driver says.
Error DriverError(const Driver& driver, const char* function, CUresult code);

// Nothing runs any more on the device in this process: its context is damaged, or it is gone.
inline bool IsDeviceLost(const Error& error) { return error.code == ErrorCode::kUnavailable; }

// Calls `function`, which is one of `driver`'s.
template <class Signature, class... Arguments>
Status Ask(const Driver& driver, const DriverFunction<Signature>& function,
           Arguments... arguments) {
  const CUresult code = function.call(arguments...);
  if (code == CUDA_SUCCESS) return {};
  return std::unexpected(DriverError(driver, function.name, code));
}

}  // namespace tactus
