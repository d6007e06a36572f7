// A site's scheduler on the network: the gRPC service Site over one SiteScheduler, which a thread
// of its own drives. It is also a peer of the other schedulers in its list, whose beats it watches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/tls/peer_tls.h"
#include "site/site_scheduler.h"

namespace tactus {

// What a scheduler has done, for those who show it.
struct SiteReading {
  bool leads = false;
  Term term = 0;
  std::size_t peers = 0;
  std::size_t waiting = 0;  // requests; 0 where it watches
  std::size_t running = 0;  // batches
  std::vector<WorkerPlace> workers;
  std::vector<std::string> models;
  std::uint64_t offers = 0;  // since the start
  std::uint64_t grants = 0;  // batches
};

class SchedulerServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    PeerTls tls;
    // All schedulers of the site, in one order that all are told, HOST:PORT; empty: this is the
    // only one.
    std::vector<std::string> schedulers;
    std::uint32_t rank = 0;      // of this one among them
    Takeover::Options takeover;  // rank and number are set from the two above
    CentralScheduler::Options central;
    Duration beat = Millis(5);
    std::function<std::unique_ptr<Policy>()> policy;
    std::function<Journal*(Term)> journal;
    std::function<void(const std::string&)> say;
  };

  explicit SchedulerServer(Options options);
  ~SchedulerServer();  // Stop

  // Listens. Returns the port; Unavailable where that is not to be had.
  Expected<std::uint16_t> Start();
  void Stop();

  SiteReading reading() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
