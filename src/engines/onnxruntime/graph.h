// One exit's graph, loaded: a session and what its tensors are.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/onnxruntime/arena_growth.h"
#include "engines/onnxruntime/library.h"

namespace tactus {

// Ours for an ONNX element type and back; kUnimplemented names a type that we do not have.
Expected<DataType> FromOnnx(ONNXTensorElementDataType type);
ONNXTensorElementDataType ToOnnx(DataType type);

struct Graph {
  std::filesystem::path path;
  std::vector<TensorSpec> inputs;  // in the graph's order; a dimension that is open is -1
  std::vector<TensorSpec> outputs;
  // Inputs that have a default in the graph, an initializer of the same name, and need not be given
  // (ONNX Runtime's overridable initializers); those of types that we have.
  std::vector<TensorSpec> defaulted;
  std::uint64_t file_bytes = 0;
  std::uint64_t contents = 0;  // the hash of the files that it was loaded from
  Ort::Session session{nullptr};
  ArenaGrowth arena;
};

// For a lane's threads and cores; the thread that runs a batch is one of the threads. An error
// names the file and what to do. May take seconds. Thread-safe. With `trace`, the session notes
// what it runs, for a file whose name begins so; its weights stay as the graph has them.
Expected<std::shared_ptr<Graph>> LoadGraph(Ort::Env& env, const std::filesystem::path& path,
                                           const CpuPlacement& lane,
                                           const std::filesystem::path& trace = {});
// The same, with options of one's own; what making them throws is an error of the graph's.
Expected<std::shared_ptr<Graph>> LoadGraph(Ort::Env& env, const std::filesystem::path& path,
                                           const std::function<Ort::SessionOptions()>& options);

// The hash of the files of all of them.
std::uint64_t ContentsOf(std::span<const std::shared_ptr<Graph>> exits);

// Completes the tensors of `spec` from the graph where there are none, and checks them where there
// are: the inputs that the graph needs, any that have a default in it, outputs that the graph has,
// equal types and dimensions, or those of their `reshape`, that agree. A scalar of the graph may be
// stated as [1]: that is a reshape. Of a tensor whose shape the graph does not know, what is stated
// counts. An optional input needs a default.
Status MatchTensors(ModelSpec& spec, const Graph& graph);

}  // namespace tactus
