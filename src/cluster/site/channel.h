// A connection from one process of a site to another.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cluster/tls/peer_tls.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace tactus {

// Pings where nothing else is said: a peer that does not answer in three seconds is gone.
inline constexpr int kPingEveryMs = 2000;
inline constexpr int kPingWithinMs = 1000;

struct ChannelOptions {
  PeerTls tls;
  std::string node;          // whose process the peer has to be; empty: of any node of the cluster
  int most_message = 0;      // bytes of one that is received
  bool keeps_alive = false;  // pings; the peer has to allow it
};

// With TLS a worker is named NODE or NODE/..., so that nobody takes the place of another node's.
inline std::string_view NodeOfWorker(std::string_view worker) {
  return worker.substr(0, worker.find('/'));
}

// To HOST:PORT; not connected before it is used. Where the peer is away it is tried
// again several times a second.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address, const ChannelOptions& options);

}  // namespace tactus
