#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <istream>
#include <span>
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

constexpr std::array<std::string_view, 8> kSizing{
    "Range", "ConstantOfShape", "Expand", "Tile", "OneHot", "Loop", "Pad", "Window"};

using Operators = std::span<const std::string_view>;

bool Holds(std::string_view text, Operators operators) {
  return std::ranges::any_of(operators, [&](std::string_view name) { return text.contains(name); });
}

bool Names(std::istream& onnx, std::uint64_t size, Operators operators) {
  constexpr std::uint64_t kOperator = 4;
  constexpr std::uint64_t kLongestText = 256;
  OnnxWalk walk(onnx);
  bool named = false;
  walk.Run(size, [&](const OnnxWalk::Field& field) {
    if (named || field.of != OnnxMessage::kNode || field.number != kOperator) return;
    named = field.length <= kLongestText && Holds(walk.Text(field), operators);
  });
  return named;
}

bool Names(const std::filesystem::path& graph, Operators operators) {
  std::ifstream file(graph, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return false;
  std::string bytes(static_cast<std::size_t>(std::min(size, kFirst)), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (Holds(bytes, operators)) return true;
  file.seekg(0);
  return size > kFirst && Names(file, static_cast<std::uint64_t>(size), operators);
}

bool Names(const ModelSpec& spec, Operators operators) {
  return std::ranges::any_of(spec.exits, [operators](const ExitSpec& exit) {
    return !exit.graph.empty() && Names(exit.graph, operators);
  });
}

}  // namespace

bool NamesDeciding(std::istream& onnx, std::uint64_t size) { return Names(onnx, size, kDeciding); }

bool MayDecide(const ModelSpec& spec) { return Names(spec, kDeciding); }

bool NamesSizing(const ModelSpec& spec) { return Names(spec, kSizing); }

}  // namespace tactus
