#include "server/kserve/json_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus {
namespace {

namespace ondemand = simdjson::ondemand;

// More nesting than any tensor has dimensions; the reader below is recursive.
constexpr std::size_t kMaxNesting = 100;

std::unexpected<Error> Wrong(std::string_view input, std::string_view why) {
  return InvalidArgument(fmt::format("input '{}': {}", input, why));
}

// The three words for what JSON numbers cannot say.
std::optional<double> Special(std::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// The value's text, for what is no JSON value.
std::string_view Token(ondemand::value value) {
  std::string_view token = value.raw_json_token();
  const std::size_t end = token.find_last_not_of(" \t\r\n");
  return token.substr(0, end == token.npos ? 0 : end + 1);
}

// Each Read says whether `value` was one of its type, within range.
bool Read(ondemand::value value, bool& out) {
  return value.get_bool().get(out) == simdjson::SUCCESS;
}

bool Read(ondemand::value value, double& out) {
  if (value.get_double().get(out) == simdjson::SUCCESS) return true;
  // Python's json writes the words without quotes, and tritonclient sends that.
  std::string_view word;
  if (value.get_string().get(word) != simdjson::SUCCESS) word = Token(value);
  const auto special = Special(word);
  if (special) out = *special;
  return special.has_value();
}

bool Read(ondemand::value value, float& out) {
  double wide;
  if (!Read(value, wide)) return false;
  out = static_cast<float>(wide);
  return std::isfinite(out) == std::isfinite(wide);
}

template <class Integer>
requires std::is_integral_v<Integer>
bool Read(ondemand::value value, Integer& out) {
  if constexpr (std::is_signed_v<Integer>) {
    std::int64_t wide;
    if (value.get_int64().get(wide) != simdjson::SUCCESS) return false;
    out = static_cast<Integer>(wide);
    return out == wide;
  } else {
    std::uint64_t wide;
    if (value.get_uint64().get(wide) != simdjson::SUCCESS) return false;
    out = static_cast<Integer>(wide);
    return out == wide;
  }
}

// Where elements of a fixed size go. There is room for `left` more.
template <class Element>
struct FixedSink {
  std::byte* at;
  std::int64_t left;

  bool Add(ondemand::value value) {
    Element element;
    if (!Read(value, element)) return false;
    std::memcpy(at, &element, sizeof element);
    at += sizeof element;
    --left;
    return true;
  }
};

struct StringSink {
  std::vector<std::byte>& bytes;
  std::int64_t left;

  bool Add(ondemand::value value) {
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) return false;
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) return false;
    const auto length = static_cast<std::uint32_t>(text.size());
    const auto* first = reinterpret_cast<const std::byte*>(&length);
    bytes.insert(bytes.end(), first, first + sizeof length);
    first = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), first, first + text.size());
    --left;
    return true;
  }
};

class TensorReader {
 public:
  TensorReader(DataType type, const Shape& shape, std::int64_t elements, std::string_view input,
               bool any_nesting, bool& malformed)
      : type_(type),
        shape_(shape),
        elements_(elements),
        input_(input),
        any_nesting_(any_nesting),
        malformed_(malformed) {}

  template <class Sink>
  Status Fill(ondemand::array array, Sink& sink, std::size_t depth = 1) {
    std::int64_t items = 0;
    for (auto item : array) {
      ondemand::value value;
      if (const auto error = item.get(value)) return Malformed(error);
      ondemand::json_type kind;
      const auto error = value.type().get(kind);
      if (error && !Special(Token(value))) return Malformed(error);
      const bool inner = !error && kind == ondemand::json_type::array;
      if (depth == 1 && items == 0) nested_ = inner;
      ++items;
      if (Status status = inner ? FillInner(value, sink, depth) : AddOne(value, sink, depth);
          !status) {
        return status;
      }
    }
    if (nested_ && !any_nesting_ && items != shape_[depth - 1]) return WrongNesting();
    return {};
  }

  std::unexpected<Error> WrongCount(std::string_view than) const {
    if (any_nesting_) return InvalidArgument(kTritonWrongData);
    return Wrong(input_, fmt::format("data has {} than the {} elements that its shape says", than,
                                     elements_));
  }

 private:
  std::unexpected<Error> Malformed(simdjson::error_code error) {
    malformed_ = true;
    return Wrong(input_, fmt::format("data is not JSON: {}", simdjson::error_message(error)));
  }

  template <class Sink>
  Status FillInner(ondemand::value value, Sink& sink, std::size_t depth) {
    if (!any_nesting_ && (!nested_ || depth >= shape_.size())) return WrongNesting();
    if (depth >= kMaxNesting) {
      return Wrong(input_, fmt::format("JSON nesting depth exceeds maximum allowed limit ({})",
                                       kMaxNesting));
    }
    ondemand::array inner;
    if (const auto error = value.get_array().get(inner)) return Malformed(error);
    return Fill(inner, sink, depth + 1);
  }

  template <class Sink>
  Status AddOne(ondemand::value value, Sink& sink, std::size_t depth) {
    if (nested_ && !any_nesting_ && depth != shape_.size()) return WrongNesting();
    if (sink.left == 0) return WrongCount("more");
    if (sink.Add(value)) return {};
    return Wrong(input_, fmt::format("element {} of data is not a value of type {}",
                                     elements_ - sink.left, Name(type_)));
  }

  std::unexpected<Error> WrongNesting() const {
    return Wrong(input_, fmt::format("data is neither nested as its shape [{}] says nor flat",
                                     fmt::join(shape_, ",")));
  }

  DataType type_;
  const Shape& shape_;
  std::int64_t elements_;
  std::string_view input_;
  bool any_nesting_;
  bool& malformed_;
  bool nested_ = false;  // as the first item of data says
};

template <class Element>
Expected<TensorBytes> ReadFixed(ondemand::array data, std::int64_t elements, TensorReader& reader) {
  TensorBytes bytes;
  bytes.size = static_cast<std::size_t>(elements) * sizeof(Element);
  bytes.data = std::make_unique_for_overwrite<std::byte[]>(bytes.size);
  FixedSink<Element> sink{bytes.data.get(), elements};
  if (Status status = reader.Fill(data, sink); !status) return std::unexpected(status.error());
  if (sink.left > 0) return reader.WrongCount("fewer");
  return bytes;
}

Expected<TensorBytes> ReadStrings(ondemand::array data, std::int64_t elements,
                                  TensorReader& reader) {
  std::vector<std::byte> text;
  StringSink sink{text, elements};
  if (Status status = reader.Fill(data, sink); !status) return std::unexpected(status.error());
  if (sink.left > 0) return reader.WrongCount("fewer");
  TensorBytes bytes;
  bytes.size = text.size();
  bytes.data = std::make_unique_for_overwrite<std::byte[]>(bytes.size);
  std::copy(text.begin(), text.end(), bytes.data.get());
  return bytes;
}

}  // namespace

Expected<TensorBytes> ReadJsonTensor(ondemand::array data, DataType type, const Shape& shape,
                                     std::int64_t elements, std::string_view input,
                                     bool any_nesting, bool& malformed) {
  TensorReader reader(type, shape, elements, input, any_nesting, malformed);
  switch (type) {
    case DataType::kBool:
      return ReadFixed<bool>(data, elements, reader);
    case DataType::kUint8:
      return ReadFixed<std::uint8_t>(data, elements, reader);
    case DataType::kUint16:
      return ReadFixed<std::uint16_t>(data, elements, reader);
    case DataType::kUint32:
      return ReadFixed<std::uint32_t>(data, elements, reader);
    case DataType::kUint64:
      return ReadFixed<std::uint64_t>(data, elements, reader);
    case DataType::kInt8:
      return ReadFixed<std::int8_t>(data, elements, reader);
    case DataType::kInt16:
      return ReadFixed<std::int16_t>(data, elements, reader);
    case DataType::kInt32:
      return ReadFixed<std::int32_t>(data, elements, reader);
    case DataType::kInt64:
      return ReadFixed<std::int64_t>(data, elements, reader);
    case DataType::kFp32:
      return ReadFixed<float>(data, elements, reader);
    case DataType::kFp64:
      return ReadFixed<double>(data, elements, reader);
    case DataType::kBytes:
      return ReadStrings(data, elements, reader);
    case DataType::kFp16:
    case DataType::kBf16:
      break;
  }
  return Wrong(input, fmt::format("{} has no JSON form: send it as binary data", Name(type)));
}

}  // namespace tactus
