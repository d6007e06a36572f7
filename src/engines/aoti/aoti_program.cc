#include "engines/aoti/aoti_program.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

// No {fmt} here: PyTorch's headers bring one of their own, of another version.

namespace tactus {
namespace {

using torch::inductor::AOTIModelPackageLoader;

// No BYTES and no type that PyTorch has no kernels for.
Expected<at::ScalarType> TypeOf(const TensorSpec& tensor) {
  switch (tensor.type) {
    case DataType::kFp32:
      return at::kFloat;
    case DataType::kFp64:
      return at::kDouble;
    case DataType::kFp16:
      return at::kHalf;
    case DataType::kInt64:
      return at::kLong;
    case DataType::kInt32:
      return at::kInt;
    case DataType::kInt8:
      return at::kChar;
    case DataType::kUint8:
      return at::kByte;
    case DataType::kBool:
      return at::kBool;
    default:
      return Fail(ErrorCode::kUnimplemented, "tensor '" + tensor.name + "' is of " +
                                                 std::string(Name(tensor.type)) +
                                                 ", which no AOTInductor package takes here");
  }
}

std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

struct TorchStorage {
  std::vector<at::Tensor> tensors;
};

class AotiProgram final : public DeviceProgram {
 public:
  AotiProgram(at::Device device, void* stream, std::vector<at::ScalarType> types,
              std::vector<TensorSpec> outputs,
              std::vector<std::unique_ptr<AOTIModelPackageLoader>> exits)
      : device_(device),
        stream_(stream),
        types_(std::move(types)),
        outputs_(std::move(outputs)),
        exits_(std::move(exits)) {}

  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    try {
      return Run(*exits_[exit.value()], inputs);
    } catch (const std::exception& e) {
      return Internal("AOTInductor: " + FirstLine(e));
    }
  }

 private:
  Expected<DeviceOutputs> Run(AOTIModelPackageLoader& package,
                              std::span<const DeviceTensor> inputs) {
    const c10::InferenceMode inference;
    // What it allocates for a batch belongs to this stream, so that no other stream is given it
    // while the batch runs.
    const c10::OptionalStreamGuard guard(StreamHere());
    std::vector<at::Tensor> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(at::from_blob(reinterpret_cast<void*>(inputs[i].address), inputs[i].shape,
                                    at::TensorOptions().dtype(types_[i]).device(device_)));
    }
    auto storage = std::make_shared<TorchStorage>(TorchStorage{package.run(given, stream_)});
    DeviceOutputs outputs;
    for (std::size_t i = 0; i < storage->tensors.size(); ++i) {
      at::Tensor& tensor = storage->tensors[i];
      if (!tensor.is_contiguous() || tensor.device() != device_) {
        return Internal(
            "output " + std::to_string(i) +
            " is on another device, or not contiguous; export the package again for this device");
      }
      outputs.tensors.push_back({reinterpret_cast<std::uint64_t>(tensor.data_ptr()),
                                 tensor.nbytes(),
                                 Shape(tensor.sizes().begin(), tensor.sizes().end())});
    }
    outputs.storage = std::move(storage);
    return outputs;
  }

  // A stream that is not PyTorch's own has its address for an id.
  std::optional<c10::Stream> StreamHere() const {
    if (device_.is_cpu()) return std::nullopt;
    return c10::Stream(c10::Stream::UNSAFE, device_, reinterpret_cast<c10::StreamId>(stream_));
  }

  const at::Device device_;
  void* const stream_;
  const std::vector<at::ScalarType> types_;  // by input
  const std::vector<TensorSpec> outputs_;
  const std::vector<std::unique_ptr<AOTIModelPackageLoader>> exits_;
};

// A package says neither the names nor the shapes of its tensors, so the model's folder has to.
Status CheckStated(const ModelSpec& spec) {
  if (spec.exits.empty()) return InvalidArgument("it has no package to load");
  if (!spec.inputs.empty() && !spec.outputs.empty()) return {};
  return InvalidArgument(
      "its config.pbtxt states no input or no output, and an AOTInductor package does not contain "
      "them");
}

Expected<std::unique_ptr<DeviceProgram>> LoadPackages(AotiTarget target, const ModelSpec& spec,
                                                      const DeviceStream& stream) {
  if (Status stated = CheckStated(spec); !stated) return std::unexpected(stated.error());
  std::vector<at::ScalarType> types;
  for (const TensorSpec& input : spec.inputs) {
    const auto type = TypeOf(input);
    if (!type) return std::unexpected(type.error());
    types.push_back(*type);
  }
  const bool on_host = target == AotiTarget::kHost;
  const at::Device device =
      on_host ? at::Device(at::kCPU)
              : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(stream.device));
  std::vector<std::unique_ptr<AOTIModelPackageLoader>> exits;
  for (const ExitSpec& exit : spec.exits) {
    try {
      // One runner: a program is asked for one batch at a time. It waits for none of them.
      exits.push_back(std::make_unique<AOTIModelPackageLoader>(
          exit.graph.string(), "model", true, 1, on_host ? at::DeviceIndex(-1) : device.index()));
    } catch (const std::exception& e) {
      return InvalidArgument(
          exit.graph.string() + ": no AOTInductor package that runs here (" + FirstLine(e) +
          "); export it again on this kind of device with models/export_aoti.py");
    }
  }
  return std::make_unique<AotiProgram>(device, on_host ? nullptr : stream.handle, std::move(types),
                                       spec.outputs, std::move(exits));
}

}  // namespace

Expected<DevicePrograms> MakeAotiPrograms(AotiTarget target) {
  // The part for devices registers itself when it is opened; nothing here refers to it.
  if (target == AotiTarget::kCuda &&
      dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return NotFound("PyTorch's library for NVIDIA devices was not found (" +
                    std::string(dlerror()) +
                    "); add the folder lib of a PyTorch for CUDA to LD_LIBRARY_PATH");
  }
  return DevicePrograms{"aotinductor " TORCH_VERSION,
                        [target](ModelSpec& spec, const DeviceStream& stream) {
                          return LoadPackages(target, spec, stream);
                        }};
}

}  // namespace tactus
