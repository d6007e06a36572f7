// What all connections of a server share, whichever protocol they speak.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/access/access.h"
#include "server/access/client_limits.h"
#include "server/net/decode_threads.h"
#include "server/net/loop_lag.h"
#include "service/loop_delay.h"

namespace tactus {

struct NetContext {
  // From any thread: says that connections are too many, once a minute at most.
  void Warn(const std::string& line);

  // TLS and tokens; null: neither.
  std::shared_ptr<const Access> access;
  std::shared_ptr<ClientLimits> limits;
  // Told by how much the I/O threads are late. Null: nobody is.
  std::shared_ptr<LoopLag> lag;
  LoopDelay delay;                        // of whatever the service says to the I/O threads
  std::unique_ptr<DecodeThreads> decode;  // null once the server has stopped
  // Lanes run on the cores of the I/O threads.
  bool shares_cores = false;
  std::size_t max_connections = 1024;
  std::atomic<std::size_t> connections{0};
  std::atomic<bool> stopping{false};
  const char* protocol = "HTTP";
  std::function<void(const std::string&)> warn;  // null: nobody hears it
  std::atomic<std::chrono::steady_clock::rep> warned{0};
};

// Limits where the operator set none: of one client as much as of all.
std::shared_ptr<ClientLimits> NoClientLimits(std::size_t max_pending_bytes);

}  // namespace tactus
