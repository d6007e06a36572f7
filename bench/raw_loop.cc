#include "raw_loop.h"

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "engines/onnxruntime/graph.h"
#include "engines/onnxruntime/library.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

RawLoopResult Loop(Graph& graph, const Shape& shape, Duration length) {
  std::vector<float> zeros(static_cast<std::size_t>(*ElementCount(shape)));
  const auto host = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
  const auto input =
      Ort::Value::CreateTensor<float>(host, zeros.data(), zeros.size(), shape.data(), shape.size());
  const char* const input_name = graph.inputs[0].name.c_str();
  const char* const output_name = graph.outputs[0].name.c_str();
  const Ort::RunOptions options;
  const auto run = [&] { graph.session.Run(options, &input_name, &input, 1, &output_name, 1); };
  for (int i = 0; i < 3; ++i) run();
  RawLoopResult result;
  const auto begin = Clock::now();
  while (result.elapsed < length) {
    run();
    ++result.batches;
    result.elapsed = Clock::now() - begin;
  }
  return result;
}

}  // namespace

Expected<RawLoopResult> RunRawLoop(const std::filesystem::path& path, int batch, Duration length) {
  if (const auto version = OpenOnnxRuntime({}); !version) return std::unexpected(version.error());
  try {
    Ort::Env env = MakeEnv("raw-loop");
    const auto graph = LoadGraph(env, path, CpuPlacement{});
    if (!graph) return std::unexpected(graph.error());
    Shape shape = (*graph)->inputs[0].dims;
    if ((*graph)->inputs.size() != 1 || (*graph)->inputs[0].type != DataType::kFp32 ||
        shape.empty()) {
      return InvalidArgument(fmt::format("{}: not a graph with one FP32 input", path.string()));
    }
    shape[0] = batch;
    if (!ElementCount(shape)) {
      return InvalidArgument(
          fmt::format("{}: its input is {}; only the batch dimension may be open", path.string(),
                      ToString(shape)));
    }
    return Loop(**graph, shape, length);
  } catch (const Ort::Exception& e) {
    return Internal(fmt::format("{}: {}", path.string(), e.what()));
  }
}

}  // namespace tactus
