// TLS and tokens of the gRPC port: checked before a call reaches its handler, whichever service it
// is for.
#pragma once

#include <memory>
#include <string_view>

#include "server/access/scope.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace tactus {

class Access;

// What a token must grant for a method: "/inference.GRPCInferenceService/ModelInfer".
Scope ScopeOfMethod(std::string_view path);

// Null access: in the clear, for everybody. A certificate that changes holds for new connections.
// The server calls into the credentials: keep them as long as it.
std::shared_ptr<grpc::ServerCredentials> CredentialsOf(std::shared_ptr<const Access> access);

}  // namespace tactus
