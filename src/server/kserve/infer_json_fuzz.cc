// An infer request's body: JSON, tensors, and all that is checked before the runtime sees a call.
// The first byte chooses where the JSON is said to end.
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "server/kserve/classification.h"
#include "server/kserve/json_codec.h"

namespace tactus {
namespace {

std::shared_ptr<const ModelSpec> Model() {
  ModelSpec model;
  model.name = "m";
  model.max_batch = 4;
  model.inputs = {{"f", DataType::kFp32, {-1, -1}}, {"s", DataType::kBytes, {-1, -1}}};
  model.outputs = model.inputs;
  return std::make_shared<const ModelSpec>(std::move(model));
}

// An accepted call answered with its own inputs must have an answer that is whole.
void Answer(const InferCall& call, const ResponseForm& form) {
  InferReply reply;
  reply.model = call.model;
  std::size_t bytes = 0;
  std::vector<int> outputs = call.outputs;
  if (outputs.empty()) outputs = {0, 1};
  for (const int i : outputs) {
    const InputTensor& input = call.inputs[static_cast<std::size_t>(i)];
    reply.outputs.push_back({input.name, input.type, input.shape, {input.data}});
    bytes += input.data.size();
  }
  if (!Classify(call.classes, reply)) return;
  const auto response = EncodeInferResponse(reply, form);
  if (!response || !call.classes.empty()) return;
  CHECK(response->binary_bytes <= bytes, "more bytes came out than went in");
}

void Run(std::span<const std::byte> body, std::optional<std::size_t> json_length) {
  // Kept from run to run, as a server's is; with every second length, one of --strict-triton.
  static InferRequestDecoder ours;
  static InferRequestDecoder like_triton(true);
  InferRequestDecoder& decoder = json_length.value_or(0) % 2 == 0 ? ours : like_triton;
  static const std::shared_ptr<const ModelSpec> model = Model();
  auto request = decoder.Decode(body, json_length, nullptr);
  if (json_length == 0) request = RawInferRequest(*model, body, nullptr);
  if (!request) return;
  const auto call = MakeCall(model, request->message, {});
  if (call && CheckForm(*call, request->form)) Answer(*call, request->form);
}

}  // namespace
}  // namespace tactus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  // Exactly as much as the decoder may look at, so that one byte more is found.
  std::vector<std::byte> body(size - 1 + tactus::kBodyPadding);
  if (size > 1) std::memcpy(body.data(), data + 1, size - 1);
  std::optional<std::size_t> json_length;
  if (choice < 255) json_length = choice * 3;
  tactus::Run(std::span<const std::byte>(body).first(size - 1), json_length);
  return 0;
}
