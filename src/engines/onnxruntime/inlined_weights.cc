#include "engines/onnxruntime/inlined_weights.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>

#include "base/onnx_messages.h"

namespace tactus {
namespace {

constexpr std::uint64_t kDims = 1;
constexpr std::uint64_t kDataType = 2;
constexpr std::uint64_t kRawData = 9;
constexpr std::uint64_t kExternalData = 13;
constexpr std::uint64_t kDataLocation = 14;
constexpr std::uint64_t kExternal = 1;  // a value of data_location

// One field of a message.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint
  bool has_length = false;
  std::string_view content;  // of a field with a length
  std::string_view bytes;    // with its tag
};

std::optional<std::uint64_t> TakeVarint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Field> TakeField(std::string_view& from) {
  const std::string_view whole = from;
  const auto tag = TakeVarint(from);
  if (!tag || *tag >> 3 == 0) return std::nullopt;
  Field field{.number = *tag >> 3};
  std::uint64_t length = 0;
  switch (*tag & 7) {
    case 0: {
      const auto value = TakeVarint(from);
      if (!value) return std::nullopt;
      field.value = *value;
      break;
    }
    case 1:
      length = 8;
      break;
    case 5:
      length = 4;
      break;
    case 2: {
      const auto stated = TakeVarint(from);
      if (!stated) return std::nullopt;
      length = *stated;
      field.has_length = true;
      break;
    }
    default:
      return std::nullopt;
  }
  if (length > from.size()) return std::nullopt;
  field.content = from.substr(0, length);
  from.remove_prefix(length);
  field.bytes = whole.substr(0, whole.size() - from.size());
  return field;
}

void AppendVarint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}

void Append(std::string& to, std::uint64_t field, std::string_view content) {
  AppendVarint(to, field << 3 | 2);
  AppendVarint(to, content.size());
  to += content;
}

// Bytes of an element of that TensorProto.DataType; 0: of none, or less than one.
constexpr std::uint64_t ElementBytes(std::uint64_t type) {
  switch (type) {
    case 2:  // UINT8, INT8, BOOL, four of FLOAT8
    case 3:
    case 9:
    case 17:
    case 18:
    case 19:
    case 20:
      return 1;
    case 4:  // UINT16, INT16, FLOAT16, BFLOAT16
    case 5:
    case 10:
    case 16:
      return 2;
    case 1:  // FLOAT, INT32, UINT32
    case 6:
    case 12:
      return 4;
    case 7:  // INT64, DOUBLE, UINT64, COMPLEX64
    case 11:
    case 13:
    case 14:
      return 8;
    case 15:  // COMPLEX128
      return 16;
    default:
      return 0;
  }
}

// What a tensor says of its numbers beside the graph.
struct Beside {
  std::map<std::string_view, std::string_view> entries;  // external_data
  bool external = false;
  std::uint64_t type = 0;
  std::uint64_t elements = 1;

  void Dimension(std::uint64_t size) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    elements = size > kMost ? kMost : std::min(kMost, elements * size);
  }
};

class Inliner {
 public:
  explicit Inliner(std::span<const WeightsFile> files) {
    for (const WeightsFile& file : files) files_[file.name] = file.bytes;
  }

  // False: it is damaged, or names what is not there.
  bool Copy(OnnxMessage message, std::string_view from, std::string& to, int depth) const {
    if (depth > kDeepestOnnx) return false;
    if (message == OnnxMessage::kTensor) return CopyTensor(from, to);
    while (!from.empty()) {
      const auto field = TakeField(from);
      if (!field) return false;
      const OnnxMessage child = OnnxChild(message, field->number);
      if (child == OnnxMessage::kOther || !field->has_length) {
        to += field->bytes;
        continue;
      }
      std::string copy;
      if (!Copy(child, field->content, copy, depth + 1)) return false;
      Append(to, field->number, copy);
    }
    return true;
  }

 private:
  bool CopyTensor(std::string_view from, std::string& to) const {
    Beside beside;
    std::string kept;
    for (std::string_view left = from; !left.empty();) {
      const auto field = TakeField(left);
      if (!field) return false;
      if (field->number == kExternalData && field->has_length) {
        if (!TakeEntry(field->content, beside.entries)) return false;
        continue;
      }
      if (field->number == kDataLocation) {
        beside.external = field->value == kExternal;
        continue;
      }
      kept += field->bytes;
      if (field->number == kDataType) beside.type = field->value;
      if (field->number != kDims) continue;
      if (!field->has_length) beside.Dimension(field->value);
      for (std::string_view packed = field->content; !packed.empty();) {
        const auto size = TakeVarint(packed);
        if (!size) return false;
        beside.Dimension(*size);
      }
    }
    if (!beside.external) {
      to += from;
      return true;
    }
    const auto numbers = PartOf(beside);
    if (!numbers) return false;
    to += kept;
    Append(to, kRawData, *numbers);
    return true;
  }

  static bool TakeEntry(std::string_view entry,
                        std::map<std::string_view, std::string_view>& into) {
    std::string_view key;
    std::string_view value;
    while (!entry.empty()) {
      const auto field = TakeField(entry);
      if (!field) return false;
      if (field->number == 1) key = field->content;
      if (field->number == 2) value = field->content;
    }
    into[key] = value;
    return true;
  }

  std::optional<std::string_view> PartOf(const Beside& beside) const {
    const auto number = [&](const char* key, std::uint64_t otherwise) {
      const auto found = beside.entries.find(key);
      if (found == beside.entries.end()) return std::optional(otherwise);
      std::uint64_t value = 0;
      const std::string_view text = found->second;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = error == std::errc() && end == text.data() + text.size();
      return whole ? std::optional(value) : std::nullopt;
    };
    const auto location = beside.entries.find("location");
    if (location == beside.entries.end()) return std::nullopt;
    const auto file = files_.find(location->second);
    const auto offset = number("offset", 0);
    if (file == files_.end() || !offset || *offset > file->second.size()) return std::nullopt;
    const std::string_view rest = file->second.substr(*offset);
    const std::uint64_t needed = beside.elements * ElementBytes(beside.type);
    const auto length = number("length", needed > 0 ? needed : rest.size());
    if (!length || *length > rest.size()) return std::nullopt;
    return rest.substr(0, *length);
  }

  std::map<std::string_view, std::string_view> files_;
};

}  // namespace

std::optional<std::string> WithWeights(std::string_view graph, std::span<const WeightsFile> files) {
  std::string whole;
  if (!Inliner(files).Copy(OnnxMessage::kModel, graph, whole, 0)) return std::nullopt;
  return whole;
}

}  // namespace tactus
