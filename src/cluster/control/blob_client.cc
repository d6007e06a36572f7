#include "cluster/control/blob_client.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"

namespace tactus {
namespace {

constexpr int kMostPiece = 1 << 20;
constexpr int kSilentMs =
    5000;  // a connection from which nothing comes is given up after twice that

bool IsAbsent(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::NOT_FOUND ||
         status.error_code() == grpc::StatusCode::UNIMPLEMENTED;  // an earlier version, or a spare
}

class ControllerBlobs final : public BlobSource {
 public:
  ControllerBlobs(const std::vector<std::string>& controllers, const PeerTls& tls) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMostPiece);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kSilentMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kSilentMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSilentMs);
    for (const std::string& each : controllers) {
      stubs_.push_back(control::Control::NewStub(
          grpc::CreateCustomChannel(each, tls.Towards(kControllerNode), arguments)));
    }
  }

  Status Read(const Digest& blob, std::uint64_t offset, const Take& take,
              const std::stop_token& stop) override {
    bool away = false;
    std::string said;
    for (std::size_t i = 0; i < stubs_.size(); ++i) {
      const std::size_t at = (last_ + i) % stubs_.size();
      bool some = false;
      Status taken;
      const grpc::Status status =
          ReadFrom(*stubs_[at], blob, offset, stop, [&](std::string_view bytes) -> Status {
            some = true;
            last_ = at;
            taken = take(bytes);
            return taken;
          });
      if (!taken || status.ok()) return taken;
      said += (said.empty() ? "" : "; ") + status.error_message();
      away = away || !IsAbsent(status);
      if (some) break;  // it goes on there
    }
    return Fail(away ? ErrorCode::kUnavailable : ErrorCode::kNotFound, said);
  }

 private:
  static grpc::Status ReadFrom(control::Control::Stub& stub, const Digest& blob,
                               std::uint64_t offset, const std::stop_token& stop,
                               const Take& take) {
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    control::BlobRequest request;
    request.set_digest(blob.text());
    request.set_offset(offset);
    const auto reader = stub.Fetch(&context, request);
    control::BlobPiece piece;
    while (reader->Read(&piece)) {
      if (!take(piece.data())) {
        context.TryCancel();
        break;
      }
    }
    return reader->Finish();
  }

  std::vector<std::unique_ptr<control::Control::Stub>> stubs_;
  std::size_t last_ = 0;  // that sent something
};

}  // namespace

std::unique_ptr<BlobSource> BlobsOfControllers(const std::vector<std::string>& controllers,
                                               const PeerTls& tls) {
  return std::make_unique<ControllerBlobs>(controllers, tls);
}

}  // namespace tactus
