#include "profiling/deciding_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
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

bool Decides(std::string_view text) {
  return std::ranges::any_of(kDeciding, [&](std::string_view name) { return text.contains(name); });
}

// The operators of a graph in onnx.proto's messages, without what they weigh: constants may be
// gigabytes, and stand before functions.
class Operators {
 public:
  explicit Operators(std::istream& file) : file_(file) {}

  // Whether one decides, among those up to `end` of a message of this kind.
  enum class Message : std::uint8_t { kModel, kGraph, kNode, kAttribute, kFunction, kOther };
  bool Decide(Message of, std::streamoff end, int depth = 0) {
    constexpr int kDeepest = 100;  // protobuf itself reads no more
    while (depth < kDeepest && file_.tellg() < end) {
      const auto tag = Varint();
      if (!tag) return false;
      const std::uint64_t field = *tag >> 3;
      std::uint64_t size = (*tag & 7) == 1 ? 8 : (*tag & 7) == 5 ? 4 : 0;
      if ((*tag & 7) == 0 || (*tag & 7) == 2) {
        const auto value = Varint();
        if (!value) return false;
        if ((*tag & 7) == 2) size = *value;
      }
      const std::streamoff at = file_.tellg();
      if (at < 0 || at > end || size > static_cast<std::uint64_t>(end - at)) return false;
      const std::streamoff next = at + static_cast<std::streamoff>(size);
      if (of == Message::kNode && field == 4 && Decides(Text(size))) return true;
      const Message child = ChildOf(of, field);
      if (child != Message::kOther && Decide(child, next, depth + 1)) return true;
      file_.seekg(next);
    }
    return false;
  }

 private:
  static Message ChildOf(Message of, std::uint64_t field) {
    using enum Message;
    switch (of) {
      case kModel:
        return field == 7 ? kGraph : field == 25 ? kFunction : kOther;
      case kGraph:
        return field == 1 ? kNode : kOther;
      case kNode:
        return field == 5 ? kAttribute : kOther;
      case kAttribute:
        return field == 6 || field == 11 ? kGraph : kOther;
      case kFunction:
        return field == 7 ? kNode : kOther;
      case kOther:
        return kOther;
    }
    return kOther;
  }
  std::optional<std::uint64_t> Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const int byte = file_.get();
      if (byte < 0) return std::nullopt;
      value |= (static_cast<std::uint64_t>(byte) & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  std::string Text(std::uint64_t size) {
    std::string text(std::min<std::uint64_t>(size, 256), '\0');
    file_.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }

  std::istream& file_;
};

}  // namespace

bool NamesDeciding(std::istream& onnx, std::streamoff size) {
  return Operators(onnx).Decide(Operators::Message::kModel, size);
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
  return size > kFirst && NamesDeciding(file, size);
}

}  // namespace

bool MayDecide(const ModelSpec& spec) {
  return std::ranges::any_of(
      spec.exits, [](const ExitSpec& exit) { return !exit.graph.empty() && Names(exit.graph); });
}

}  // namespace tactus
