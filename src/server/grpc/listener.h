// Accepts gRPC's connections in its stead: gRPC 1.51 neither counts them nor listens again once
// there were no descriptors left (CVE-2023-4785).
#pragma once

#include <atomic>
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

  // At most `most` connections that were taken are open at once; one more is closed at once.
  Listener(std::size_t most, Take take) : most_(most), take_(std::move(take)) {}
  ~Listener() { Stop(); }

  // Binds and listens, but accepts nothing. Port 0: any free one. Returns the port; Unavailable
  // with the system's reason.
  Expected<std::uint16_t> Open(const std::string& address, std::uint16_t port);
  void Start();
  // Accepts no more. Idempotent.
  void Stop();

 private:
  // A socket's number on this machine, by which it is known after its descriptor was used again.
  struct Taken {
    int descriptor = -1;
    std::uint64_t socket = 0;
  };
  void Run();
  void Accept();
  bool Full();

  const std::size_t most_;
  const Take take_;
  int socket_ = -1;
  std::atomic<bool> stopped_{false};
  std::vector<Taken> taken_;  // of the thread
  std::thread thread_;
};

}  // namespace tactus
