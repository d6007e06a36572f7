#include "server/grpc/grpc_server.h"

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "server/grpc/credentials.h"
#include "server/grpc/external_scaler.h"
#include "server/grpc/inference_rpcs.h"
#include "server/grpc/listener.h"

namespace tactus {
namespace {

// Of the calls that gRPC answers itself, reflection above all, each has a thread while it lasts.
constexpr int kMostThreads = 64;
// While the server stops: how often is looked whether calls are left, and how long the answers of
// other methods have to get out.
constexpr std::chrono::milliseconds kLookPeriod{2};
constexpr std::chrono::milliseconds kLastAnswers{20};

// For the whole process, and before the first server is built: gRPC's plug-ins are switched on, and
// what protobuf says on stderr is switched off. It has a line for each string of a message that is
// not UTF-8, so that a client could fill a pipe that nobody reads, and hold a thread there.
void SetUpLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    google::protobuf::SetLogHandler(nullptr);
  });
}

void SetLimits(const GrpcOptions& options, grpc::ServerBuilder& builder) {
  // Tensors are large, and the 4 MB default breaks clients.
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<std::size_t>(options.max_body, INT_MAX)));
  builder.SetMaxSendMessageSize(INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // see Unpack
  grpc::ResourceQuota quota("tactus");
  quota.Resize(options.memory);
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, options.max_metadata);
  // Nodes of a cluster find out by pings that a link is away (cluster/tls/channel.h).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(options.least_ping_interval.count()));
  // Else gRPC allows a connection without calls one ping in two hours.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(options.idle_timeout.count()));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(options.handshake_timeout.count()));
  // Only reflection and health are synchronous; they need no thread for each core.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

}  // namespace

struct GrpcServer::Body {
  Body(GrpcOptions given, InferenceService& s, LoadSampler* l)
      : options(std::move(given)), service(s), sampler(l) {}

  // The server as a whole, and the one service it has.
  void TellHealth(bool ready) {
    server->GetHealthCheckService()->SetServingStatus("", ready);
    server->GetHealthCheckService()->SetServingStatus(
        inference::GRPCInferenceService::service_full_name(), ready);
  }
  // grpc.health.v1 pushes changes to those who watch it, so somebody has to notice them.
  void FollowReadiness(std::stop_token stop);
  // Where connections come from; accepts nothing yet. The port, or 0.
  Expected<std::uint16_t> Listen(grpc::ServerBuilder& builder);

  // Calls that have no answer at the end hear that the server is gone.
  void Drain(std::chrono::milliseconds grace);

  const GrpcOptions options;
  InferenceService& service;
  LoadSampler* const sampler;
  std::optional<SlowCalls> slow;
  std::optional<InferenceRpcs> rpcs;
  std::optional<ExternalScalerRpcs> scaler;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // the server calls into them
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  std::optional<Listener> listener;
  std::jthread readiness;
};

void GrpcServer::Body::FollowReadiness(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  std::optional<bool> told;
  while (!stop.stop_requested()) {
    const bool ready = service.Ready();
    if (told != ready) TellHealth(ready);
    told = ready;
    wake.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
  }
}

// Not gRPC's own: its clients take what it cancels, and what they send until they know of the end,
// for cancelled by themselves.
void GrpcServer::Body::Drain(std::chrono::milliseconds grace) {
  CallsNow& now = rpcs->now();
  now.stopping.store(true);
  const auto end = std::chrono::steady_clock::now() + grace;
  while (now.calls.load() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookPeriod);
  }
  std::this_thread::sleep_for(kLastAnswers);
  listener->Disconnect();
}

Expected<std::uint16_t> GrpcServer::Body::Listen(grpc::ServerBuilder& builder) {
  credentials =
      options.credentials != nullptr ? options.credentials : CredentialsOf(options.access);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
  Listener::Limits limits{options.max_connections, options.max_connections};
  if (options.limits) limits.of_client = options.limits->options().connections;
  listener.emplace(
      limits,
      [this](int descriptor) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = descriptor;
        acceptor->HandleNewConnection(&connection);
      },
      options.warn);
  return listener->Open(options.address, options.port);
}

GrpcServer::GrpcServer(GrpcOptions options, InferenceService& service, LoadSampler* sampler)
    : body_(std::make_unique<Body>(std::move(options), service, sampler)) {}

GrpcServer::~GrpcServer() { Stop(std::chrono::milliseconds(0)); }

Expected<std::uint16_t> GrpcServer::Start() {
  Body& body = *body_;
  SetUpLibraries();
  body.slow.emplace();
  body.rpcs.emplace(body.service, *body.slow,
                    CallGate(body.options.access, body.options.limits, body.options.refusals,
                             body.options.max_body, body.options.objectives,
                             body.options.takes_granted, body.options.takes_entered),
                    body.options.strict_triton, body.options.log_settings,
                    body.options.trace_settings, body.options.folders);

  grpc::ServerBuilder builder;
  const auto port = body.Listen(builder);
  if (!port) return port;
  builder.RegisterService(&*body.rpcs);
  builder.RegisterService(&body.scaler.emplace(body.sampler));
  SetLimits(body.options, builder);
  body.server = builder.BuildAndStart();
  if (body.server == nullptr) return Internal("gRPC did not start");
  body.TellHealth(body.service.Ready());
  body.readiness = std::jthread([&body](std::stop_token stop) { body.FollowReadiness(stop); });
  if (body.listener) body.listener->Start();
  return port;
}

void GrpcServer::Stop(std::chrono::milliseconds grace) {
  Body& body = *body_;
  if (body.server == nullptr) return;
  body.readiness.request_stop();
  body.readiness.join();
  if (body.listener) body.listener->Stop();
  body.slow->Refuse();
  body.server->GetHealthCheckService()->Shutdown();
  if (body.scaler) body.scaler->EndStreams();
  body.Drain(grace);
  body.server->Shutdown(std::chrono::system_clock::now());
  body.server->Wait();
  body.slow.reset();  // loads that were asked for end first
  body.server.reset();
  body.scaler.reset();
}

}  // namespace tactus
