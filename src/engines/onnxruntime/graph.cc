#include "engines/onnxruntime/graph.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fnv.h"
#include "base/whole_file.h"
#include "engines/onnxruntime/foreign_file.h"
#include "engines/onnxruntime/inlined_weights.h"
#include "engines/onnxruntime/run_failure.h"
#include "engines/onnxruntime/weights_beside.h"

namespace tactus {
namespace {

constexpr std::array<std::pair<ONNXTensorElementDataType, DataType>, 14> kTypes{{
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DataType::kBool},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DataType::kUint8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DataType::kUint16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DataType::kUint32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DataType::kUint64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DataType::kInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DataType::kInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DataType::kInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DataType::kInt64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DataType::kFp16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DataType::kFp32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DataType::kFp64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, DataType::kBytes},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DataType::kBf16},
}};

// What the library says of a graph that does not load, and what to do. Where it says something
// else, nobody knows what would help, and its words must do.
struct Remedy {
  std::string_view said;
  std::string_view text;
};
constexpr Remedy kRemedies[] = {
    {"escapes model directory",
     "its weights lie outside of its folder: put their file beside the graph and export it so"},
    {"External data path does not exist",
     "the file that holds its weights is missing: copy it too, under the same name"},
    {"External data path validation failed",
     "the file that holds its weights cannot be had: copy it too, under the same name"},
    {"out of bounds or can not be read",
     "a file that holds its weights is shorter than the graph says: copy it again"},
    {"Unsupported model IR version", "export it with an older IR version or opset"},
    {"is not a registered function/op", "export it with operators that this version has"},
    {"No Op registered", "export it with operators that this version has"},
    {"Could not find an implementation",
     "export it again with types and an opset that this version has the operator for"},
    {"No opset import for domain", "export it so that it states the opset of that domain"},
    {"opset", "export it with an older opset"},
};
constexpr std::string_view kDamaged =
    "the file may be damaged or incomplete: install or export it again";

std::string_view WhatToDo(const Ort::Exception& e) {
  const std::string_view said = e.what();
  if (e.GetOrtErrorCode() == ORT_INVALID_PROTOBUF) return kDamaged;
  const auto* known = std::ranges::find_if(
      kRemedies, [&](const Remedy& remedy) { return said.find(remedy.said) != said.npos; });
  return known == std::end(kRemedies) ? std::string_view() : known->text;
}

Expected<TensorSpec> Describe(const std::string& name, const Ort::TypeInfo& type) {
  if (type.GetONNXType() != ONNX_TYPE_TENSOR) {
    const bool maps =
        type.GetONNXType() == ONNX_TYPE_SEQUENCE &&
        type.GetSequenceTypeInfo().GetSequenceElementType().GetONNXType() == ONNX_TYPE_MAP;
    return Fail(
        ErrorCode::kUnimplemented,
        maps ? fmt::format("'{}' is a sequence of maps, and only tensors can be served; convert "
                           "the model with options={{'zipmap': False}}",
                           name)
             : fmt::format("'{}' is no tensor, and only tensors can be served", name));
  }
  const auto info = type.GetTensorTypeAndShapeInfo();
  Expected<DataType> element = FromOnnx(info.GetElementType());
  if (!element) {
    return std::unexpected(
        Error{element.error().code, fmt::format("'{}' {}", name, element.error().message)});
  }
  if (!info.HasShape()) {
    return TensorSpec{.name = name, .type = *element, .dims = {-1}, .any_shape = true};
  }
  TensorSpec spec{name, *element, info.GetShape()};
  for (const char* dim : info.GetSymbolicDimensions()) spec.dim_names.emplace_back(dim);
  return spec;
}

Status DescribeTensors(Graph& graph) {
  const std::vector<std::string> inputs = graph.session.GetInputNames();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto spec = Describe(inputs[i], graph.session.GetInputTypeInfo(i));
    if (!spec) return std::unexpected(spec.error());
    graph.inputs.push_back(*std::move(spec));
  }
  const std::vector<std::string> defaulted = graph.session.GetOverridableInitializerNames();
  for (std::size_t i = 0; i < defaulted.size(); ++i) {
    auto spec = Describe(defaulted[i], graph.session.GetOverridableInitializerTypeInfo(i));
    if (spec) graph.defaulted.push_back(*std::move(spec));  // else it keeps its default
  }
  const std::vector<std::string> outputs = graph.session.GetOutputNames();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto spec = Describe(outputs[i], graph.session.GetOutputTypeInfo(i));
    if (!spec) return std::unexpected(spec.error());
    graph.outputs.push_back(*std::move(spec));
  }
  return {};
}

// Of the session's own threads, each on any of the lane's cores: "1,2;1,2", cores from 1 on.
std::string Affinities(const CpuPlacement& lane) {
  std::vector<int> from_one = lane.cores;
  for (int& core : from_one) ++core;
  const std::vector<std::string> each(static_cast<std::size_t>(lane.threads) - 1,
                                      fmt::format("{}", fmt::join(from_one, ",")));
  return fmt::format("{}", fmt::join(each, ";"));
}

// The library would map them: a file that is written in place would change what serves, and one
// that is cut short would end the process.
void AddWeights(Ort::SessionOptions& options, std::vector<WeightsFile>& files) {
  std::vector<std::string> names;
  std::vector<char*> bytes;
  std::vector<std::size_t> lengths;
  for (WeightsFile& file : files) {
    names.push_back(file.name);
    bytes.push_back(file.bytes.data());
    lengths.push_back(file.bytes.size());
  }
  options.AddExternalInitializersFromFilesInMemory(names, bytes, lengths);
}

// The library takes from memory what the main graph names, and maps what its branches do.
std::optional<std::string> WholeGraph(const std::filesystem::path& path,
                                      std::span<const WeightsFile> weights) {
  const auto graph = ReadWhole(path, "graph");
  return graph ? WithWeights(*graph, weights) : std::nullopt;
}

Ort::SessionOptions Options(const CpuPlacement& lane, const std::filesystem::path& trace) {
  Ort::SessionOptions options;
  if (!trace.empty()) {
    options.EnableProfiling(trace.c_str());
    // Weights that were packed anew are no inputs any more, and the trace would not show them.
    options.AddConfigEntry("session.disable_prepacking", "1");
  }
  // The thread that submits a batch runs all of it, or its part of each operator.
  options.SetIntraOpNumThreads(lane.threads);
  options.SetInterOpNumThreads(1);
  if (lane.threads > 1 && !lane.cores.empty()) {
    options.AddConfigEntry("session.intra_op_thread_affinities", Affinities(lane).c_str());
  }
  options.AddConfigEntry("session.intra_op.allow_spinning", "0");
  options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_ALL);
  return options;
}

// The first exit's graph has agreed with config.pbtxt, or says what that does not.
std::unexpected<Error> Mismatch(const ModelSpec& spec, const Graph& graph, std::string what) {
  const bool later = spec.exits.size() > 1 && graph.path != spec.exits[0].graph;
  return InvalidArgument(
      fmt::format("model '{}': {}: {}; {}", spec.name, graph.path.string(), what,
                  later ? fmt::format("give all exits the inputs and outputs of the first, {}",
                                      spec.exits[0].graph.filename().string())
                        : "make config.pbtxt and the graph agree"));
}

std::string NamesOf(const std::vector<TensorSpec>& tensors) {
  return fmt::format("'{}'", fmt::join(tensors | std::views::transform(&TensorSpec::name), "', '"));
}

const TensorSpec* Find(const std::vector<TensorSpec>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
  return found == tensors.end() ? nullptr : &*found;
}

// Narrows `dims` by what the graph knows. False if the two contradict each other.
bool Narrow(Shape& dims, const Shape& actual) {
  if (dims.size() != actual.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == actual[i] || actual[i] < 0) continue;
    if (dims[i] >= 0) return false;
    dims[i] = actual[i];
  }
  return true;
}

// Narrows `stated` by what the graph knows. False if the two contradict each other.
bool Agree(TensorSpec& stated, const TensorSpec& actual) {
  if (stated.type != actual.type) return false;
  if (actual.any_shape) return true;
  if (stated.any_shape) {  // of an earlier exit
    stated.dims = actual.dims;
    stated.any_shape = false;
  }
  // config.pbtxt cannot write a scalar's dims, which are none: it says [1], as Triton has it.
  const bool scalar = actual.dims.empty() && stated.dims == Shape{1};
  if (scalar && !stated.reshape) stated.reshape.emplace();
  if (!stated.reshape) {
    stated.dim_names = actual.dim_names;
    return Narrow(stated.dims, actual.dims);
  }
  Shape narrowed = *stated.reshape;
  if (!Narrow(narrowed, actual.dims)) return false;
  stated.dims = Reshaped(narrowed, *stated.reshape, stated.dims);
  stated.reshape = std::move(narrowed);
  return true;
}

// How dims are written, where `stated` differs in nothing but the batch from what the graph has;
// else nothing. With a batch, `stated` has it in front of what config.pbtxt says.
std::string OfTheBatch(const Shape& stated, const Shape& actual, int max_batch) {
  const std::size_t in_front = max_batch > 0 ? 2 : 0;
  if (actual.size() < 2 || stated.size() < in_front) return "";  // dims cannot be none
  Shape row(stated.begin() + static_cast<std::ptrdiff_t>(in_front), stated.end());
  const Shape in_graph(actual.begin() + 1, actual.end());
  if (!Narrow(row, in_graph)) return "";
  if (max_batch == 0) {
    return fmt::format(" (max_batch_size is 0: state the first dimension in dims too, {})",
                       ToString(actual));
  }
  return fmt::format(" (max_batch_size is {}: leave the batch dimension out of dims, {})",
                     max_batch, ToString(in_graph));
}

// What `actual` is, and what is stated instead; where a reshape would do, how to say so.
std::string Difference(const TensorSpec& stated, const TensorSpec& actual, int max_batch) {
  const bool batches = max_batch > 0;
  const Shape& inside = stated.reshape ? *stated.reshape : stated.dims;
  std::string text = fmt::format("is {} {} in the graph, not {} {}", Name(actual.type),
                                 ToString(actual.dims), Name(stated.type), ToString(inside));
  text += OfTheBatch(inside, actual.dims, max_batch);
  if (stated.reshape) return text + " (reshape)";
  if (stated.type != actual.type || !SameElements(stated.dims, actual.dims)) return text;
  return text + fmt::format(" (if that is the clients' shape, state `reshape {{ shape: {} }}`)",
                            ToString(std::span(actual.dims).subspan(batches ? 1 : 0)));
}

// The batch dimension must be open; a graph for exactly one row passes where one is the most.
bool HasBatchDimension(const TensorSpec& tensor, int max_batch) {
  if (tensor.any_shape) return true;
  if (tensor.dims.empty()) return false;
  return tensor.dims[0] < 0 || (tensor.dims[0] == 1 && max_batch == 1);
}

// Names that exporters give dimensions of which they know nothing, each another one.
bool MadeUp(std::string_view name) {
  for (const char* part : {"unk__", "dynamic_axes", "DynamicDimension", "None", "?"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return name.empty();
}

// Whether the inputs' names of their dimensions say that the first is no batch: there are several
// names, or a further dimension has the same.
bool NamesSpeakAgainst(const std::vector<TensorSpec>& inputs) {
  std::string_view batch;
  for (const TensorSpec& input : inputs) {
    const std::string_view name = input.dim_name(0);
    if (MadeUp(name)) continue;
    if (!batch.empty() && name != batch) return true;
    batch = name;
  }
  return !batch.empty() && std::ranges::any_of(inputs, [batch](const TensorSpec& input) {
    for (std::size_t i = 1; i < input.dims.size(); ++i) {
      if (input.dim_name(i) == batch) return true;
    }
    return false;
  });
}

// Where nothing is declared: an open dimension in front of every tensor may be the batch, as it is
// to Triton, and with its default; whoever loads the model tries it. Of a vector it would leave
// nothing.
int AssumedBatch(const Graph& graph) {
  constexpr int kTritonsDefault = 4;
  const auto open = [](const TensorSpec& tensor) {
    return tensor.dims.size() > 1 && tensor.dims[0] < 0;
  };
  const bool batches = !graph.inputs.empty() && std::ranges::all_of(graph.inputs, open) &&
                       std::ranges::all_of(graph.outputs, open) && !NamesSpeakAgainst(graph.inputs);
  return batches ? kTritonsDefault : 0;
}

// A request may leave out only what the graph has a default for.
Status CheckOptional(const ModelSpec& spec, const Graph& graph) {
  for (const TensorSpec& input : spec.inputs) {
    if (!input.optional || Find(graph.defaulted, input.name) != nullptr) continue;
    return InvalidArgument(fmt::format(
        "model '{}': {}: input '{}' is optional in config.pbtxt, but the graph has no "
        "default for it; remove `optional: true` there, or export the graph (with an IR "
        "version of 4 or above) so that the input is also an initializer",
        spec.name, graph.path.string(), input.name));
  }
  return {};
}

Status MatchSide(const ModelSpec& spec, const Graph& graph, std::vector<TensorSpec>& stated,
                 const std::vector<TensorSpec>& actual, const char* side) {
  for (TensorSpec& tensor : stated) {
    const TensorSpec* real = Find(actual, tensor.name);
    if (real == nullptr) {
      return Mismatch(
          spec, graph,
          fmt::format("the graph has no {} '{}', it has {}", side, tensor.name, NamesOf(actual)));
    }
    if (spec.max_batch > 0 && !HasBatchDimension(*real, spec.max_batch)) {
      return Mismatch(spec, graph,
                      fmt::format("{} '{}' has shape {} with no open batch dimension in front, but "
                                  "max_batch_size is {}{} (0 means no batch dimension)",
                                  side, tensor.name, ToString(real->dims), spec.max_batch,
                                  spec.batch_place.empty() ? "" : " at " + spec.batch_place));
    }
    if (!Agree(tensor, *real)) {
      return Mismatch(
          spec, graph,
          fmt::format("{} '{}' {}", side, tensor.name, Difference(tensor, *real, spec.max_batch)));
    }
    if (spec.max_batch == 0) continue;
    tensor.dims[0] = -1;
    if (tensor.reshape) tensor.reshape->front() = -1;
  }
  return {};
}

}  // namespace

Expected<DataType> FromOnnx(ONNXTensorElementDataType type) {
  for (const auto& [onnx, ours] : kTypes) {
    if (onnx == type) return ours;
  }
  return Fail(
      ErrorCode::kUnimplemented,
      fmt::format(
          "has ONNX element type {}, which cannot be served; export the graph with another, "
          "FP32 for instance",
          static_cast<int>(type)));
}

ONNXTensorElementDataType ToOnnx(DataType type) {
  for (const auto& [onnx, ours] : kTypes) {
    if (ours == type) return onnx;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

Expected<std::shared_ptr<Graph>> LoadGraph(Ort::Env& env, const std::filesystem::path& path,
                                           const CpuPlacement& lane,
                                           const std::filesystem::path& trace) {
  return LoadGraph(env, path, [&] { return Options(lane, trace); });
}

Expected<std::shared_ptr<Graph>> LoadGraph(Ort::Env& env, const std::filesystem::path& path,
                                           const std::function<Ort::SessionOptions()>& options) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return NotFound(
        fmt::format("{}: {}; put the model's graph there, or correct `exits` or "
                    "`default_model_filename` in its config.pbtxt",
                    path.string(), error.message()));
  }
  if (std::string why = WhyNoGraph(path); !why.empty()) {
    return InvalidArgument(fmt::format("{}: this is no ONNX graph, {}", path.string(), why));
  }
  auto graph = std::make_shared<Graph>();
  graph->path = path;
  graph->file_bytes = size;
  const std::uint64_t before = FactsOf(path);
  // Until the session is there.
  WeightsBeside weights = ReadWeightsBeside(path);
  try {
    Ort::SessionOptions wanted = options();
    const auto whole =
        weights.inner && !weights.read.empty() ? WholeGraph(path, weights.read) : std::nullopt;
    if (whole) {
      graph->session = Ort::Session(env, whole->data(), whole->size(), wanted);
    } else {
      if (!weights.read.empty()) AddWeights(wanted, weights.read);
      graph->session = Ort::Session(env, path.c_str(), wanted);
    }
    graph->contents = ContentsOf(path, weights);
    // What was hashed is what the library has read.
    if (FactsOf(path) != before) {
      return Fail(kFilesChanged, fmt::format("{}: this file changed while it was read; load the "
                                             "model again when all of it is there",
                                             path.string()));
    }
    if (Status ok = DescribeTensors(*graph); !ok) {
      return std::unexpected(
          Error{ok.error().code, fmt::format("{}: tensor {}", path.string(), ok.error().message)});
    }
  } catch (const Ort::Exception& e) {
    const std::string_view what = WhatToDo(e);
    std::string files;
    for (const WeightsFile& each : weights.read) {
      files += fmt::format("{}{} has {} bytes", files.empty() ? "; " : ", ", each.name,
                           each.bytes.size());
    }
    return InvalidArgument(fmt::format("{}: ONNX Runtime cannot load this graph{}{}{} ({})",
                                       path.string(), what.empty() ? "" : "; ", what, files,
                                       RunFailure(e.what())));
  }
  return graph;
}

std::uint64_t ContentsOf(std::span<const std::shared_ptr<Graph>> exits) {
  std::uint64_t hash = kFnvStart;
  for (const std::shared_ptr<Graph>& exit : exits) {
    const std::uint64_t contents = exit->contents;
    hash = Fnv1a({reinterpret_cast<const char*>(&contents), sizeof contents}, hash);
  }
  return hash;
}

Status MatchTensors(ModelSpec& spec, const Graph& graph) {
  const auto fixed = [](const TensorSpec& tensor) {
    return tensor.dims.empty() || tensor.dims[0] >= 0;
  };
  if (spec.max_batch < 0 && std::ranges::any_of(spec.inputs, fixed)) spec.max_batch = 0;
  if (spec.max_batch < 0) spec.max_batch = AssumedBatch(graph);
  if (spec.inputs.empty()) spec.inputs = graph.inputs;
  if (Status ok = CheckOptional(spec, graph); !ok) return ok;
  std::vector<TensorSpec> inputs = graph.inputs;
  spec.defaulted.clear();
  for (const TensorSpec& tensor : graph.defaulted) {
    inputs.push_back(tensor);
    spec.defaulted.push_back(tensor.name);
  }
  if (Status ok = MatchSide(spec, graph, spec.inputs, inputs, "input"); !ok) return ok;
  for (const TensorSpec& tensor : graph.inputs) {
    if (Find(spec.inputs, tensor.name) != nullptr) continue;
    return Mismatch(spec, graph, fmt::format("its input '{}' is not stated", tensor.name));
  }
  if (spec.outputs.empty()) spec.outputs = graph.outputs;
  return MatchSide(spec, graph, spec.outputs, graph.outputs, "output");
}

}  // namespace tactus
