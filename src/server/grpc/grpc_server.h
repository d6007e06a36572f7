// The gRPC front end: KServe v2 (inference.GRPCInferenceService), grpc.health.v1, reflection and,
// where the server samples its load, KEDA's externalscaler.ExternalScaler.
//
//   GrpcServer server({.port = 8001}, service);
//   Expected<std::uint16_t> port = server.Start();
//   ...
//   server.Stop(std::chrono::seconds(5));   // before the service stops answering
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "service/inference_service.h"
#include "service/refusal.h"

namespace tactus {

class Access;
class BodyAdmission;
class ClientLimits;
class LoadSampler;
class LogSettings;
class ModelFolders;
class Objectives;
class PacedRefusals;
class TraceSettings;

struct GrpcOptions {
  // I/O threads. Calls are read and answers written on them, inference runs elsewhere.
  int threads = 1;
  bool shares_cores = false;  // of the I/O threads with lanes
  // Loopback unless the operator says otherwise. "unix:PATH" is a Unix socket, without a port.
  std::string address = "127.0.0.1";
  std::uint16_t port = 8001;  // 0: any free port; Start says which
  // Triton's status codes and texts where they differ from the standard's or from sense.
  bool strict_triton = false;
  // Lets tools (grpcurl) list the services and their messages.
  bool reflection = true;
  // TLS and tokens; null: neither.
  std::shared_ptr<const Access> access;
  // Whoever gets in is a front end of a site, and may bring parts of granted batches.
  bool takes_granted = false;
  // Whoever gets in may be another node, which has steps of its pipelines run here as one.
  bool takes_entered = false;
  // What each client may have, shared by all front ends. Null: no limits.
  std::shared_ptr<ClientLimits> limits;
  // Says when a client hears that its call was refused. Null: at once.
  std::shared_ptr<PacedRefusals> refusals = nullptr;
  // Told of each inference call that is refused before the service has it, but for those of
  // `bodies`. Empty: nobody is.
  CountRefusal refused = nullptr;
  // Decides which messages of inference calls are read. Null: all.
  std::shared_ptr<BodyAdmission> bodies = nullptr;
  // What the names in x-llm-d-inference-objective mean. Null: nothing.
  std::shared_ptr<const Objectives> objectives;
  // Read and changed by LogSettings. Null: the server does not know that extension.
  std::shared_ptr<LogSettings> log_settings = nullptr;
  // Read and changed by TraceSetting. Null: as above.
  std::shared_ptr<TraceSettings> trace_settings = nullptr;
  // Where files that are sent with a load go. Null: the server takes none.
  std::shared_ptr<ModelFolders> folders = nullptr;
  // A larger message is refused.
  std::size_t max_body = std::size_t{64} << 20;
  // Where `limits` is null: bytes of messages being received or held, all connections together.
  std::size_t max_pending_bytes = std::size_t{1} << 30;
  // Calls under way on one connection; more wait at the client (HTTP/2).
  int max_streams = 4096;
  // One more takes the place of another without calls, one of the address that has most of them;
  // where all are busy it is closed as soon as it comes. So is one beyond `connections` of `limits`
  // that the client's address has open.
  std::size_t max_connections = 1024;
  // Hears of those, once a minute.
  std::function<void(const std::string&)> warn = nullptr;
  // A connection that has not shaken hands and sent its settings by then is closed; so is one whose
  // call has not sent its whole header so long after the first part.
  std::chrono::milliseconds handshake_timeout{10'000};
  // A call's message that is not there so long after its header, or a stream's after its first
  // bytes, ends the call; so does an answer of which the client takes nothing for so long.
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};
  // Bytes of one call's metadata, each field counted with 32 more as HTTP/2 does.
  int max_metadata = 16 << 10;
  // Connections whose keepalive pings come at shorter intervals end ("too_many_pings"), whether
  // they have calls or none. Nodes of a cluster ping each other every two seconds.
  std::chrono::milliseconds least_ping_interval{1000};
  // A connection without a call ends after so long; clients open another when they need it.
  std::chrono::milliseconds idle_timeout{300'000};
};

class GrpcServer {
 public:
  // `service` and `sampler` outlive the server; without a sampler ExternalScaler
  // only says how to get one.
  GrpcServer(GrpcOptions options, InferenceService& service, LoadSampler* sampler = nullptr);
  ~GrpcServer();  // Stop(0), if it was not stopped

  // Listens and starts the threads. Returns the port, 0 of a Unix socket. Unavailable when the port
  // is taken, with address and port.
  Expected<std::uint16_t> Start();

  // Tells health checks, accepts no more; calls under way have `grace` to end, and are cancelled
  // and answered so then. Returns when every call has had its reply from the service, which
  // therefore must still run. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
