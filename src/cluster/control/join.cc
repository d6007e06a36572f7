#include "cluster/control/join.h"

#include <chrono>

#include <grpcpp/grpcpp.h>

#include "base/whole_file.h"
#include "cluster/tls/authority.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"

namespace tactus {

Status JoinCluster(const std::string& controller, const std::filesystem::path& folder,
                   const std::string& token) {
  const auto authority =
      ReadWhole(folder / "authority.pem", "authority", "; copy it from the controller's folder");
  if (!authority) return std::unexpected(authority.error());
  const KeyRequest mine = MakeKeyRequest();
  const auto stub = control::Control::NewStub(
      grpc::CreateChannel(controller, ClientCredentials({.authority = *authority})));
  grpc::ClientContext context;
  constexpr auto kWithin = std::chrono::seconds(10);
  context.set_deadline(std::chrono::system_clock::now() + kWithin);
  control::JoinRequest asked;
  asked.set_token(token);
  asked.set_request_pem(mine.request);
  control::JoinReply reply;
  const grpc::Status status = stub->Join(&context, asked, &reply);
  if (!status.ok()) {
    return Fail(ErrorCode::kUnavailable, controller + ": " + status.error_message());
  }
  return KeepNode(folder, mine.key, reply.certificate_pem());
}

}  // namespace tactus
