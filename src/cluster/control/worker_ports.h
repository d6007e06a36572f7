// The ports of an agent's worker, as the user names them: --http-port, --grpc-port and
// --metrics-port among the worker's own options, and HOST:PORT for other nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/control/state_file.h"

namespace tactus {

// 0: the worker takes a free one when it first starts, and keeps it.
struct WorkerPorts {
  std::uint16_t http = 0;
  std::uint16_t grpc = 0;
  std::uint16_t metrics = 0;
  std::uint16_t peer = 0;

  bool operator==(const WorkerPorts&) const = default;
};

// Takes the ports out of `arguments`. An error for a port that is none, for one that has two uses,
// and for options that the agent itself gives its worker, `own`, which would be given twice.
Expected<WorkerPorts> TakeWorkerPorts(std::vector<std::string>& arguments,
                                      const std::vector<std::string>& own);

struct PeerAddress {
  std::string host;
  std::uint16_t port = 0;  // 0: any free one
};
// HOST or HOST:PORT, of --peer-address; an IPv6 address with a port in brackets.
Expected<PeerAddress> ParsePeerAddress(const std::string& text);

// The ports to start a worker with: as named, else those of the last one.
WorkerPorts PortsToStartWith(const WorkerPorts& named, const KeptWorker& last);
// Whether a worker that runs has the ports that are named.
bool HasPorts(const KeptWorker& worker, const WorkerPorts& named);

}  // namespace tactus
