#include "cluster/steps/grpc_peer.h"

#include <chrono>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "cluster/steps/peer_message.h"
#include "cluster/tls/channel.h"
#include "grpc_service.grpc.pb.h"

namespace tactus {
namespace {

constexpr int kMostMessage = 1 << 30;
constexpr auto kSaysWithin = std::chrono::seconds(2);
// A link that was away comes back to a connection whose next packet TCP sends after as long again,
// so the connection is given up and made anew: often enough that steps cross within a second of the
// link's return. A ping waits behind tensors; on a slow link those take their time.
constexpr auto kPingWithin = std::chrono::milliseconds(3000);
constexpr auto kConnectWithin = std::chrono::milliseconds(700);

// Keeps the threads on which gRPC calls back, which are the process's, for as long as it lives.
// gRPC 1.51 ends them with the last channel that has called, and where that ends on one of them, as
// a call's own may, it frees their queue twice. A server keeps them too; one without a port is
// nobody's.
void KeepCallbackThreads() {
  static grpc::Server* const kept = [] {
    static grpc::CallbackGenericService* const none = new grpc::CallbackGenericService;
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(none);
    return builder.BuildAndStart().release();
  }();
  (void)kept;
}

class GrpcPeer final : public Peer {
 public:
  explicit GrpcPeer(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(inference::GRPCInferenceService::NewStub(channel)) {}

  std::function<void()> Send(const InferCall& call, Duration left,
                             std::function<void(PeerEnd&&)> done) override;
  Status Probe() override;
  Expected<ModelSpec> Describe(const std::string& model) override;

 private:
  // Kept by the library's callback until the call has ended.
  struct Sent {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    std::shared_ptr<inference::ModelInferResponse> response =
        std::make_shared<inference::ModelInferResponse>();
    const InferCall* call = nullptr;
    std::function<void(PeerEnd&&)> done;
  };
  static void End(Sent& sent, const grpc::Status& status);

  const std::shared_ptr<inference::GRPCInferenceService::Stub> stub_;
};

std::function<void()> GrpcPeer::Send(const InferCall& call, Duration left,
                                     std::function<void(PeerEnd&&)> done) {
  auto sent = std::make_shared<Sent>();
  Put(call, left, sent->request);
  sent->call = &call;
  sent->done = std::move(done);
  sent->context.set_deadline(std::chrono::system_clock::now() + left);
  Sent* const kept = sent.get();
  stub_->async()->ModelInfer(
      &kept->context, &kept->request, kept->response.get(),
      [sent, stub = stub_](const grpc::Status& status) { End(*sent, status); });
  return [sent] { sent->context.TryCancel(); };
}

void GrpcPeer::End(Sent& sent, const grpc::Status& status) {
  const auto done = std::move(sent.done);  // whoever waits keeps what stops the call
  if (status.ok()) {
    return done(
        {.reply = ReplyOf(*sent.call, sent.response), .bytes = sent.response->ByteSizeLong()});
  }
  PeerEnd end{.reply = Fail(ErrorCodeOf(status.error_code()), status.error_message())};
  end.away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  end.elsewhere = end.away || status.error_code() == grpc::StatusCode::NOT_FOUND ||
                  status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  done(std::move(end));
}

Status GrpcPeer::Probe() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSaysWithin);
  inference::ServerLiveResponse response;
  const auto status = stub_->ServerLive(&context, {}, &response);
  if (!status.ok()) return Fail(ErrorCode::kUnavailable, status.error_message());
  return {};
}

Expected<ModelSpec> GrpcPeer::Describe(const std::string& model) {
  const auto failed = [](const grpc::Status& status) {
    return Fail(ErrorCode::kUnavailable, status.error_message());
  };
  inference::ModelMetadataResponse metadata;
  {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kSaysWithin);
    inference::ModelMetadataRequest request;
    request.set_name(model);
    const auto status = stub_->ModelMetadata(&context, request, &metadata);
    if (!status.ok()) return failed(status);
  }
  inference::ModelConfigResponse config;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSaysWithin);
  inference::ModelConfigRequest request;
  request.set_name(model);
  const auto status = stub_->ModelConfig(&context, request, &config);
  if (!status.ok()) return failed(status);
  return SpecOf(metadata, config);
}

}  // namespace

MakePeer GrpcPeers(PeerTls tls) {
  KeepCallbackThreads();
  return [tls = std::move(tls)](const std::string& node, const std::string& address) {
    return std::make_shared<GrpcPeer>(ChannelTo(address, {.tls = tls,
                                                          .node = node,
                                                          .most_message = kMostMessage,
                                                          .keeps_alive = true,
                                                          .ping_within = kPingWithin,
                                                          .connect_within = kConnectWithin}));
  };
}

}  // namespace tactus
