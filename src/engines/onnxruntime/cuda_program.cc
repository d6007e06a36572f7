#include "engines/onnxruntime/cuda_program.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engines/onnxruntime/graph.h"
#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/run_failure.h"

namespace tactus {
namespace {

constexpr const char* kProvider = "CUDAExecutionProvider";
constexpr const char* kInstallGpu =
    "run ./run setup gpu, or set ONNXRUNTIME_ROOT to a release for GPUs";
// What the provider's library needs or opens, each behind what it needs itself. cuDNN compiles
// kernels of convolutions with NVRTC as they are first run, and fails without it.
constexpr const char* kNeeded[] = {
    "libcudart.so.13", "libcublasLt.so.13",         "libcublas.so.13", "libcurand.so.10",
    "libcufft.so.12",  "libnvrtc-builtins.so.13.0", "libnvrtc.so.13",  "libcudnn.so.9"};

std::filesystem::path GpuLibrary(const std::filesystem::path& library) {
  const char* root = std::getenv("ONNXRUNTIME_ROOT");
  if (!library.empty() || (root != nullptr && *root != '\0')) return library;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (auto above = program.parent_path(); !error && above != above.root_path();
       above = above.parent_path()) {
    const auto folder = above / ".cache" / "onnxruntime-gpu" / "lib";
    if (std::filesystem::is_directory(folder, error)) return folder;
    error.clear();
  }
  return library;
}

// The loader finds a library that is open already wherever it lies. Those that do not lie here it
// may know itself.
void OpenNeeded(const std::filesystem::path& folder) {
  for (const char* name : kNeeded) {
    dlopen((folder / name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

Ort::SessionOptions OptionsOn(const DeviceStream& stream) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  options.SetInterOpNumThreads(1);
  options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_ALL);
  Ort::CUDAProviderOptions cuda;
  cuda.Update({{"device_id", std::to_string(stream.device)},
               // The default doubles what it takes each time, and lanes share the memory.
               {"arena_extend_strategy", "kSameAsRequested"},
               // The default runs every algorithm of each convolution while it loads.
               {"cudnn_conv_algo_search", "HEURISTIC"}});
  cuda.UpdateWithValue("user_compute_stream", stream.handle);
  options.AppendExecutionProvider_CUDA_V2(*cuda);
  return options;
}

struct CudaStorage {
  std::vector<Ort::Value> values;
};

class OnnxCudaProgram final : public DeviceProgram {
 public:
  OnnxCudaProgram(const ModelSpec& spec, int device, std::vector<std::shared_ptr<Graph>> exits)
      : inputs_(spec.inputs),
        outputs_(spec.outputs),
        exits_(std::move(exits)),
        memory_("Cuda", OrtDeviceAllocator, device, OrtMemTypeDefault) {
    // The engine waits for the stream itself, with the answer of the batch.
    run_.AddConfigEntry("disable_synchronize_execution_providers", "1");
  }

  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    Graph& graph = *exits_[exit.value()];
    try {
      return Run(graph, inputs);
    } catch (const Ort::Exception& e) {
      return Internal(fmt::format("{}: {}", graph.path.string(), RunFailure(e.what())));
    }
  }

 private:
  DeviceOutputs Run(Graph& graph, std::span<const DeviceTensor> inputs) {
    Ort::IoBinding binding(graph.session);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Shape& shape = inputs[i].shape;
      binding.BindInput(inputs_[i].name.c_str(),
                        Ort::Value::CreateTensor(
                            memory_, reinterpret_cast<void*>(inputs[i].address), inputs[i].bytes,
                            shape.data(), shape.size(), ToOnnx(inputs_[i].type)));
    }
    for (const TensorSpec& output : outputs_) binding.BindOutput(output.name.c_str(), memory_);
    graph.session.Run(run_, binding);
    auto storage = std::make_shared<CudaStorage>(binding.GetOutputValues());
    DeviceOutputs outputs;
    for (Ort::Value& value : storage->values) {
      outputs.tensors.push_back({reinterpret_cast<std::uint64_t>(value.GetTensorMutableRawData()),
                                 value.GetTensorSizeInBytes(),
                                 value.GetTensorTypeAndShapeInfo().GetShape()});
    }
    outputs.storage = std::move(storage);
    return outputs;
  }

  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;
  const std::vector<std::shared_ptr<Graph>> exits_;
  const Ort::MemoryInfo memory_;
  Ort::RunOptions run_;
};

Expected<std::unique_ptr<DeviceProgram>> LoadProgram(Ort::Env& env, ModelSpec& spec,
                                                     const DeviceStream& stream) {
  if (spec.exits.empty()) return InvalidArgument("it has no graph to load");
  std::vector<std::shared_ptr<Graph>> exits;
  for (const ExitSpec& exit : spec.exits) {
    auto graph = LoadGraph(env, exit.graph, [&] { return OptionsOn(stream); });
    if (!graph) return std::unexpected(std::move(graph.error()));
    if (Status ok = MatchTensors(spec, **graph); !ok) return std::unexpected(ok.error());
    exits.push_back(*std::move(graph));
  }
  spec.contents = ContentsOf(exits);
  try {
    return std::make_unique<OnnxCudaProgram>(spec, stream.device, std::move(exits));
  } catch (const Ort::Exception& e) {
    return Internal(fmt::format("ONNX Runtime: {}", e.what()));
  }
}

// Opens the provider's library, so that what it lacks is said at the start and not of a model.
Status StartProvider(const std::string& version) {
  const std::vector<std::string> providers = Ort::GetAvailableProviders();
  if (std::ranges::find(providers, kProvider) == providers.end()) {
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("the ONNX Runtime {} that was found has no {} (it has {}); {}", version,
                            kProvider, fmt::join(providers, ", "), kInstallGpu));
  }
  try {
    Ort::SessionOptions options;
    const Ort::CUDAProviderOptions cuda;
    options.AppendExecutionProvider_CUDA_V2(*cuda);
    return {};
  } catch (const Ort::Exception& e) {
    std::string why = e.what();
    std::ranges::replace(why, '\n', ' ');
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("the CUDA provider of ONNX Runtime {} does not start ({}); {}", version,
                            why, kInstallGpu));
  }
}

}  // namespace

Expected<DevicePrograms> MakeOnnxCudaPrograms(const std::filesystem::path& library) {
  const std::filesystem::path found = GpuLibrary(library);
  if (!found.empty()) OpenNeeded(is_directory(found) ? found : found.parent_path());
  const auto version = OpenOnnxRuntime(found);
  if (!version) return std::unexpected(version.error());
  try {
    // First: the provider logs as it starts.
    auto env = std::make_shared<Ort::Env>(MakeEnv("tactus"));
    if (Status has = StartProvider(*version); !has) return std::unexpected(has.error());
    return DevicePrograms{"onnxruntime " + *version,
                          [env](ModelSpec& spec, const DeviceStream& stream) {
                            return LoadProgram(*env, spec, stream);
                          }};
  } catch (const Ort::Exception& e) {
    return Internal(fmt::format("ONNX Runtime does not start: {}", e.what()));
  }
}

}  // namespace tactus
