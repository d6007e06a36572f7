// tactus init: the config.pbtxt of an ONNX graph, to be edited.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "core/engine.h"
#include "engines/registry.h"
#include "experiment/experiment.h"
#include "output_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct InitCommand {
  std::string graph;
  std::string onnxruntime;
  std::string out;
  bool force = false;
};

// The name of the model that the graph is of: its repository's folder, NAME/VERSION/model.onnx, or
// else the file's own.
std::string NameOf(const fs::path& graph) {
  const fs::path version = fs::absolute(graph).parent_path();
  const std::string number = version.filename().string();
  const bool numbered =
      !number.empty() && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return (numbered ? version.parent_path().filename() : graph.stem()).string();
}

// "TYPE_FP32"; KServe's BYTES are strings there.
std::string TypeName(DataType type) {
  return type == DataType::kBytes ? "TYPE_STRING" : fmt::format("TYPE_{}", Name(type));
}

std::string TensorsText(const char* side, const std::vector<TensorSpec>& tensors, bool batches) {
  std::string text;
  for (const TensorSpec& tensor : tensors) {
    Shape dims(tensor.dims.begin() + (batches ? 1 : 0), tensor.dims.end());
    if (dims.empty()) dims = {1};  // a scalar has no dims to write
    text += fmt::format("{} {{\n  name: \"{}\"\n  data_type: {}\n  dims: [ {} ]\n}}\n", side,
                        tensor.name, TypeName(tensor.type), fmt::join(dims, ", "));
  }
  return text;
}

// Whether the graph may run in batches though nobody assumed so: of a vector, the batch dimension
// leaves nothing, and clients need something to send.
bool MayBatch(const ModelSpec& spec) {
  const auto open = [](const TensorSpec& tensor) {
    return !tensor.dims.empty() && tensor.dims[0] < 0;
  };
  return spec.max_batch == 0 && !spec.inputs.empty() && std::ranges::all_of(spec.inputs, open) &&
         std::ranges::all_of(spec.outputs, open);
}

std::string ConfigText(const ModelSpec& spec, const fs::path& graph) {
  std::string text = fmt::format(
      "# Written by `tactus init {}`; what is commented out is optional.\n"
      "name: \"{}\"\nplatform: \"onnxruntime_onnx\"\n",
      graph.string(), spec.name);
  if (graph.filename() != "model.onnx") {
    text += fmt::format("default_model_filename: \"{}\"\n", graph.filename().string());
  }
  if (MayBatch(spec)) {
    text +=
        "# Rows that may run together. All tensors have an open dimension in front. If it is the\n"
        "# batch, state a number above 0, and leave the first -1 out of all dims; where none is\n"
        "# left, say `dims: [ 1 ] reshape { shape: [ ] }`: clients send one number in each row.\n";
  } else {
    text += "# Rows that may run together; 0: the graph has no open dimension in front for them.\n";
  }
  text += fmt::format("max_batch_size: {}\n", spec.max_batch);
  text += TensorsText("input", spec.inputs, spec.max_batch > 0);
  if (!spec.defaulted.empty()) {
    constexpr std::size_t kShown = 8;
    const auto shown = std::span(spec.defaulted).first(std::min(kShown, spec.defaulted.size()));
    text += fmt::format(
        "# The graph has defaults for: {}{}. If requests may replace one, state it as\n"
        "# an input with `optional: true`: a request that leaves it out gets the default.\n",
        fmt::join(shown, ", "), shown.size() < spec.defaulted.size() ? ", ..." : "");
  }
  text += TensorsText("output", spec.outputs, spec.max_batch > 0);
  text +=
      "# Time from arrival to answer, in milliseconds (an example; without it the server's\n"
      "# --default-slo-ms counts), and the class: 1, the default, goes first.\n"
      "# parameters { key: \"slo_ms\" value: { string_value: \"100\" } }\n"
      "# parameters { key: \"priority\" value: { string_value: \"1\" } }\n";
  for (const TensorSpec& input : spec.inputs) {
    const auto open = std::count(input.dims.begin() + (spec.max_batch > 0 ? 1 : 0),
                                 input.dims.end(), std::int64_t{-1});
    if (open == 0) continue;
    text += fmt::format(
        "# Sizes of '{0}' while it is measured, where its dims are open.\n"
        "# parameters {{ key: \"profile_shape.{0}\" value: {{ string_value: \"1\" }} }}\n",
        input.name);
  }
  return text;
}

int RunInit(const InitCommand& command) {
  if (fs::is_directory(command.graph)) {
    return ReportBadInput(
        {ErrorCode::kInvalidArgument,
         fmt::format("{}: is a folder; name the graph in it, such as {}", command.graph,
                     (fs::path(command.graph) / "model.onnx").string())});
  }
  if (!fs::exists(command.graph)) {
    return ReportBadInput(
        {ErrorCode::kNotFound,
         fmt::format("{}: there is no such file; name the ONNX graph that a model "
                     "is to serve",
                     command.graph)});
  }
  auto engine =
      MakeEngine("onnxruntime", {.emulated = {}, .onnxruntime_library = command.onnxruntime});
  if (!engine) return ReportBadInput(engine.error());
  ModelSpec spec;
  spec.name = NameOf(command.graph);
  spec.platform = "onnxruntime_onnx";
  spec.max_batch = -1;  // for the engine to find out
  spec.exits.push_back({.name = "1", .graph = command.graph});
  const auto handle = (*engine)->Load(spec, LaneSpec{});
  if (!handle) return ReportBadInput(handle.error());
  (*engine)->Unload(*handle);
  const std::string text = ConfigText(spec, command.graph);
  if (command.out == "-") {
    fmt::print("{}", text);
    return 0;
  }
  const fs::path version = fs::absolute(command.graph).parent_path();
  const fs::path out =
      command.out.empty()
          ? (NameOf(command.graph) == version.parent_path().filename() ? version.parent_path()
                                                                       : version) /
                "config.pbtxt"
          : fs::path(command.out);
  if (fs::is_directory(out)) {
    return ReportBadInput(
        {ErrorCode::kInvalidArgument, fmt::format("--out {}: is a folder; name the file in it: {}",
                                                  out.string(), (out / "config.pbtxt").string())});
  }
  if (fs::exists(out) && !command.force) {
    return ReportBadInput(
        {ErrorCode::kAlreadyExists,
         fmt::format("{}: is there already; --force replaces it, --out - prints the text instead",
                     out.string())});
  }
  std::ofstream file(out);
  file << text;
  if (!file.flush()) {
    return ReportBadInput(
        {ErrorCode::kUnavailable,
         fmt::format(
             "{}: cannot write it: {}; --out FILE writes elsewhere, --out - prints the text",
             out.string(), std::strerror(errno))});
  }
  fmt::print("wrote {}\n", out.string());
  return 0;
}

}  // namespace

void AddInit(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<InitCommand>();
  CLI::App* command =
      app.add_subcommand("init", "Write a config.pbtxt for an ONNX graph, for you to edit");
  command->add_option("graph", options->graph, "MODEL.onnx, or NAME/VERSION/model.onnx")
      ->required()
      ->check(ReadFile())
      ->option_text("MODEL.onnx");
  command->add_option("--out", options->out,
                      "Where to write (default: where a server looks for it); -: print it");
  command->add_flag("--force", options->force, "Replace a file that is there");
  command->add_option("--onnxruntime", options->onnxruntime, "libonnxruntime.so, or its folder");
  command->callback([options, &context] { context.exit_code = RunInit(*options); });
}

}  // namespace tactus
