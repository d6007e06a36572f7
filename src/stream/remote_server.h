// Another server, as a stream reaches it.
#pragma once

#include <string>

namespace tactus {

struct RemoteServer {
  std::string url;  // of its gRPC, HOST:PORT
  // A file of certificates (PEM), of which one must have signed the server's. Empty: no TLS.
  std::string ca;
  // A file whose first line is a bearer token. Empty: none is sent.
  std::string token_file;
};

}  // namespace tactus
