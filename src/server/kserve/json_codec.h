// The inference call of KServe v2 over HTTP: JSON, optionally followed by binary tensors.
//
// In JSON, tensor data may be nested or flat, in row-major order; what counts is the number of
// elements. BYTES elements are strings. FP16 and BF16 have no JSON form. JSON has no NaN and no
// infinity: they are the strings "NaN", "Infinity" and "-Infinity" in answers, and in requests
// those or the same words without quotes, as Python writes them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "server/kserve/validation.h"
#include "service/inference_service.h"

namespace tactus {

// Bytes that must be readable behind every body handed to a decoder: the parser looks ahead.
inline constexpr std::size_t kBodyPadding = 64;

// How the client wants the answer.
struct ResponseForm {
  std::string id;
  bool binary = false;               // binary_data_output, or a raw request: for all outputs
  std::vector<signed char> outputs;  // by requested output: 1 binary, 0 JSON, -1 not said
  // Whether the i-th requested output is binary, or the i-th of all where none were requested.
  bool Binary(std::size_t i) const {
    return i < outputs.size() && outputs[i] >= 0 ? outputs[i] == 1 : binary;
  }
};

struct InferRequest {
  CallMessage message;  // views into the body, `keepalive` and the decoder
  ResponseForm form;
  std::shared_ptr<const void> keepalive;  // owns the tensors' bytes; becomes the call's
};

// Keeps the parser's memory from call to call: one for each thread that decodes.
class InferRequestDecoder {
 public:
  // `like_triton`: data may be nested in any way that has the shape's number of values, what is
  // said of data and shapes is Triton's, and binary_data_output is not heeded where outputs are
  // listed.
  explicit InferRequestDecoder(bool like_triton = false);
  InferRequestDecoder(InferRequestDecoder&&) noexcept;
  InferRequestDecoder& operator=(InferRequestDecoder&&) noexcept;
  ~InferRequestDecoder();

  // `json_length` is what Inference-Header-Content-Length says; without it all of the body is JSON.
  // `owner` owns the body. Names and parameters in the result are good until the next call.
  Expected<InferRequest> Decode(std::span<const std::byte> body,
                                std::optional<std::size_t> json_length,
                                std::shared_ptr<const void> owner);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// A raw request (header length 0): the body is the model's only input, one row of it. At most one
// dimension besides the batch may be open; its size follows from the body's.
Expected<InferRequest> RawInferRequest(const ModelSpec& model, std::span<const std::byte> body,
                                       std::shared_ptr<const void> owner);

// Refuses JSON for outputs that have no JSON form, before any work is done for them.
Status CheckForm(const InferCall& call, const ResponseForm& form);

struct EncodedResponse {
  std::string json;
  std::vector<std::span<const std::byte>> binary;  // follows the JSON; into the reply's storage
  std::size_t binary_bytes = 0;
  bool has_binary = false;  // an Inference-Header-Content-Length of json.size() is due
};
// `reply` must be good (reply.status) and outlive the parts. InvalidArgument where an output's
// bytes have no JSON form.
Expected<EncodedResponse> EncodeInferResponse(const InferReply& reply, const ResponseForm& form);

}  // namespace tactus
