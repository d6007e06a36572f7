// tactus init: the config.pbtxt of an ONNX graph, to be edited.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error_line.h"
#include "base/written_file.h"
#include "commands.h"
#include "core/engine.h"
#include "engines/registry.h"
#include "experiment/experiment.h"
#include "output_file.h"
#include "profiling/model_trial.h"
#include "profiling/quick_profile.h"
#include "service/model_folders.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct InitCommand {
  std::string graph;
  std::string onnxruntime;
  std::string out;
  bool force = false;
};

// "TYPE_FP32"; KServe's BYTES are strings there.
std::string TypeName(DataType type) {
  return type == DataType::kBytes ? "TYPE_STRING" : fmt::format("TYPE_{}", Name(type));
}

// As a string of protobuf's text format has it.
std::string Quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string TensorsText(const char* side, const std::vector<TensorSpec>& tensors, bool batches) {
  std::string text;
  for (const TensorSpec& tensor : tensors) {
    Shape dims(tensor.dims.begin() + (batches ? 1 : 0), tensor.dims.end());
    if (dims.empty()) {
      text += fmt::format(
          "# '{}' is a scalar, which cannot be written here: [ 1 ] stands for it. Clients may "
          "send\n"
          "# either; an answer has [ 1 ].\n",
          tensor.name);
      dims = {1};
    }
    text += fmt::format("{} {{\n  name: \"{}\"\n  data_type: {}\n  dims: [ {} ]\n}}\n", side,
                        Quoted(tensor.name), TypeName(tensor.type), fmt::join(dims, ", "));
    if (!tensor.any_shape) continue;
    text += fmt::format(
        "# '{0}' may have any shape: the graph states none, or none that it keeps to. Where it\n"
        "# always has one, state that in dims and remove this.\n"
        "parameters {{ key: \"{1}{0}\" value: {{ string_value: \"true\" }} }}\n",
        Quoted(tensor.name), kAnyShapeKey);
  }
  return text;
}

// Whether the graph may run in batches though nobody assumed so: of a vector, the batch dimension
// leaves nothing, and clients need something to send.
bool MayBatch(const ModelSpec& spec) {
  const auto open = [](const TensorSpec& tensor) {
    return !tensor.any_shape && !tensor.dims.empty() && tensor.dims[0] < 0;
  };
  return spec.max_batch == 0 && !spec.inputs.empty() && std::ranges::all_of(spec.inputs, open) &&
         std::ranges::all_of(spec.outputs, open);
}

// The graphs of a model with early exits, as they are named here: exit1.onnx, exit2.onnx, ...
std::vector<std::string> ExitsBeside(const fs::path& graph) {
  std::vector<std::string> exits;
  std::error_code ignored;
  for (int e = 1;; ++e) {
    const std::string name = fmt::format("exit{}.onnx", e);
    if (!fs::is_regular_file(fs::absolute(graph).parent_path() / name, ignored)) return exits;
    exits.push_back(name);
  }
}

bool IsExit(const fs::path& graph) {
  const std::vector<std::string> beside = ExitsBeside(graph);
  return std::ranges::find(beside, graph.filename().string()) != beside.end();
}

// The model's folder of a graph that lies where a server looks for it, NAME/VERSION/model.onnx or
// NAME/VERSION/model.onnx/model.onnx; else nothing.
std::optional<fs::path> ModelFolderOf(const fs::path& graph) {
  const fs::path whole = fs::absolute(graph).lexically_normal();
  fs::path version = whole.parent_path();
  if (version.filename() == whole.filename()) version = version.parent_path();
  if (!VersionNumber(version.filename().string())) return std::nullopt;
  return version.parent_path();
}

// The first graph in the folder or below it; where there is none, what one is usually called.
fs::path GraphIn(const fs::path& folder) {
  std::vector<fs::path> graphs;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it.depth() >= 2) it.disable_recursion_pending();
    if (it->path().extension() == ".onnx" && it->is_regular_file(error)) {
      graphs.push_back(it->path());
    }
  }
  const auto first = std::ranges::min_element(graphs);
  return first == graphs.end() ? folder / "model.onnx" : *first;
}

// Where a server would look for a graph that lies in no version's folder. Its name tells whether
// the folder is the model's, NAME/model.onnx, or one of bare graphs, NAME.onnx.
fs::path PlaceFor(const fs::path& graph) {
  std::error_code ignored;
  const fs::path folder = graph.parent_path();
  const bool of_model = graph.filename() == "model.onnx" || IsExit(graph) ||
                        fs::exists(fs::absolute(graph).parent_path() / "config.pbtxt", ignored);
  return of_model ? folder / "1" / graph.filename() : folder / graph.stem() / "1" / "model.onnx";
}

// The name of the model that the graph is of: that of the folder of its config.pbtxt.
std::string NameOf(const InitCommand& command) {
  const fs::path out = command.out;
  if (out.filename() == "config.pbtxt") return fs::absolute(out).parent_path().filename().string();
  const fs::path graph = command.graph;
  const auto folder = ModelFolderOf(graph);
  return (folder ? folder : ModelFolderOf(PlaceFor(graph)))->filename().string();
}

// All of them where the graph is one, else the graph alone.
std::vector<ExitSpec> ExitsOf(const fs::path& graph) {
  if (!IsExit(graph)) return {{.name = "1", .graph = graph}};
  std::vector<ExitSpec> exits;
  for (const std::string& name : ExitsBeside(graph)) {
    exits.push_back({.name = std::to_string(exits.size() + 1),
                     .graph = fs::absolute(graph).parent_path() / name});
  }
  return exits;
}

// Whether so many rows give together what each gives alone.
bool Batches(Engine& engine, ModelSpec spec, int rows) {
  spec.max_batch = rows;
  const LaneSpec lane;
  const auto tried = LoadTried(std::move(spec), engine, {&lane, 1}, BatchId{1u << 22});
  if (!tried) return false;
  engine.Unload(tried->handles[0]);
  return tried->spec.max_batch == rows;
}

// The batch up to which a row gets cheaper by a tenth with each doubling; no larger than 32.
Expected<int> PayingBatch(Engine& engine, const ModelSpec& tried) {
  constexpr int kMost = 32;
  ModelSpec spec = tried;
  spec.max_batch = kMost;
  const auto handle = engine.Load(spec, LaneSpec{});
  if (!handle) return std::unexpected(handle.error());
  const WallClock clock;
  auto rows = QuickProfile(engine, *handle, spec, tried.max_batch, clock, BatchId{1u << 20});
  // Where a few rows take long, larger batches take longer than anybody wants to wait here.
  const bool quick = rows && rows->latency.back() < Millis(100);
  if (quick) rows = QuickProfile(engine, *handle, spec, kMost, clock, BatchId{1u << 21});
  engine.Unload(*handle);
  if (!rows) return std::unexpected(rows.error());
  if (!quick) return tried.max_batch;
  const std::size_t last = static_cast<std::size_t>(rows->exits - 1) * kMost;
  const auto a_row = [&](int batch) {
    return ToMillis(rows->latency[last + static_cast<std::size_t>(batch) - 1]) / batch;
  };
  int batch = tried.max_batch;
  while (2 * batch <= kMost && a_row(2 * batch) < 0.9 * a_row(batch)) batch *= 2;
  return batch == tried.max_batch || Batches(engine, tried, batch) ? batch : tried.max_batch;
}

// "3,320,320": what was found that the graph takes, or 1 for each open dimension.
std::string SizesOf(const ModelSpec& spec, const TensorSpec& input) {
  const auto found = spec.found_shapes.find(input.name);
  Shape shape = found == spec.found_shapes.end() ? input.dims : found->second;
  for (std::int64_t& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  return fmt::format("{}", fmt::join(std::span(shape).subspan(spec.max_batch > 0 ? 1 : 0), ","));
}

constexpr const char* kAssumed =
    "parameters { key: \"batch\" value: { string_value: \"assumed\" } }\n";

std::string BatchText(const TriedModel& tried, int pays) {
  const ModelSpec& spec = tried.spec;
  std::string text;
  if (tried.undecided) {
    return fmt::format(
        "# Whether rows may run together could not be tried: see the warning of `tactus init`. "
        "With\n"
        "# \"assumed\", each load tries it again{}. To decide it instead, put\n"
        "# max_batch_size in place of this parameter: 0 for none; or a number above 0, and leave\n"
        "# the first -1 out of all dims.\n{}",
        tried.untried
            ? ", and so does the first call"
            : ", with the same result unless\n# model_warmup states real values for a row",
        kAssumed);
  }
  if (MayBatch(spec)) {
    text +=
        "# Rows that may run together; 0: each request runs alone. All tensors have an open\n"
        "# dimension in front, but it was not found to be a batch. If it is, state a number above\n"
        "# 0, and leave the first -1 out of all dims; where none is left, say\n"
        "# `dims: [ 1 ] reshape { shape: [ ] }`: clients send one number in each row.\n";
  } else if (spec.max_batch == 0) {
    text +=
        "# Rows that may run together; 0: each request runs alone, since not all inputs and "
        "outputs\n"
        "# have an open dimension in front.\n";
  } else {
    text +=
        "# Rows that may run together; 0: none. Unlike rows gave together what each gives alone.\n";
  }
  if (pays > spec.max_batch) {
    text += fmt::format(
        "# Measured briefly, a row gets cheaper by a tenth with each doubling up to {0}:\n"
        "# max_batch_size: {0}\n",
        pays);
  }
  text += fmt::format("max_batch_size: {}\n", spec.max_batch);
  if (spec.max_batch == 0) return text;
  return text +
         "# Nobody has declared this batch: each load tries it, and it is given up where it turns\n"
         "# out to be none. Remove this parameter to declare it.\n" +
         kAssumed;
}

// A graph beside exit1.onnx, exit2.onnx, ... is the whole network: the last exit.
std::string ExitsText(const fs::path& graph) {
  std::vector<std::string> beside = ExitsBeside(graph);
  if (beside.empty()) return "";
  if (!IsExit(graph)) beside.push_back(graph.filename().string());
  return fmt::format(
      "# Graphs of the same model, cut off behind its exits, shallowest first.\n"
      "{}parameters {{ key: \"exits\" value: {{ string_value: \"{}\" }} }}\n",
      IsExit(graph) ? "" : "# ", fmt::join(beside, ","));
}

// Whether a row gave what the graph declares of its outputs. A scalar that none has given may be
// any tensor: that is how a graph reads whose outputs have no shape.
bool GivesWhatItDeclares(const TriedModel& tried) {
  for (std::size_t i = 0; i < tried.spec.outputs.size(); ++i) {
    const Shape& dims = tried.spec.outputs[i].dims;
    if (tried.spec.outputs[i].any_shape) continue;
    if (i < tried.gave.size() ? !FitsDims(tried.gave[i], dims) : dims.empty()) return false;
  }
  return true;
}

std::string OutputsText(const TriedModel& tried) {
  const ModelSpec& spec = tried.spec;
  if (GivesWhatItDeclares(tried)) {
    return TensorsText("output", spec.outputs, spec.max_batch > 0);
  }
  std::string text =
      "# The outputs are left out: an answer has the shapes that come, and these are not what the\n"
      "# graph declares.\n";
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    text += fmt::format("# '{}': {} {} in the graph, {}\n", spec.outputs[i].name,
                        Name(spec.outputs[i].type), ToString(spec.outputs[i].dims),
                        i < tried.gave.size()
                            ? fmt::format("and one row gave {}", ToString(tried.gave[i]))
                            : "and no row could be tried");
  }
  return text;
}

// `pays`: as of PayingBatch.
std::string ConfigText(const TriedModel& tried, const fs::path& graph, int pays) {
  const ModelSpec& spec = tried.spec;
  std::string text = fmt::format(
      "# Written by `tactus init {}`; what is commented out is optional.\n"
      "name: \"{}\"\nplatform: \"onnxruntime_onnx\"\n",
      graph.string(), Quoted(spec.name));
  if (graph.filename() != "model.onnx" && !IsExit(graph)) {
    text += fmt::format("default_model_filename: \"{}\"\n", Quoted(graph.filename().string()));
  }
  text += BatchText(tried, pays);
  text += TensorsText("input", spec.inputs, spec.max_batch > 0);
  if (!spec.defaulted.empty()) {
    constexpr std::size_t kShown = 8;
    const auto shown = std::span(spec.defaulted).first(std::min(kShown, spec.defaulted.size()));
    text += fmt::format(
        "# The graph has defaults for: {}{}. If requests may replace one, state it as\n"
        "# an input with `optional: true`: a request that leaves it out gets the default.\n",
        fmt::join(shown, ", "), shown.size() < spec.defaulted.size() ? ", ..." : "");
  }
  text += OutputsText(tried);
  text += ExitsText(graph);
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
        "# Sizes of '{0}' while it is tried and measured, where its dims are open.\n"
        "# parameters {{ key: \"profile_shape.{0}\" value: {{ string_value: \"{1}\" }} }}\n",
        Quoted(input.name), SizesOf(spec, input));
  }
  return text;
}

// How a file of another framework becomes a graph; empty: the ending is of none that is known.
std::string ExportOf(const fs::path& file) {
  const std::string ending = file.extension().string();
  const auto is = [&](auto... known) { return ((ending == known) || ...); };
  if (is(".pt", ".pth", ".bin", ".safetensors", ".ckpt")) {
    return "weights of PyTorch: export the model with torch.onnx.export(model, (example,), "
           "\"model.onnx\")";
  }
  if (is(".pb", ".h5", ".keras", ".tflite")) {
    return "a model of TensorFlow: python3 -m tf2onnx.convert makes a graph of it";
  }
  if (is(".plan", ".engine")) return "a plan of TensorRT: take the graph that it was made from";
  return "";
}

int RunInit(const InitCommand& command) {
  if (fs::is_directory(command.graph)) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           fmt::format("{}: is a folder; name the graph in it, such as {}",
                                       command.graph, GraphIn(command.graph).string())});
  }
  if (!fs::exists(command.graph)) {
    return ReportBadInput(
        {ErrorCode::kNotFound,
         fmt::format("{}: there is no such file; name the ONNX graph that a model "
                     "is to serve",
                     command.graph)});
  }
  if (const std::string how = ExportOf(command.graph); !how.empty()) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           fmt::format("{}: is no ONNX graph but {}", command.graph, how)});
  }
  auto engine =
      MakeEngine("onnxruntime", {.emulated = {}, .onnxruntime_library = command.onnxruntime});
  if (!engine) return ReportBadInput(engine.error());
  ModelSpec spec;
  spec.name = NameOf(command);
  spec.platform = "onnxruntime_onnx";
  spec.max_batch = -1;  // for the engine to find out
  const fs::path graph = command.graph;
  spec.exits = ExitsOf(graph);
  const LaneSpec lane;
  auto tried = LoadTried(std::move(spec), **engine, {&lane, 1}, BatchId{0});
  if (!tried) return ReportBadInput(tried.error());
  (*engine)->Unload(tried->handles[0]);
  for (const std::string& line : tried->said) PrintWarning(line);
  const Expected<int> pays = tried->spec.max_batch > 0 ? PayingBatch(**engine, tried->spec) : 0;
  const std::string text = ConfigText(*tried, graph, pays.value_or(0));
  if (command.out == "-") {
    fmt::print("{}", text);
    return 0;
  }
  const auto folder = ModelFolderOf(graph);
  if (command.out.empty() && !folder) {
    const std::string place = PlaceFor(graph).string();
    return ReportBadInput(
        {ErrorCode::kInvalidArgument,
         fmt::format("{}: lies in no version's folder, where a server would look for it: put it, "
                     "with the files that belong to it, at {}, then write `tactus init {}`; --out "
                     "- prints the text",
                     command.graph, place, place)});
  }
  const fs::path out = command.out.empty() ? *folder / "config.pbtxt" : fs::path(command.out);
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
  if (const Status written = WriteFileText(text, out, "configuration"); !written) {
    return ReportBadInput(
        {written.error().code,
         written.error().message + "; --out FILE writes elsewhere, --out - prints the text"});
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
