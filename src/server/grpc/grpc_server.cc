#include "server/grpc/grpc_server.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <google/protobuf/stubs/logging.h>

#include "platform/repeated_task.h"
#include "server/grpc/external_scaler.h"
#include "server/grpc/h2_connection.h"
#include "server/grpc/h2_context.h"
#include "server/grpc/health.h"
#include "server/grpc/inference_rpcs.h"
#include "server/grpc/reflection.h"
#include "server/net/net_server.h"

namespace tactus {
namespace {

// While the server stops: how often is looked whether calls are left, and how long clients have to
// take the last answers.
constexpr std::chrono::milliseconds kLookPeriod{2};
constexpr std::chrono::milliseconds kFarewell{1000};

// For the whole process: what protobuf says on stderr is switched off. It has a line for each
// string of a message that is not UTF-8, so that a client could fill a pipe that nobody reads, and
// hold a thread there.
void SilenceProtobuf() {
  static std::once_flag once;
  std::call_once(once, [] { google::protobuf::SetLogHandler(nullptr); });
}

std::shared_ptr<H2Context> ContextOf(GrpcOptions options) {
  auto context = std::make_shared<H2Context>();
  context->access = options.access;
  context->limits = options.limits;
  if (context->limits == nullptr) context->limits = NoClientLimits(options.max_pending_bytes);
  context->decode = std::make_unique<DecodeThreads>(1);
  context->shares_cores = options.shares_cores;
  context->max_connections = options.max_connections;
  context->protocol = "gRPC";
  context->warn = options.warn;
  context->options = std::move(options);
  return context;
}

}  // namespace

struct GrpcServer::Body {
  Body(GrpcOptions given, InferenceService& s, LoadSampler* sampler)
      : service(s),
        context(ContextOf(std::move(given))),
        options(context->options),
        gate(context->limits, options.refusals, options.max_body, options.objectives,
             options.takes_granted, options.takes_entered, options.bodies, options.refused),
        rpcs({.service = service,
              .slow = slow,
              .gate = gate,
              .strict_triton = options.strict_triton,
              .log_settings = options.log_settings,
              .trace_settings = options.trace_settings,
              .folders = options.folders}),
        scaler(std::in_place, sampler),
        net(context, std::max(options.threads, 1), "h2", [this](NetServer::Newcomer&& newcomer) {
          return std::make_shared<H2Connection>(std::move(newcomer), context);
        }) {
    rpcs.AddTo(context->methods);
    scaler->AddTo(context->methods, gate);
    health.AddTo(context->methods, gate);
    if (options.reflection) AddReflection(context->methods);
  }

  void AwaitCalls(std::chrono::milliseconds grace) const;

  InferenceService& service;
  const std::shared_ptr<H2Context> context;
  const GrpcOptions& options;
  const CallGate gate;
  TaskQueue slow{"slow calls"};
  Health health;
  const InferenceRpcs rpcs;
  std::optional<ExternalScalerRpcs> scaler;
  NetServer net;
  // grpc.health.v1 pushes changes to those who watch it, so somebody has to notice them.
  RepeatedTask readiness;
};

void GrpcServer::Body::AwaitCalls(std::chrono::milliseconds grace) const {
  const auto end = std::chrono::steady_clock::now() + grace;
  while (gate.now->calls.load() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookPeriod);
  }
}

GrpcServer::GrpcServer(GrpcOptions options, InferenceService& service, LoadSampler* sampler) {
  SilenceProtobuf();
  body_ = std::make_unique<Body>(std::move(options), service, sampler);
}

GrpcServer::~GrpcServer() { Stop(std::chrono::milliseconds(0)); }

Expected<std::uint16_t> GrpcServer::Start() {
  Body& body = *body_;
  body.health.Tell(body.service.Ready());
  auto port = body.net.Start(body.options.address, body.options.port);
  if (!port) {
    port.error().message = "gRPC " + port.error().message;
    return port;
  }
  body.readiness.Start("readiness",
                       Every(Millis(200), [&body, told = std::optional<bool>()]() mutable {
                         const bool ready = body.service.Ready();
                         if (std::exchange(told, ready) != ready) body.health.Tell(ready);
                       }));
  return port;
}

void GrpcServer::Stop(std::chrono::milliseconds grace) {
  Body& body = *body_;
  if (!body.net.started()) return;
  body.readiness.Stop();
  body.net.Close();
  body.slow.Close();
  body.health.Tell(false);
  body.scaler->EndStreams();
  // Whoever calls from here on hears that the server stops, on the connection that it has.
  body.gate.now->stopping.store(true);
  body.AwaitCalls(grace);
  body.context->stopping.store(true);
  body.net.Drain({}, kFarewell);
  body.net.Join();
  body.context->decode.reset();  // not where the last connection ends, which may be one of them
  body.scaler.reset();           // nobody follows the load any more
}

}  // namespace tactus
