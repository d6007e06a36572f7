// A connection from one process of a cluster to another.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <grpcpp/support/status.h>

#include "base/expected.h"
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
  int most_message = 0;      // bytes of one, either way
  bool keeps_alive = false;  // pings; the peer has to allow it
  // How long a ping may take on its way behind what is sent, and an attempt to connect.
  std::chrono::milliseconds ping_within{kPingWithinMs};
  std::chrono::milliseconds connect_within{1000};
};

// To HOST:PORT; not connected before it is used. Where the peer is away it is tried
// again several times a second.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address, const ChannelOptions& options);

// What a call's status says; kInternal of those that no process of a cluster gives.
ErrorCode ErrorCodeOf(grpc::StatusCode code);

}  // namespace tactus
