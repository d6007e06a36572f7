#include "cluster/control/join.h"

#include <chrono>
#include <memory>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "base/whole_file.h"
#include "cluster/tls/authority.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"

namespace tactus {
namespace {

constexpr auto kAnswersWithin = std::chrono::seconds(10);

// The certificate. kInvalidArgument: the controller that leads refuses.
Expected<std::string> AskToJoin(const std::string& controller,
                                const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                const std::string& token, const std::string& request) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub =
      control::Control::NewStub(grpc::CreateCustomChannel(controller, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswersWithin);
  control::JoinRequest asked;
  asked.set_token(token);
  asked.set_request_pem(request);
  control::JoinReply reply;
  const grpc::Status status = stub->Join(&context, asked, &reply);
  if (status.ok()) return reply.certificate_pem();
  const bool refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  return Fail(refused ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable,
              controller + ": " + status.error_message());
}

// The first answer that settles it; else what all said.
Expected<std::string> AskAll(const std::vector<std::string>& controllers,
                             const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                             const std::string& token, const std::string& request) {
  std::string said;
  for (const std::string& each : controllers) {
    auto answer = AskToJoin(each, credentials, token, request);
    if (answer || answer.error().code == ErrorCode::kInvalidArgument) return answer;
    said += (said.empty() ? "" : "; ") + answer.error().message;
  }
  return Fail(ErrorCode::kUnavailable, said);
}

}  // namespace

Status JoinCluster(const std::vector<std::string>& controllers, const std::filesystem::path& folder,
                   const std::string& token,
                   const std::function<bool(const std::string& why)>& again) {
  const auto credentials = TowardsAsStranger(folder, kControllerNode);
  if (!credentials) return std::unexpected(credentials.error());
  const KeyRequest mine = MakeKeyRequest();
  for (;;) {
    const auto certificate = AskAll(controllers, *credentials, token, mine.request);
    if (certificate) return KeepNode(folder, mine.key, *certificate);
    const bool later = certificate.error().code == ErrorCode::kUnavailable;
    if (!later || !again(certificate.error().message)) return std::unexpected(certificate.error());
  }
}

Status RenewCertificate(const std::vector<std::string>& controllers,
                        const std::filesystem::path& folder) {
  const auto tls = PeerTls::Open(folder);
  if (!tls) return std::unexpected(tls.error());
  const auto key = ReadWhole(folder / "node.key", "PEM file");
  if (!key) return std::unexpected(key.error());
  const auto mine = MakeKeyRequest(*key);
  if (!mine) {
    return InvalidArgument((folder / "node.key").string() + ": " + mine.error().message);
  }
  const auto certificate = AskAll(controllers, tls->Towards(kControllerNode), "", mine->request);
  if (!certificate) return std::unexpected(certificate.error());
  if (NodeOfCertificate(*certificate) != tls->node()) {
    return Internal("the controller signed another name than '" + tls->node() + "'");
  }
  return WriteWhole(*certificate, folder / "node.pem", "certificate");
}

}  // namespace tactus
