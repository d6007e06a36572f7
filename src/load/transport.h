// The wire under the load generator: one implementation for HTTP, one for gRPC. A transport sends
// calls when it is told to and reports each exactly once; it knows nothing of schedules or figures.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/host_port.h"
#include "core/model.h"
#include "core/tensor.h"
#include "load/inputs.h"

namespace tactus {

using SteadyTime = std::chrono::steady_clock::time_point;

// What the server says about a model: its tensors, and from its configuration SLO and exits.
struct DescribedModel {
  Model model;  // slo 0: the server states none
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // By input, without the batch: sizes of open dimensions that the model takes, as the server says.
  std::map<std::string, Shape> sizes = {};
  bool emulated = false;  // the server says that its platform is: what it answers is made up
};

struct Call {
  std::uint64_t token = 0;             // the sender's; comes back in the answer
  std::uint32_t model = 0;             // index into the models given to Prepare
  std::uint32_t sample = 0;            // index into the model's samples
  SteadyTime meant{};                  // when it was meant to leave; of use only beside `due`
  SteadyTime due = SteadyTime::max();  // an answer after it is of no use
};

enum class Answered : std::uint8_t {
  kServed,     // with tensors
  kShed,       // 503, 429, RESOURCE_EXHAUSTED
  kExpired,    // 504, DEADLINE_EXCEEDED
  kCancelled,  // 499, CANCELLED
  kError,      // everything else, a lost connection included
};

// Views are good during the call only.
struct Answer {
  std::uint64_t token = 0;
  Answered kind = Answered::kError;
  SteadyTime received;
  std::string_view exit;  // the response's parameter tactus_exit; empty when it has none
  int batch = 0;          // tactus_batch_size
  std::span<const std::byte> first_output;
  std::string_view error;  // the server's text, or what went wrong on the way
};

// Called from the transport's threads, several at once.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void OnAnswer(const Answer&) noexcept = 0;
};

// Where TransportOptions::connections is 0.
inline constexpr int kHttpConnections = 256;
inline constexpr int kGrpcConnections = 1;

struct TransportOptions {
  std::string url;  // host:port, with or without a scheme; IPv6 in brackets
  // A file of certificates (PEM), of which one must have signed the server's. Empty: no TLS.
  std::string ca;
  // A file whose first line is a bearer token. Empty: none is sent.
  std::string token_file;
  // HTTP: connections at most. A call beyond them waits in the generator, on the clock; then it
  // tells the server what time it has left, or is not sent (kExpired) when it has none.
  // gRPC: connections, over which calls are spread.
  int connections = 0;                   // 0: kHttpConnections or kGrpcConnections
  std::chrono::microseconds timeout{0};  // per request, told to the server; 0: none
  std::uint32_t priority = 0;            // 0: the model's default
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "http" or "grpc"
  virtual Expected<DescribedModel> Describe(const std::string& model) = 0;
  // Makes the constant part of every request and opens connections. `inputs` outlive the transport.
  // `sink` gets the answers of every Send that follows.
  virtual Status Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) = 0;
  // From any thread, OnAnswer's too; never blocks on the network.
  virtual void Send(const Call& call) = 0;
  // Gives up what is in flight: each call still reports, as kCancelled or as it ended. When it
  // returns, the sink is called no more; Send is then an error.
  virtual void Stop() = 0;
  // Calls that were not sent since their time was over before they could be. After Stop.
  virtual std::int64_t unsent() const { return 0; }
};

Expected<std::unique_ptr<Transport>> MakeHttpTransport(const TransportOptions& options);
Expected<std::unique_ptr<Transport>> MakeGrpcTransport(const TransportOptions& options);
// `protocol` is "http" or "grpc".
Expected<std::unique_ptr<Transport>> MakeTransport(std::string_view protocol,
                                                   const TransportOptions& options);

struct Endpoint {
  HostPort place;
  std::optional<bool> tls;  // what the scheme says

  std::string text() const { return HostPortText(place.host, place.port); }
};
// "127.0.0.1:8000", "http://localhost:8000/", "grpc://[::1]:8001", "https://..." and "grpcs://...".
Expected<Endpoint> ParseUrl(std::string_view url);

// Where the server is, and what it wants to see.
struct TargetServer {
  Endpoint endpoint;
  std::string roots;  // PEM; empty: no TLS
  std::string token;  // empty: none
};
// InvalidArgument where the options do not go together, and the errors of base/server_trust.h.
Expected<TargetServer> TargetOf(const TransportOptions& options);
// What helps where the server knows not who asks (401), or knows and does not allow it (403).
std::string AccessRemedy(const TransportOptions& options, bool knows_not);

// Our keys in a model's configuration: slo_ms, priority, exits, exit_names, accuracy. Exits that
// nobody names are "1", "2", ...
// False when `value` cannot be read; an unknown key is nobody's error.
bool ApplyParameter(Model& model, std::string_view key, std::string_view value);

}  // namespace tactus
