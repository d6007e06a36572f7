// A Unix socket behind which whoever calls has every right: the file's folder says who that is.
#pragma once

#include <filesystem>
#include <string>

#include "base/expected.h"

namespace tactus {

// Whether a Unix socket can have that path. InvalidArgument.
Status FitsSocket(const std::filesystem::path& socket);

// Leaves the path free: removes a socket that a killed server left. Unavailable where another
// server answers at it, InvalidArgument where something else lies there.
Status FreeSocket(const std::filesystem::path& socket);

// Whether a server can listen there: the path fits into a socket's address, its folder is there
// and is this user's alone, and nobody listens there yet. InvalidArgument or Unavailable with what
// to do.
Status CheckAdminSocket(const std::filesystem::path& socket);

// As gRPC writes it, for servers and clients.
inline std::string GrpcAddressOf(const std::filesystem::path& socket) {
  return "unix:" + socket.string();
}

}  // namespace tactus
