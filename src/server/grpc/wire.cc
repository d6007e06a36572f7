#include "server/grpc/wire.h"

#include <array>
#include <optional>

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "grpc_service.pb.h"
#include "server/kserve/compression.h"

namespace tactus {
namespace {

using google::protobuf::io::CodedOutputStream;

// Below this a copy costs less than a slice of its own (an allocation, and an entry of the iovec).
constexpr std::size_t kCopyBelow = 4096;

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

// Collects copied bytes and shared spans in order.
class SliceBuilder {
 public:
  explicit SliceBuilder(WireResponse& out) : out_(out) {}

  std::string& copied() { return pending_; }

  void Share(std::span<const std::byte> bytes, const std::shared_ptr<const void>& storage) {
    if (bytes.size() < kCopyBelow) {
      pending_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return;
    }
    Flush();
    auto* keepalive = new std::shared_ptr<const void>(storage);
    // gRPC only reads the bytes; its C interface has no const.
    out_.slices.emplace_back(
        const_cast<std::byte*>(bytes.data()), bytes.size(),
        [](void* p) { delete static_cast<std::shared_ptr<const void>*>(p); }, keepalive);
    out_.size += bytes.size();
  }

  void Flush() {
    if (pending_.empty()) return;
    out_.slices.emplace_back(pending_);
    out_.size += pending_.size();
    pending_.clear();
  }

 private:
  WireResponse& out_;
  std::string pending_;
};

}  // namespace

WireResponse::WireResponse() = default;
WireResponse::~WireResponse() = default;
WireResponse::WireResponse(WireResponse&&) noexcept = default;
WireResponse& WireResponse::operator=(WireResponse&&) noexcept = default;

namespace {

// A message begins with a field's number and kind. Of what these begin with, 0x1f is no kind that
// there is, and 0x78 a number that the message has not.
std::optional<Coding> CodingOf(const std::vector<grpc::Slice>& slices) {
  for (const grpc::Slice& slice : slices) {
    if (slice.size() == 0) continue;
    if (slice.begin()[0] == 0x1f) return Coding::kGzip;
    if (slice.begin()[0] == 0x78) return Coding::kDeflate;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Status Unpack(grpc::ByteBuffer& bytes, std::size_t limit) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return {};
  const auto coding = CodingOf(slices);
  if (!coding) return {};
  std::vector<std::byte> packed;
  packed.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    const auto* begin = reinterpret_cast<const std::byte*>(slice.begin());
    packed.insert(packed.end(), begin, begin + slice.size());
  }
  auto unpacked = Inflate(*coding, packed, limit);
  if (!unpacked) return std::unexpected(std::move(unpacked.error()));
  const grpc::Slice whole(unpacked->data.get(), unpacked->size);
  bytes = grpc::ByteBuffer(&whole, 1);
  return {};
}

Expected<std::shared_ptr<inference::ModelInferRequest>> ParseInferRequest(grpc::ByteBuffer& bytes) {
  auto request = std::make_shared<inference::ModelInferRequest>();
  // gRPC hands over nothing where the frame was cut off, or its flags or its size make no sense.
  if (!bytes.Valid() || bytes.Length() == 0) {
    return Internal("no whole message came: its frame is cut off or wrong");
  }
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    parsed = reader.status().ok() && request->ParseFromZeroCopyStream(&reader);
  }
  bytes.Clear();
  if (!parsed) return InvalidArgument("the request is not a ModelInferRequest message");
  return request;
}

WireResponse EncodeResponse(const inference::ModelInferResponse& head,
                            const std::vector<OutputTensor>& outputs,
                            const std::shared_ptr<const void>& storage) {
  WireResponse response;
  SliceBuilder builder(response);
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

grpc::ByteBuffer ToMessage(const WireResponse& response) {
  return grpc::ByteBuffer(response.slices.data(), response.slices.size());
}

grpc::ByteBuffer ToStreamMessage(const WireResponse& response) {
  std::string head;
  AppendFieldHead(head, inference::ModelStreamInferResponse::kInferResponseFieldNumber,
                  response.size);
  std::vector<grpc::Slice> slices;
  slices.reserve(response.slices.size() + 1);
  slices.emplace_back(head);
  slices.insert(slices.end(), response.slices.begin(), response.slices.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer ToStreamError(const std::string& message, const std::string& id) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(message);
  response.mutable_infer_response()->set_id(id);
  const grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace tactus
