// Peers over KServe's gRPC protocol.
#pragma once

#include "cluster/steps/peer.h"
#include "cluster/tls/peer_tls.h"

namespace tactus {

// A peer's certificate must name the node for which it is taken.
MakePeer GrpcPeers(PeerTls tls);

}  // namespace tactus
