#include "server/grpc/wire.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <google/protobuf/io/coded_stream.h>

#include "grpc_service.pb.h"
#include "server/grpc/request_message.h"
#include "server/kserve/compression.h"

namespace tactus {
namespace {

using google::protobuf::io::CodedOutputStream;

// Below this a copy costs less than a piece of its own (an allocation, and an entry of the iovec).
constexpr std::size_t kCopyBelow = 4096;

// Fields that are looked through on an I/O thread, before it is left to others.
constexpr std::size_t kFewFields = 1000;

constexpr std::uint8_t LengthDelimited(int field) {
  return static_cast<std::uint8_t>(field << 3 | 2);
}

// Tag and length of a length-delimited field; field numbers below 16 have tags of one byte.
void AppendFieldHead(std::string& out, int field, std::size_t size) {
  std::array<std::uint8_t, 11> head;
  head[0] = LengthDelimited(field);
  const std::uint8_t* end = CodedOutputStream::WriteVarint64ToArray(size, head.data() + 1);
  out.append(reinterpret_cast<const char*>(head.data()), end - head.data());
}

// The fields of a message, one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool done() const { return at_ == bytes_.size(); }
  std::size_t at() const { return at_; }
  // The next field's tag, and its bytes where it has a length. False: this is no message.
  bool Next(std::uint64_t& tag, std::span<const std::byte>& content) {
    content = {};
    if (!Varint(tag) || tag >> 3 == 0 || tag > std::numeric_limits<std::uint32_t>::max()) {
      return false;
    }
    std::uint64_t value = 0;
    switch (tag & 7) {
      case 0:
        return Varint(value);
      case 1:
        return Skip(8);
      case 2:
        if (!Varint(value)) return false;
        if (value > bytes_.size() - at_) return false;
        content = bytes_.subspan(at_, value);
        return Skip(value);
      case 5:
        return Skip(4);
      default:
        return false;  // groups, which this protocol has not
    }
  }

 private:
  bool Skip(std::uint64_t n) {
    if (n > bytes_.size() - at_) return false;
    at_ += n;
    return true;
  }
  bool Varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  const std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

constexpr std::uint64_t kRawTag =
    LengthDelimited(inference::ModelInferRequest::kRawInputContentsFieldNumber);

// Collects copied bytes and shared spans in order.
class PieceBuilder {
 public:
  explicit PieceBuilder(OutMessage& out) : out_(out) {}

  std::string& copied() { return pending_; }

  void Share(std::span<const std::byte> bytes, const std::shared_ptr<const void>& storage) {
    if (bytes.size() < kCopyBelow) {
      pending_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return;
    }
    Flush();
    out_.Add(bytes, storage);
  }

  void Flush() {
    if (!pending_.empty()) out_.Add(std::exchange(pending_, {}));
  }

 private:
  OutMessage& out_;
  std::string pending_;
};

std::unexpected<Error> NoInferRequest() {
  return InvalidArgument("the request is not a ModelInferRequest message");
}

}  // namespace

Status Unpack(Coding coding, Message& message, std::size_t limit) {
  auto unpacked = Inflate(coding, message.bytes(), limit);
  if (!unpacked) return std::unexpected(std::move(unpacked.error()));
  message = {.data = std::move(unpacked->data), .size = unpacked->size, .packed = false};
  return {};
}

std::size_t BytesBesideRaw(const Message& message) {
  FieldReader fields(message.bytes());
  std::size_t raw = 0;
  for (std::size_t i = 0; !fields.done(); ++i) {
    std::uint64_t tag = 0;
    std::span<const std::byte> content;
    if (!fields.Next(tag, content) || i == kFewFields) break;
    if (tag == kRawTag) raw += content.size();
  }
  return message.size - raw;
}

Expected<std::shared_ptr<InferMessage>> ParseInferRequest(const Message& message) {
  auto request = std::make_shared<InferMessage>();
  const auto bytes = message.bytes();
  // What is left between the tensors: mostly one piece before them.
  std::span<const std::byte> rest;
  std::string joined;
  std::size_t from = 0;
  const auto keep = [&](std::size_t to) {
    const auto piece = bytes.subspan(from, to - from);
    if (piece.empty()) return;
    if (rest.empty()) {
      rest = piece;
      return;
    }
    if (joined.empty()) joined.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
    joined.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  FieldReader fields(bytes);
  while (!fields.done()) {
    const std::size_t begin = fields.at();
    std::uint64_t tag = 0;
    std::span<const std::byte> content;
    if (!fields.Next(tag, content)) return NoInferRequest();
    if (tag != kRawTag) continue;
    keep(begin);
    from = fields.at();
    request->raw.push_back(content);
  }
  keep(bytes.size());
  if (!joined.empty()) rest = std::as_bytes(std::span(joined));
  if (rest.size() > std::numeric_limits<int>::max() ||
      !request->head.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) {
    return NoInferRequest();
  }
  request->bytes = message.data;
  return request;
}

std::string_view ModelNameIn(std::span<const std::byte> first) {
  FieldReader fields(first);
  std::uint64_t tag = 0;
  std::span<const std::byte> name;
  if (first.empty() || !fields.Next(tag, name)) return {};
  if (tag != LengthDelimited(inference::ModelInferRequest::kModelNameFieldNumber)) return {};
  return {reinterpret_cast<const char*>(name.data()), name.size()};
}

OutMessage EncodeResponse(const inference::ModelInferResponse& head,
                          const std::vector<OutputTensor>& outputs,
                          const std::shared_ptr<const void>& storage) {
  OutMessage response;
  PieceBuilder builder(response);
  builder.copied().reserve(head.ByteSizeLong() + kCopyBelow);
  head.AppendToString(&builder.copied());
  for (const OutputTensor& output : outputs) {
    std::size_t size = 0;
    for (const auto& part : output.parts) size += part.size();
    AppendFieldHead(builder.copied(), inference::ModelInferResponse::kRawOutputContentsFieldNumber,
                    size);
    for (const auto& part : output.parts) builder.Share(part, storage);
  }
  builder.Flush();
  return response;
}

OutMessage ToStreamMessage(OutMessage response) {
  std::string head;
  AppendFieldHead(head, inference::ModelStreamInferResponse::kInferResponseFieldNumber,
                  response.size);
  OutMessage message;
  message.Add(std::move(head));
  message.size += response.size;
  for (OutMessage::Piece& piece : response.pieces) message.pieces.push_back(std::move(piece));
  return message;
}

OutMessage ToStreamError(const std::string& message, const std::string& id) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(message);
  response.mutable_infer_response()->set_id(id);
  OutMessage out;
  out.Add(response.SerializeAsString());
  return out;
}

}  // namespace tactus
