// Accepts gRPC's connections in its stead: gRPC 1.51 neither counts them nor listens again once
// there were no descriptors left (CVE-2023-4785), and it takes the socket of another server.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/expected.h"

namespace tactus {

class Listener {
 public:
  // Takes a connected socket, for good; on the listener's thread.
  using Take = std::function<void(int descriptor)>;

  // At most so many connections that were taken are open at once, of all and of each client's
  // address; one more is closed at once.
  struct Limits {
    std::size_t all = 0;
    std::size_t of_client = 0;
  };
  // Hears of connections that were closed as too many, once a minute; may be empty.
  using Warn = std::function<void(const std::string&)>;

  Listener(Limits limits, Take take, Warn warn)
      : limits_(limits), take_(std::move(take)), warn_(std::move(warn)) {}
  ~Listener() { Stop(); }

  // Binds and listens, but accepts nothing. Port 0: any free one. Returns the port; Unavailable
  // with the system's reason. "unix:PATH": a Unix socket, whose clients count as one; 0. Takes the
  // place of a socket where nobody answers, and removes its own at the end.
  Expected<std::uint16_t> Open(const std::string& address, std::uint16_t port);
  void Start();
  // Accepts no more. Idempotent.
  void Stop();
  // After Stop: ends the connections that are open, behind what has been written to them.
  void Disconnect();

 private:
  using Clock = std::chrono::steady_clock;
  // A socket's number on this machine, by which it is known after its descriptor was used again.
  struct Taken {
    int descriptor = -1;
    std::uint64_t socket = 0;
    std::string client;
  };
  Status OpenPath(const std::string& path);
  void Run();
  void Accept();
  // Whether one more connection of the client is one too many.
  bool Full(const std::string& client);
  bool Beyond(const std::string& client) const;
  void WarnOf(const std::string& client);

  const Limits limits_;
  const Take take_;
  const Warn warn_;
  int socket_ = -1;
  std::string path_;         // of a Unix socket
  std::uint64_t inode_ = 0;  // of its file
  std::atomic<bool> stopped_{false};
  // Of the thread.
  std::vector<Taken> taken_;
  Clock::time_point looked_;  // which of them are still open
  Clock::time_point warned_;
  std::thread thread_;
};

}  // namespace tactus
