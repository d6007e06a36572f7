#include "served_text.h"

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

}  // namespace tactus
