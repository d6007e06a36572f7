#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

namespace tactus {
namespace {

constexpr std::size_t kFirst = std::size_t{8} << 20;

constexpr std::array<std::string_view, 15> kDeciding{
    "ArgMax",         "ArgMin", "TopK",
    "Hardmax",        "OneHot", "DynamicQuantizeLinear",
    "QuantizeLinear", "Floor",  "Ceil",
    "Round",          "Sign",   "Greater",
    "Less",           "Where",  "NonMaxSuppression"};

bool Names(const std::filesystem::path& graph) {
  std::ifstream file(graph, std::ios::binary);
  std::string bytes(kFirst, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return std::ranges::any_of(kDeciding,
                             [&](std::string_view name) { return bytes.contains(name); });
}

}  // namespace

bool MayDecide(const ModelSpec& spec) {
  return std::ranges::any_of(
      spec.exits, [](const ExitSpec& exit) { return !exit.graph.empty() && Names(exit.graph); });
}

}  // namespace tactus
