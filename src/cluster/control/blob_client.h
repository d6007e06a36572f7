// Blobs from a cluster's controllers: from the one that leads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/models/model_fetch.h"
#include "cluster/tls/peer_tls.h"

namespace tactus {

// HOST:PORT of each that may lead. A connection of its own, so that beats do not wait behind a
// model's bytes.
std::unique_ptr<BlobSource> BlobsOfControllers(const std::vector<std::string>& controllers,
                                               const PeerTls& tls);

}  // namespace tactus
