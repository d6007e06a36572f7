#include "base/onnx_walk.h"

namespace tactus {
namespace {

// No graph has so many outside of its weights. What is no graph may seem to, for gigabytes.
constexpr std::uint64_t kMostFields = 16'000'000;

}  // namespace

void OnnxWalk::Run(OnnxMessage message, std::uint64_t end, bool inner, const Visit& visit,
                   int depth) {
  if (depth > kDeepestOnnx) return file_.setstate(std::ios::failbit);
  while (At() < end) {
    const std::uint64_t tag = Varint();
    if (tag >> 3 == 0 || ++fields_ > kMostFields) return file_.setstate(std::ios::failbit);
    const std::uint64_t kind = tag & 7;
    if (kind == 0) Varint();
    if (kind == 1 || kind == 5) file_.seekg(kind == 1 ? 8 : 4, std::ios::cur);
    if (kind != 2) {
      if (kind == 3 || kind == 4 || kind > 5) file_.setstate(std::ios::failbit);
      continue;
    }
    const std::uint64_t length = Varint();
    const std::uint64_t behind = At() + length;
    if (behind > end) return;
    const OnnxMessage child = OnnxChild(message, tag >> 3);
    if (child == OnnxMessage::kOther) {
      visit({.of = message, .number = tag >> 3, .length = length, .inner = inner});
    } else {
      const bool main = child == OnnxMessage::kGraph || child == OnnxMessage::kTensor ||
                        child == OnnxMessage::kEntry;
      Run(child, behind, inner || !main, visit, depth + 1);
    }
    if (file_) file_.seekg(static_cast<std::streamoff>(behind));
  }
}

std::string OnnxWalk::Text(const Field& field) {
  std::string text(field.length, '\0');
  file_.read(text.data(), static_cast<std::streamsize>(field.length));
  return text;
}

// The end of everything where the file does not go on.
std::uint64_t OnnxWalk::At() {
  const std::streamoff at = file_ ? static_cast<std::streamoff>(file_.tellg()) : -1;
  return at < 0 ? UINT64_MAX : static_cast<std::uint64_t>(at);
}

std::uint64_t OnnxWalk::Varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const int byte = file_.get();
    if (byte < 0) return 0;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  file_.setstate(std::ios::failbit);
  return 0;
}

}  // namespace tactus
