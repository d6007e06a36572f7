// grpc.reflection: which services the server has, and how their messages look.
#pragma once

#include "server/grpc/call.h"

namespace tactus {

// Knows the services whose methods are in `methods` when it is called.
void AddReflection(RpcMethods& methods);

}  // namespace tactus
