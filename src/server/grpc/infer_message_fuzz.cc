// A ModelInferRequest as it comes over gRPC, and all that is checked before the runtime sees a
// call. The first byte says whether the message is packed and how, and whether another process of a
// site sent it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <google/protobuf/stubs/logging.h>

#include "base/check.h"
#include "grpc_service.pb.h"
#include "server/grpc/request_message.h"
#include "server/grpc/scripted_service_for_test.h"
#include "server/grpc/wire.h"

namespace tactus {
namespace {

constexpr std::size_t kMostUnpacked = 1 << 20;

// A model with tensors of several sizes of element, and strings.
void AddModel(ScriptedService& service) {
  auto all = std::make_shared<ModelSpec>();
  all->name = "all";
  all->version = 1;
  all->inputs = {{"i", DataType::kInt8, {-1}},
                 {"h", DataType::kFp16, {-1}},
                 {"l", DataType::kInt64, {-1, -1}},
                 {"s", DataType::kBytes, {-1}}};
  all->outputs = all->inputs;
  all->exits = {{.name = "1"}};
  service.Add(std::move(all));
}

void Run(const std::uint8_t* data, std::size_t size, int how) {
  static const std::unique_ptr<ScriptedService> service = [] {
    google::protobuf::SetLogHandler(nullptr);  // as the server does
    auto made = std::make_unique<ScriptedService>();
    AddModel(*made);
    return made;
  }();
  const auto bytes = std::make_shared<std::byte[]>(size);
  std::memcpy(bytes.get(), data, size);
  Message message{.data = bytes, .size = size};
  if ((how & 1) != 0) {
    const Coding coding = (how & 4) != 0 ? Coding::kGzip : Coding::kDeflate;
    if (!Unpack(coding, message, kMostUnpacked)) return;
    CHECK(message.size <= kMostUnpacked, "unpacked up to the limit");
  }
  CHECK(BytesBesideRaw(message) <= message.size, "a part of the whole");
  auto parsed = ParseInferRequest(message);
  if (!parsed) return;
  const auto call = CallFrom(*service, *std::move(parsed), {}, (how & 2) != 0, false);
  if (!call) {
    CHECK(!call.error().message.empty(), "a refusal says why");
    return;
  }
  std::uint64_t sum = 0;  // of all bytes, so that a span beyond the message is found
  for (const InputTensor& input : call->inputs) {
    for (const std::byte b : input.data) sum += static_cast<std::uint64_t>(b);
  }
  CHECK(sum < UINT64_MAX, "bytes are read");
}

}  // namespace
}  // namespace tactus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  tactus::Run(data + 1, size - 1, data[0]);
  return 0;
}
