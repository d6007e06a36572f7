#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <istream>
#include <string>
#include <string_view>

#include "base/onnx_walk.h"

namespace tactus {
namespace {

constexpr std::streamoff kFirst = 8 << 20;

constexpr std::array<std::string_view, 15> kDeciding{
    "ArgMax",         "ArgMin", "TopK",
    "Hardmax",        "OneHot", "DynamicQuantizeLinear",
    "QuantizeLinear", "Floor",  "Ceil",
    "Round",          "Sign",   "Greater",
    "Less",           "Where",  "NonMaxSuppression"};

bool Decides(std::string_view text) {
  return std::ranges::any_of(kDeciding, [&](std::string_view name) { return text.contains(name); });
}

}  // namespace

bool NamesDeciding(std::istream& onnx, std::uint64_t size) {
  constexpr std::uint64_t kOperator = 4;
  constexpr std::uint64_t kLongestText = 256;
  OnnxWalk walk(onnx);
  bool decides = false;
  walk.Run(size, [&](const OnnxWalk::Field& field) {
    if (decides || field.of != OnnxMessage::kNode || field.number != kOperator) return;
    decides = field.length <= kLongestText && Decides(walk.Text(field));
  });
  return decides;
}

namespace {

bool Names(const std::filesystem::path& graph) {
  std::ifstream file(graph, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return false;
  std::string bytes(static_cast<std::size_t>(std::min(size, kFirst)), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (Decides(bytes)) return true;
  file.seekg(0);
  return size > kFirst && NamesDeciding(file, static_cast<std::uint64_t>(size));
}

}  // namespace

bool MayDecide(const ModelSpec& spec) {
  return std::ranges::any_of(
      spec.exits, [](const ExitSpec& exit) { return !exit.graph.empty() && Names(exit.graph); });
}

}  // namespace tactus
