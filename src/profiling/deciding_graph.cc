#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "profiling/row_difference.h"

namespace tactus {
namespace {

constexpr std::streamoff kFirst = 8 << 20;

constexpr std::array<std::string_view, 15> kDeciding{
    "ArgMax",         "ArgMin", "TopK",
    "Hardmax",        "OneHot", "DynamicQuantizeLinear",
    "QuantizeLinear", "Floor",  "Ceil",
    "Round",          "Sign",   "Greater",
    "Less",           "Where",  "NonMaxSuppression"};
// Beside those: what finds equal numbers, or makes indices and conditions of numbers.
constexpr std::array<std::string_view, 7> kComparing{"Equal", "Unique", "NonZero", "Compress",
                                                     "Cast",  "Loop",   "Scan"};

// Nothing where it cannot be read.
std::string NodesOf(const std::filesystem::path& graph) {
  std::ifstream file(graph, std::ios::binary | std::ios::ate);
  const auto size = std::min<std::streamoff>(file.tellg(), kFirst);
  if (size <= 0) return {};
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  file.read(bytes.data(), size);
  return bytes;
}

}  // namespace

GraphOperators OperatorsOf(const ModelSpec& spec) {
  GraphOperators operators{.compare = std::ranges::any_of(spec.inputs, [](const TensorSpec& input) {
                             return !IsFloat(input.type);
                           })};
  for (const ExitSpec& exit : spec.exits) {
    const std::string nodes = exit.graph.empty() ? "" : NodesOf(exit.graph);
    const auto named = [&](std::string_view name) { return nodes.contains(name); };
    operators.decide = operators.decide || std::ranges::any_of(kDeciding, named);
    operators.compare =
        operators.compare || nodes.empty() || std::ranges::any_of(kComparing, named);
  }
  operators.compare = operators.compare || operators.decide || spec.exits.empty();
  return operators;
}

}  // namespace tactus
