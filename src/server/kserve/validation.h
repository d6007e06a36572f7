// From a message of either protocol to a call that the runtime takes: all checks of a client's
// request against the model lie here, so that HTTP and gRPC refuse the same things in the same
// words.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/request.h"
#include "service/inference_service.h"

namespace tactus {

// An input as the client sent it: views into the request. `data` is dense, row-major, little
// endian; each BYTES element is a 32-bit length and that many bytes.
struct InputMessage {
  std::string_view name;
  std::string_view datatype;  // "FP32"
  Shape shape;
  std::span<const std::byte> data;
  // Why the data could not be read, where the client wrote it as text: told where name, type and
  // shape are the model's, since a mistake in those explains it.
  std::optional<Error> wrong_data = std::nullopt;
};

// For a shape that stands for more elements, or more bytes, than there can be.
std::unexpected<Error> TooManyElements(const InputMessage& input);
// Bytes of that many elements of a fixed size, or InvalidArgument where they are more than 2^63
// - 1.
Expected<std::int64_t> ByteSize(const InputMessage& input, DataType type, std::int64_t elements);

using ParameterValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>;
using Parameter = std::pair<std::string_view, ParameterValue>;

struct CallMessage {
  std::vector<InputMessage> inputs;
  std::vector<std::string_view> outputs;  // names; empty: all
  std::vector<std::uint32_t> classes;     // by entry of `outputs`: see InferCall
  std::vector<Parameter> parameters;      // of the request as a whole
  bool takes_granted = false;             // where parts of granted batches may come
};

// What the request's parameters ask for.
//   priority   integer from 0 to kLowestPriority; 1 is the highest, 0 the model's default
//   timeout    integer microseconds from the request's arrival; 0: none
//   tactus_granted  "TERM.BATCH.EXIT.ROWS": GrantedPart, from a front end of a site
//   tactus_step     true: of a pipeline's step elsewhere, whose time the caller has shared out; the
//              model's own SLO does not hold
//   triton_enable_empty_final_response, binary_data_output: boolean, known and carried elsewhere
//   sequence_id/start/end: refused when they ask for a sequence; other triton_*: refused as
//   reserved
// Parameters with other names are left alone.
struct CallParameters {
  std::uint32_t priority = 0;
  std::optional<Duration> timeout;
  std::optional<GrantedPart> granted;
  bool of_step = false;
};
Expected<CallParameters> ReadParameters(std::span<const Parameter> parameters);

// Checks names, types, shapes and sizes and puts the inputs into the model's order. Sets all of the
// call but `keepalive` and `reply`; `timeout` parameter and priority are taken from the message,
// the caller adds the limits of its protocol. Names in the call are the model's own.
Expected<InferCall> MakeCall(std::shared_ptr<const ModelSpec> model, const CallMessage& message,
                             std::chrono::steady_clock::time_point received);

// A version as it stands in a path or a message: digits, or empty for "the latest" (-1).
Expected<std::int64_t> ParseVersion(std::string_view text);

// Keys of the response's parameters, in both protocols.
inline constexpr std::string_view kParameterExit = "tactus_exit";               // string
inline constexpr std::string_view kParameterBatch = "tactus_batch_size";        // integer
inline constexpr std::string_view kParameterQueue = "tactus_queue_us";          // integer
inline constexpr std::string_view kParameterExecution = "tactus_execution_us";  // integer
// Boolean true, and only where a device is emulated: the times are a profile's, the outputs zeros.
inline constexpr std::string_view kParameterEmulated = "tactus_emulated";

// What the server metadata calls say, in both protocols. Clients made for Triton look for its name.
constexpr std::string_view ServerName(bool strict_triton) {
  return strict_triton ? "triton" : "tactus";
}
// What the status of a region says, whichever it is: `extension` is "cuda_shared_memory" or
// "system_shared_memory".
std::unexpected<Error> NoRegion(std::string_view extension, std::string_view name);

inline constexpr std::string_view kServerVersion = "0.1.0";
// Which of the extensions that not every server has it has.
struct SettingsServed {
  bool logging = false;
  bool trace = false;
};
std::vector<std::string_view> ServerExtensions(SettingsServed settings);

}  // namespace tactus
