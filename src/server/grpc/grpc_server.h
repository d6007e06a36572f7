// The gRPC front end: KServe v2 (inference.GRPCInferenceService), grpc.health.v1, reflection and,
// where the server samples its load, KEDA's externalscaler.ExternalScaler.
//
//   GrpcServer server({.port = 8001}, service);
//   Expected<std::uint16_t> port = server.Start();
//   ...
//   server.Stop(std::chrono::seconds(5));   // before the service stops answering
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.h"
#include "service/inference_service.h"

namespace tactus {

class LoadSampler;

struct GrpcOptions {
  // Loopback unless the operator says otherwise: there is no authentication.
  std::string address = "127.0.0.1";
  std::uint16_t port = 8001;  // 0: any free port; Start says which
  // Triton's status codes and texts where they differ from the standard's or from sense.
  bool strict_triton = false;
  // Lets tools (grpcurl) list the services and their messages.
  bool reflection = true;
};

class GrpcServer {
 public:
  // `service` and `sampler` outlive the server; without a sampler ExternalScaler
  // only says how to get one.
  GrpcServer(GrpcOptions options, InferenceService& service, LoadSampler* sampler = nullptr);
  ~GrpcServer();  // Stop(0), if it was not stopped

  // Listens and starts the threads. Unavailable when the port is taken, with address and port.
  Expected<std::uint16_t> Start();

  // Tells health checks, accepts no more; calls under way have `grace` to end and are cancelled
  // then. Returns when every call has had its reply from the service, which therefore must still
  // run. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
