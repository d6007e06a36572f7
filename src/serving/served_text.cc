#include "serving/served_text.h"

#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "server/kserve/ensemble_config.h"

namespace tactus {

std::string AccuracyOf(const ModelSpec& model) {
  std::string text;
  bool known = false;
  for (const ExitSpec& exit : model.exits) {
    known = known || exit.accuracy > 0;
    text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", exit.accuracy);
  }
  return known ? text : "-";
}

std::string ExitsOf(const ModelSpec& model) {
  if (model.platform == kEnsemblePlatform) return "-";
  std::string text;
  for (const ExitSpec& exit : model.exits) text += (text.empty() ? "" : " ") + exit.name;
  return text;
}

std::string AboutServed(const std::string& repository, bool empty, bool emulated) {
  std::string text;
  if (empty) {
    const auto graph = std::filesystem::path(repository) / "NAME/1/model.onnx";
    text += fmt::format(
        "none: {} has no model. Each has a folder of its own, such as {}; `tactus init MODEL.onnx` "
        "writes its config.pbtxt\n",
        repository, graph.string());
  }
  if (emulated) {
    text +=
        "\nEMULATED: there is no device. Times come from a profile, answers are zeros and say so "
        "in "
        "their\nparameters. So do statistics and metrics.\n";
  }
  return text;
}

std::string NotReadyIn(const InferenceService& service) {
  std::string names;
  for (const ModelState& state : service.Index()) {
    const bool unwanted = state.reason == "not loaded" || state.reason == "unloaded";
    if (state.state == "READY" || unwanted) continue;
    std::string name = state.name;
    for (char& c : name) {  // the line that it goes into is read by words
      if (c == ',' || c == '=' || std::isspace(static_cast<unsigned char>(c)) != 0) c = '?';
    }
    names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

}  // namespace tactus
