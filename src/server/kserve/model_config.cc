#include "server/kserve/model_config.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/kserve/config_fields.h"
#include "server/kserve/declared_config.h"
#include "server/kserve/labels.h"
#include "service/model_folders.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// The numbered subfolders.
std::vector<std::int64_t> VersionFolders(const fs::path& folder) {
  std::vector<std::int64_t> versions;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_directory(error)) continue;
    const auto version = VersionNumber(entry->path().filename().string());
    if (version) versions.push_back(*version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

}  // namespace

Expected<std::string> ReadPlatform(const fs::path& model_folder, const std::string& config) {
  const auto declared = DeclaredConfig::FromFolder(model_folder, config);
  if (!declared) return std::unexpected(declared.error());
  return PlatformOf(declared->message());
}

namespace {

// What to do where the graph has another name, or is not ONNX, or is no file.
std::string FoundInstead(const fs::path& graph) {
  std::error_code failed;
  if (fs::is_symlink(graph, failed) && !fs::exists(graph, failed)) {
    return fmt::format("; it is a link to {}, which is not there",
                       fs::read_symlink(graph, failed).string());
  }
  if (fs::exists(graph, failed) && !fs::is_directory(graph, failed)) {
    return "; what is there is a pipe or a device, no file";
  }
  const fs::path folder = fs::is_directory(graph, failed) ? graph : graph.parent_path();
  std::vector<std::string> graphs;
  std::vector<std::string> others;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string kind = it->path().extension().string();
    if (kind == ".onnx") graphs.push_back(it->path().filename().string());
    if (IsForeignModel(it->path())) others.push_back(it->path().filename().string());
  }
  if (graphs.size() == 1) {
    return fmt::format(
        "; {0} is there: rename it to {1}, or state `default_model_filename: "
        "\"{0}\"` in config.pbtxt",
        graphs[0], graph.filename().string());
  }
  if (!graphs.empty()) {
    std::ranges::sort(graphs);
    return fmt::format(
        "; {} are there: name one with `default_model_filename`, or the exits' "
        "graphs with the parameter `exits`, in config.pbtxt; `tactus init {}` writes one",
        fmt::join(graphs, ", "), (folder / graphs[0]).string());
  }
  if (others.empty()) return "";
  std::ranges::sort(others);
  return fmt::format("; {} is no ONNX graph: export the model to ONNX", others[0]);
}

}  // namespace

Expected<std::vector<std::int64_t>> ListVersions(const fs::path& model_folder,
                                                 const std::string& config) {
  std::error_code error;
  if (!fs::is_directory(model_folder, error)) {
    return NotFound(fmt::format("{}: there is no such model folder", model_folder.string()));
  }
  const auto declared = DeclaredConfig::FromFolder(model_folder, config);
  if (!declared) return std::unexpected(declared.error());
  std::vector<std::int64_t> present = VersionFolders(model_folder);
  if (present.empty()) {
    if (ReadsGraphs(declared->message())) {
      return NotFound(
          fmt::format("{0}: no version folder (1, 2, ...); put the model's files into {0}/1",
                      model_folder.string()));
    }
    present.push_back(1);
  }
  return ServedVersions(*declared, present);
}

Expected<ModelSpec> ReadModelSpec(const fs::path& model_folder, std::int64_t version,
                                  const std::string& config, const ModelReading& reading) {
  const auto declared = DeclaredConfig::FromFolder(model_folder, config);
  if (!declared) return std::unexpected(declared.error());
  if (Status runs = CheckPlatform(*declared, reading.platforms); !runs) {
    return std::unexpected(std::move(runs.error()));
  }
  auto spec = SpecOf(*declared, model_folder, version);
  if (!spec) return spec;
  std::error_code unreadable;
  const bool undeclared =
      config.empty() && !fs::exists(model_folder / "config.pbtxt", unreadable) && !unreadable;
  if (undeclared) spec->max_batch = -1;
  for (ExitSpec& exit : spec->exits) {
    std::error_code error;
    // Triton's layout for a graph of several files: a folder of the graph's name.
    const fs::path inside = exit.graph / exit.graph.filename();
    if (!exit.graph.empty() && fs::is_regular_file(inside, error)) exit.graph = inside;
    if (exit.graph.empty() || fs::is_regular_file(exit.graph, error)) continue;
    return NotFound(fmt::format("{}: there is no such graph file (model '{}', exit '{}'){}",
                                exit.graph.string(), spec->name, exit.name,
                                spec->exits.size() > 1
                                    ? "; the parameter `exits` names it: correct that, or put it "
                                      "there"
                                    : FoundInstead(exit.graph)));
  }
  ReadLabels(*declared, model_folder, *spec, reading.doubts);
  if (reading.doubts != nullptr) {
    for (std::string& doubt : Doubts(*declared)) reading.doubts->push_back(std::move(doubt));
  }
  if (reading.notes != nullptr && undeclared) {
    reading.notes->push_back(fmt::format(
        "{}: no config.pbtxt: inputs, outputs and batch are taken from the graph, the rest is "
        "default; its config endpoint shows them, `tactus init` writes the file to edit",
        model_folder.string()));
  }
  return spec;
}

}  // namespace tactus
