// Peers over KServe's gRPC protocol.
#pragma once

#include <string>

#include "cluster/steps/peer.h"

namespace tactus {

// PEM texts of the cluster's authority and of this node; all empty: plaintext. A peer's certificate
// must name the node for which it is taken.
struct PeerTls {
  std::string authority;
  std::string certificate;
  std::string key;
};

MakePeer GrpcPeers(PeerTls tls);

}  // namespace tactus
