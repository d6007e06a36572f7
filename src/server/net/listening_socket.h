// The socket of a port, or of a file: bound and listening, and who is at the other end of one that
// was accepted.
#pragma once

#include <cstdint>
#include <string>

#include "base/expected.h"

namespace tactus {

// The client at the other end as limits know it: of IPv6 the network, since a client has all of its
// addresses; empty where it came over a Unix socket.
std::string ClientOfSocket(int descriptor);

class ListeningSocket {
 public:
  ListeningSocket() = default;
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  // Binds and listens, but accepts nothing. Port 0: any free one. Returns the port; Unavailable
  // with the system's reason. "unix:PATH": a Unix socket, whose clients count as one; 0. Takes the
  // place of a socket where nobody answers.
  Expected<std::uint16_t> Open(const std::string& address, std::uint16_t port);
  int family() const { return family_; }
  // The descriptor, which is the caller's from now on.
  int Release();
  // The file of a Unix socket, unless another server's stands there by now. Idempotent.
  void Remove();

 private:
  Status OpenPath(const std::string& path);

  int socket_ = -1;
  int family_ = 0;
  std::string path_;         // of a Unix socket
  std::uint64_t inode_ = 0;  // of its file
};

}  // namespace tactus
