// What all connections of a gRPC server share.
#pragma once

#include "server/grpc/call.h"
#include "server/grpc/grpc_server.h"
#include "server/net/net_context.h"

namespace tactus {

struct H2Context : NetContext {
  GrpcOptions options;
  RpcMethods methods;
};

}  // namespace tactus
