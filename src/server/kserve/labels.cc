#include "server/kserve/labels.h"

#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "server/kserve/config_fields.h"

namespace tactus {
namespace {

// A million names of 64 bytes; a larger file is another file.
constexpr std::size_t kMostBytes = 64 << 20;

std::optional<std::vector<std::string>> LinesOf(const std::filesystem::path& file) {
  auto text = ReadRegular(file, kMostBytes);
  if (!text) return std::nullopt;
  std::istringstream stream(*std::move(text));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

void ReadLabels(const DeclaredConfig& config, const std::filesystem::path& folder, ModelSpec& spec,
                std::vector<std::string>* doubts) {
  for (int i = 0; i < config.message().output_size(); ++i) {
    const auto& output = config.message().output(i);
    const std::string& name = output.label_filename();
    if (name.empty()) continue;
    auto lines = IsPlainFileName(name) ? LinesOf(folder / name) : std::nullopt;
    if (lines) {
      spec.labels[output.name()] = *std::move(lines);
    } else if (doubts != nullptr) {
      const auto told = config.Wrong(
          "output",
          fmt::format("label_filename: '{}' is no file of the model's folder that can be read, so "
                      "classes of '{}' have no names",
                      name, output.name()),
          i);
      doubts->push_back(told.error().message);
    }
  }
}

}  // namespace tactus
