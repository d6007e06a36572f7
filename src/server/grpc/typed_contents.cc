#include "server/grpc/typed_contents.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "core/tensor.h"
#include "grpc_service.pb.h"

namespace tactus {
namespace {

using inference::InferTensorContents;
using Input = inference::ModelInferRequest::InferInputTensor;

static_assert(std::endian::native == std::endian::little, "the wire is little endian");
static_assert(sizeof(bool) == 1, "a BOOL element is one byte");

template <class Field>
std::span<const std::byte> View(const Field& field) {
  return std::as_bytes(std::span(field.data(), static_cast<std::size_t>(field.size())));
}

// Elements that travel in a wider field.
template <class Narrow, class Field>
Expected<std::span<const std::byte>> Narrowed(const Input& input, const Field& field,
                                              ConvertedBytes& converted) {
  std::string& bytes = converted.emplace_back();
  bytes.resize(sizeof(Narrow) * static_cast<std::size_t>(field.size()));
  for (int i = 0; i < field.size(); ++i) {
    if (field[i] < std::numeric_limits<Narrow>::min() ||
        field[i] > std::numeric_limits<Narrow>::max()) {
      return InvalidArgument(fmt::format("input '{}': element {} is {}, which {} cannot hold",
                                         input.name(), i, field[i], input.datatype()));
    }
    const Narrow value = static_cast<Narrow>(field[i]);
    std::memcpy(bytes.data() + sizeof(Narrow) * static_cast<std::size_t>(i), &value, sizeof value);
  }
  return std::as_bytes(std::span(bytes));
}

// Each element as its length in four bytes, then its bytes.
template <class Field>
std::span<const std::byte> WithLengths(const Field& elements, ConvertedBytes& converted) {
  std::string& bytes = converted.emplace_back();
  std::size_t size = 0;
  for (const std::string& element : elements) size += sizeof(std::uint32_t) + element.size();
  bytes.reserve(size);
  for (const std::string& element : elements) {
    const auto length = static_cast<std::uint32_t>(element.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes.append(element);
  }
  return std::as_bytes(std::span(bytes));
}

// The number of the contents' field that holds elements of `type`; 0 for those that travel raw.
int FieldOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return InferTensorContents::kBoolContentsFieldNumber;
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
      return InferTensorContents::kIntContentsFieldNumber;
    case DataType::kInt64:
      return InferTensorContents::kInt64ContentsFieldNumber;
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
      return InferTensorContents::kUintContentsFieldNumber;
    case DataType::kUint64:
      return InferTensorContents::kUint64ContentsFieldNumber;
    case DataType::kFp32:
      return InferTensorContents::kFp32ContentsFieldNumber;
    case DataType::kFp64:
      return InferTensorContents::kFp64ContentsFieldNumber;
    case DataType::kBytes:
      return InferTensorContents::kBytesContentsFieldNumber;
    case DataType::kFp16:
    case DataType::kBf16:
      return 0;
  }
  return 0;
}

// A filled field other than `wanted`, or null.
const char* StrayField(const InferTensorContents& contents, int wanted) {
  const auto* descriptor = InferTensorContents::descriptor();
  const auto* reflection = InferTensorContents::GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    if (field->number() != wanted && reflection->FieldSize(contents, field) > 0) {
      return field->name().c_str();
    }
  }
  return nullptr;
}

}  // namespace

Expected<std::span<const std::byte>> TypedBytes(const Input& input, ConvertedBytes& converted) {
  const auto type = ParseDataType(input.datatype());
  if (!type) {
    return InvalidArgument(
        fmt::format("input '{}': unknown datatype '{}'", input.name(), input.datatype()));
  }
  const int wanted = FieldOf(*type);
  if (wanted == 0) {
    return InvalidArgument(fmt::format("input '{}': {} travels in raw_input_contents only",
                                       input.name(), input.datatype()));
  }
  const InferTensorContents& c = input.contents();
  if (const char* stray = StrayField(c, wanted)) {
    return InvalidArgument(fmt::format(
        "input '{}': contents of type {} belong in {}, found {}", input.name(), input.datatype(),
        InferTensorContents::descriptor()->FindFieldByNumber(wanted)->name(), stray));
  }
  switch (*type) {
    case DataType::kBool:
      return View(c.bool_contents());
    case DataType::kInt8:
      return Narrowed<std::int8_t>(input, c.int_contents(), converted);
    case DataType::kInt16:
      return Narrowed<std::int16_t>(input, c.int_contents(), converted);
    case DataType::kInt32:
      return View(c.int_contents());
    case DataType::kInt64:
      return View(c.int64_contents());
    case DataType::kUint8:
      return Narrowed<std::uint8_t>(input, c.uint_contents(), converted);
    case DataType::kUint16:
      return Narrowed<std::uint16_t>(input, c.uint_contents(), converted);
    case DataType::kUint32:
      return View(c.uint_contents());
    case DataType::kUint64:
      return View(c.uint64_contents());
    case DataType::kFp32:
      return View(c.fp32_contents());
    case DataType::kFp64:
      return View(c.fp64_contents());
    case DataType::kBytes:
      return WithLengths(c.bytes_contents(), converted);
    case DataType::kFp16:
    case DataType::kBf16:
      break;  // refused above
  }
  return InvalidArgument("unreachable");
}

}  // namespace tactus
