#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "server/kserve/classification.h"
#include "server/kserve/json_codec.h"
#include "server/kserve/json_tensor.h"

namespace tactus {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(kBodyPadding >= simdjson::SIMDJSON_PADDING);

constexpr std::size_t kMostDimensions = 64;
constexpr double kMostWhole = 1LL << 53;  // beyond it, doubles have gaps
// A parser that served a larger body is replaced: its memory grows with the body and never shrinks.
constexpr std::size_t kKeptParser = std::size_t{4} << 20;

std::unexpected<Error> Malformed(simdjson::error_code error) {
  return InvalidArgument(
      fmt::format("failed to parse the request JSON: {}", simdjson::error_message(error)));
}
std::unexpected<Error> WrongField(std::string_view field, std::string_view type) {
  return InvalidArgument(
      fmt::format("failed to parse the request JSON: '{}' must be {}", field, type));
}

// Reads `value` as a T, or says what it should have been.
template <class T>
Status Get(ondemand::value value, T& out, std::string_view field, std::string_view type) {
  const auto error = value.get(out);
  if (error == simdjson::SUCCESS) return {};
  if (error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR ||
      error == simdjson::NUMBER_OUT_OF_RANGE) {
    return WrongField(field, type);
  }
  return Malformed(error);
}

// Finds keys that an object has twice: which of the values counts, clients and servers would not
// agree on.
class SeenKeys {
 public:
  bool Again(std::string_view key) {
    if (count_ < few_.size()) {
      const auto end = few_.begin() + static_cast<std::ptrdiff_t>(count_);
      if (std::find(few_.begin(), end, key) != end) return true;
      few_[count_++] = key;
      return false;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    return !many_.insert(key).second;
  }

 private:
  std::array<std::string_view, 16> few_;
  std::size_t count_ = 0;
  std::set<std::string_view> many_;
};

// Calls visit(key, value) for each member; stops at the first error. A member that is null is as if
// it were not there.
template <class Visit>
Status ForEachField(ondemand::object object, Visit visit) {
  SeenKeys seen;
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return Malformed(error);
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return Malformed(error);
    if (seen.Again(key)) {
      return InvalidArgument(
          fmt::format("failed to parse the request JSON: '{}' is given twice", key));
    }
    ondemand::value value = field.value();
    ondemand::json_type type;
    if (const auto error = value.type().get(type)) return Malformed(error);
    if (type == ondemand::json_type::null) {
      bool null = false;  // "nul" begins as null does
      if (const auto error = value.is_null().get(null)) return Malformed(error);
      continue;
    }
    if (Status status = visit(key, value); !status) return status;
  }
  return {};
}

Expected<ParameterValue> ReadNumberParameter(ondemand::value value, std::string_view key) {
  ondemand::number number;
  if (const auto error = value.get_number().get(number)) {
    if (error == simdjson::NUMBER_ERROR) return WrongField(key, "a number within 64 bits");
    return Malformed(error);
  }
  if (number.is_int64()) return ParameterValue(number.get_int64());
  if (number.is_uint64()) return ParameterValue(number.get_uint64());
  return ParameterValue(number.get_double());
}

Expected<ParameterValue> ReadParameterValue(ondemand::value value, std::string_view key) {
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return Malformed(error);
  if (type == ondemand::json_type::number) return ReadNumberParameter(value, key);
  if (type == ondemand::json_type::boolean) {
    bool flag = false;
    if (const auto error = value.get_bool().get(flag)) return Malformed(error);
    return ParameterValue(flag);
  }
  if (type == ondemand::json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return Malformed(error);
    return ParameterValue(text);
  }
  return WrongField(key, "a string, a number or a boolean");
}

// An input as the JSON gives it, before its tensor is found.
struct InputHead {
  InputMessage message;
  bool has_shape = false;
  bool has_data = false;
  std::optional<std::uint64_t> binary_size;
};

// The decoded tensors of one call, and the body that the binary ones lie in.
struct CallBytes {
  std::shared_ptr<const void> body;
  std::deque<TensorBytes> decoded;
};

}  // namespace

struct InferRequestDecoder::Body {
  explicit Body(bool of_triton) : like_triton(of_triton) {}

  const bool like_triton;
  ondemand::parser parser;
  ondemand::parser late;  // for data that stands before its type or shape

  // Of the call at hand.
  InferRequest request;
  std::shared_ptr<CallBytes> bytes;
  std::span<const std::byte> binary;  // not yet taken by an input
  std::size_t json_length = 0;
  bool extension = false;

  Expected<InferRequest> Decode(std::span<const std::byte> body,
                                std::optional<std::size_t> header_length,
                                std::shared_ptr<const void> owner);
  Status DecodeJson(const char* json);
  Status ReadTop(std::string_view key, ondemand::value value);
  Status ReadRequestParameters(ondemand::object parameters);
  Status ReadInputs(ondemand::array inputs);
  Status ReadInput(ondemand::object object);
  Status ReadInputField(std::string_view key, ondemand::value value, InputHead& head,
                        std::string_view& late_data);
  Status ReadInputParameters(ondemand::object parameters, InputHead& head);
  Status ReadData(ondemand::value value, InputHead& head, std::string_view& late_data);
  // A mistake of the data alone is left in the head; others are told `at_once`.
  Status ReadTensor(ondemand::array data, InputHead& head);
  Expected<TensorBytes> ReadElements(ondemand::array data, const InputMessage& of, bool& at_once);
  Status ReadLateTensor(std::string_view json, InputHead& head);
  Status TakeBinary(InputHead& head);
  Status ReadOutputs(ondemand::array outputs);
  Status ReadOutput(ondemand::object object);
};

Status InferRequestDecoder::Body::ReadRequestParameters(ondemand::object parameters) {
  return ForEachField(parameters, [&](std::string_view key, ondemand::value value) -> Status {
    const auto read = ReadParameterValue(value, key);
    if (!read) return std::unexpected(read.error());
    if (const bool* flag = std::get_if<bool>(&*read); flag && key == "binary_data_output") {
      request.form.binary = *flag;
    }
    request.message.parameters.emplace_back(key, *read);
    return {};
  });
}

Status ReadShape(ondemand::value value, InputHead& head, bool like_triton) {
  ondemand::array dims;
  if (Status status = Get(value, dims, "shape", "an array"); !status) return status;
  head.message.shape.clear();
  for (auto item : dims) {
    ondemand::value dim;
    if (const auto error = item.get(dim)) return Malformed(error);
    std::int64_t size = 0;
    Status read = Get(dim, size, "shape", "an array of whole numbers");
    // 2.0, as languages write it that have one kind of number; Triton refuses it.
    double number = 0;
    if (!read && !like_triton && dim.get_double().get(number) == simdjson::SUCCESS &&
        number == std::floor(number) && std::abs(number) <= kMostWhole) {
      size = static_cast<std::int64_t>(number);
      read = {};
    }
    if (!read) return read;
    if (head.message.shape.size() == kMostDimensions) {
      return InvalidArgument(fmt::format("a shape has more than {} dimensions", kMostDimensions));
    }
    head.message.shape.push_back(size);
  }
  head.has_shape = true;
  return {};
}

std::unexpected<Error> NoSharedMemory() {
  return Fail(ErrorCode::kUnimplemented, "shared memory is not supported");
}

Status InferRequestDecoder::Body::ReadInputParameters(ondemand::object parameters,
                                                      InputHead& head) {
  return ForEachField(parameters, [&](std::string_view key, ondemand::value value) -> Status {
    if (key.starts_with("shared_memory_")) return NoSharedMemory();
    if (key != "binary_data_size") return {};
    std::uint64_t size = 0;
    if (Status status = Get(value, size, key, "a whole number, not below 0"); !status) {
      return status;
    }
    head.binary_size = size;
    return {};
  });
}

// Tensor data costs most where it must be set aside, so it is read where it stands if all that is
// needed came before, as clients write it.
Status InferRequestDecoder::Body::ReadData(ondemand::value value, InputHead& head,
                                           std::string_view& late_data) {
  ondemand::array data;
  if (Status status = Get(value, data, "data", "an array"); !status) return status;
  head.has_data = true;
  if (head.has_shape && !head.message.datatype.empty()) return ReadTensor(data, head);
  if (const auto error = data.raw_json().get(late_data)) return Malformed(error);
  return {};
}

Status InferRequestDecoder::Body::ReadTensor(ondemand::array data, InputHead& head) {
  for (const std::int64_t dim : head.message.shape) {
    if (dim >= 0) continue;
    return InvalidArgument(
        like_triton ? "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as "
                      "unsigned-integer"
                    : fmt::format("input '{}': negative dimension {}", head.message.name, dim));
  }
  bool at_once = false;
  auto tensor = ReadElements(data, head.message, at_once);
  if (!tensor && at_once) return std::unexpected(tensor.error());
  if (!tensor) head.message.wrong_data = std::move(tensor.error());
  if (!tensor) return {};
  if (bytes == nullptr) bytes = std::make_shared<CallBytes>();
  bytes->decoded.push_back(std::move(*tensor));
  head.message.data = {bytes->decoded.back().data.get(), bytes->decoded.back().size};
  return {};
}

Expected<TensorBytes> InferRequestDecoder::Body::ReadElements(ondemand::array data,
                                                              const InputMessage& of,
                                                              bool& at_once) {
  const std::optional<DataType> type = ParseDataType(of.datatype);
  if (!type) return InvalidArgument(fmt::format("unknown datatype '{}'", of.datatype));
  const std::optional<std::int64_t> elements = ElementCount(of.shape);
  if (!elements || !ByteSize(of, *type, *elements)) {
    at_once = true;
    return TooManyElements(of);
  }
  // An element takes two characters at least: what cannot be there is not allocated for.
  if (static_cast<std::uint64_t>(*elements) > json_length / 2 + 1) {
    return InvalidArgument(
        like_triton
            ? kTritonWrongData
            : fmt::format("input '{}': data has fewer than the {} elements that its shape says",
                          of.name, *elements));
  }
  return ReadJsonTensor(data, *type, of.shape, *elements, of.name, like_triton, at_once);
}

Status InferRequestDecoder::Body::ReadLateTensor(std::string_view json, InputHead& head) {
  if (!head.has_shape) return WrongField("shape", "given");
  // What lies behind the text is the rest of the same document, and its padding.
  auto document = late.iterate(json.data(), json.size(), json.size() + kBodyPadding);
  ondemand::array data;
  if (const auto error = document.get_array().get(data)) return Malformed(error);
  return ReadTensor(data, head);
}

Status InferRequestDecoder::Body::TakeBinary(InputHead& head) {
  if (!extension) {
    return InvalidArgument(
        fmt::format("input '{}' has binary_data_size, but the request has no "
                    "Inference-Header-Content-Length",
                    head.message.name));
  }
  if (*head.binary_size > binary.size()) {
    return InvalidArgument(
        fmt::format("input '{}': binary_data_size {} exceeds the {} bytes left in the body",
                    head.message.name, *head.binary_size, binary.size()));
  }
  head.message.data = binary.first(*head.binary_size);
  binary = binary.subspan(*head.binary_size);
  return {};
}

Status InferRequestDecoder::Body::ReadInputField(std::string_view key, ondemand::value value,
                                                 InputHead& head, std::string_view& late_data) {
  if (key == "name") return Get(value, head.message.name, key, "a string");
  if (key == "datatype") return Get(value, head.message.datatype, key, "a string");
  if (key == "shape") return ReadShape(value, head, like_triton);
  if (key == "data") return ReadData(value, head, late_data);
  if (key == "parameters") {
    ondemand::object parameters;
    if (Status status = Get(value, parameters, key, "an object"); !status) return status;
    return ReadInputParameters(parameters, head);
  }
  return {};
}

Status InferRequestDecoder::Body::ReadInput(ondemand::object object) {
  InputHead head;
  std::string_view late_data;
  Status read = ForEachField(object, [&](std::string_view key, ondemand::value value) {
    return ReadInputField(key, value, head, late_data);
  });
  if (!read) return read;
  if (head.message.name.empty()) return WrongField("name", "given for each input");
  if (head.message.datatype.empty()) return WrongField("datatype", "given for each input");
  if (!head.has_shape) return WrongField("shape", "given for each input");
  if (head.has_data && head.binary_size) {
    return InvalidArgument(
        fmt::format("input '{}' has both 'data' and binary_data_size", head.message.name));
  }
  if (head.binary_size) {
    if (Status status = TakeBinary(head); !status) return status;
  } else if (!head.has_data) {
    return InvalidArgument(
        fmt::format("input '{}' has neither 'data' nor binary_data_size", head.message.name));
  } else if (!late_data.empty()) {
    if (Status status = ReadLateTensor(late_data, head); !status) return status;
  }
  request.message.inputs.push_back(std::move(head.message));
  return {};
}

Status InferRequestDecoder::Body::ReadInputs(ondemand::array inputs) {
  for (auto item : inputs) {
    ondemand::value value;
    if (const auto error = item.get(value)) return Malformed(error);
    ondemand::object object;
    if (Status status = Get(value, object, "inputs", "an array of objects"); !status) return status;
    if (Status status = ReadInput(object); !status) return status;
  }
  return {};
}

Status ReadOutputParameter(std::string_view key, ondemand::value value, signed char& binary,
                           std::uint32_t& classes) {
  if (key.starts_with("shared_memory_")) return NoSharedMemory();
  if (key == "classification") {
    std::uint64_t count = 0;
    if (Status status = Get(value, count, key, "a whole number, not below 0"); !status) {
      return status;
    }
    classes = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kMostClasses));
    return {};
  }
  if (key != "binary_data") return {};
  bool flag = false;
  if (Status status = Get(value, flag, key, "a boolean"); !status) return status;
  binary = flag ? 1 : 0;
  return {};
}

Status InferRequestDecoder::Body::ReadOutput(ondemand::object object) {
  std::string_view name;
  signed char binary = -1;
  std::uint32_t classes = 0;
  Status read = ForEachField(object, [&](std::string_view key, ondemand::value value) -> Status {
    if (key == "name") return Get(value, name, key, "a string");
    if (key != "parameters") return {};
    ondemand::object parameters;
    if (Status status = Get(value, parameters, key, "an object"); !status) return status;
    return ForEachField(parameters, [&](std::string_view inner, ondemand::value parameter) {
      return ReadOutputParameter(inner, parameter, binary, classes);
    });
  });
  if (!read) return read;
  if (name.empty()) return WrongField("name", "given for each output");
  // binary_data_output is of all outputs; Triton takes it for those alone that no list names.
  if (like_triton && binary < 0) binary = 0;
  request.message.outputs.push_back(name);
  request.message.classes.push_back(classes);
  request.form.outputs.push_back(binary);
  return {};
}

Status InferRequestDecoder::Body::ReadOutputs(ondemand::array outputs) {
  for (auto item : outputs) {
    ondemand::value value;
    if (const auto error = item.get(value)) return Malformed(error);
    ondemand::object object;
    if (Status status = Get(value, object, "outputs", "an array of objects"); !status) {
      return status;
    }
    if (Status status = ReadOutput(object); !status) return status;
  }
  return {};
}

Status InferRequestDecoder::Body::ReadTop(std::string_view key, ondemand::value value) {
  if (key == "id") {
    std::string_view id;
    if (Status status = Get(value, id, key, "a string"); !status) return status;
    request.form.id = id;
    return {};
  }
  if (key == "parameters") {
    ondemand::object parameters;
    if (Status status = Get(value, parameters, key, "an object"); !status) return status;
    return ReadRequestParameters(parameters);
  }
  if (key == "inputs" || key == "outputs") {
    ondemand::array list;
    if (Status status = Get(value, list, key, "an array"); !status) return status;
    return key == "inputs" ? ReadInputs(list) : ReadOutputs(list);
  }
  return {};
}

Status InferRequestDecoder::Body::DecodeJson(const char* json) {
  ondemand::document document;
  const auto opened = parser.iterate(json, json_length, json_length + kBodyPadding).get(document);
  if (opened) return Malformed(opened);
  ondemand::object top;
  if (const auto error = document.get_object().get(top)) {
    if (error == simdjson::INCORRECT_TYPE) return WrongField("the request", "an object");
    return Malformed(error);
  }
  Status read = ForEachField(
      top, [&](std::string_view key, ondemand::value value) { return ReadTop(key, value); });
  if (!read) return read;
  // At the end of the text there is no location any more.
  const char* rest = nullptr;
  if (document.current_location().get(rest) != simdjson::SUCCESS) return {};
  return InvalidArgument("failed to parse the request JSON: there is text behind its end");
}

Expected<InferRequest> InferRequestDecoder::Body::Decode(std::span<const std::byte> body,
                                                         std::optional<std::size_t> header_length,
                                                         std::shared_ptr<const void> owner) {
  json_length = header_length.value_or(body.size());
  if (json_length > body.size()) {
    return InvalidArgument(
        fmt::format("Inference-Header-Content-Length says {} bytes, the body has {}", json_length,
                    body.size()));
  }
  if (parser.capacity() > kKeptParser && json_length <= kKeptParser) {
    parser = ondemand::parser();
    late = ondemand::parser();
  }
  request = {};
  bytes = nullptr;
  extension = header_length.has_value();
  binary = body.subspan(json_length);
  if (json_length == 0) return InvalidArgument("the request has no JSON");
  Status decoded = DecodeJson(reinterpret_cast<const char*>(body.data()));
  if (!decoded) return std::unexpected(decoded.error());
  if (!binary.empty()) {
    return InvalidArgument(
        fmt::format("the body has {} bytes more than its inputs' binary_data_size", binary.size()));
  }
  if (bytes != nullptr) {
    bytes->body = std::move(owner);
    request.keepalive = std::move(bytes);
  } else {
    request.keepalive = std::move(owner);
  }
  return std::move(request);
}

InferRequestDecoder::InferRequestDecoder(bool like_triton)
    : body_(std::make_unique<Body>(like_triton)) {}
InferRequestDecoder::InferRequestDecoder(InferRequestDecoder&&) noexcept = default;
InferRequestDecoder& InferRequestDecoder::operator=(InferRequestDecoder&&) noexcept = default;
InferRequestDecoder::~InferRequestDecoder() = default;

Expected<InferRequest> InferRequestDecoder::Decode(std::span<const std::byte> body,
                                                   std::optional<std::size_t> json_length,
                                                   std::shared_ptr<const void> owner) {
  return body_->Decode(body, json_length, std::move(owner));
}

}  // namespace tactus
