#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace tactus {
namespace {

constexpr std::streamoff kFirst = 8 << 20;

constexpr std::array<std::string_view, 15> kDeciding{
    "ArgMax",         "ArgMin", "TopK",
    "Hardmax",        "OneHot", "DynamicQuantizeLinear",
    "QuantizeLinear", "Floor",  "Ceil",
    "Round",          "Sign",   "Greater",
    "Less",           "Where",  "NonMaxSuppression"};

bool Names(const std::filesystem::path& graph) {
  std::ifstream file(graph, std::ios::binary | std::ios::ate);
  const auto size = std::min<std::streamoff>(file.tellg(), kFirst);
  if (size <= 0) return false;
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  file.read(bytes.data(), size);
  return std::ranges::any_of(kDeciding,
                             [&](std::string_view name) { return bytes.contains(name); });
}

}  // namespace

bool MayDecide(const ModelSpec& spec) {
  return std::ranges::any_of(
      spec.exits, [](const ExitSpec& exit) { return !exit.graph.empty() && Names(exit.graph); });
}

}  // namespace tactus
