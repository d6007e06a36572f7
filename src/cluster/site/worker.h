// What makes a server a worker of a site: it tells the schedulers which models it serves and how
// long they take, and when a lane is free again. Rows come over a gRPC port of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/tls/peer_tls.h"
#include "core/policy.h"
#include "runtime/runtime.h"
#include "site/messages.h"

namespace tactus {

class SiteWorker {
 public:
  struct Options {
    std::vector<std::string> schedulers;  // HOST:PORT
    PeerTls tls;
    // This worker's name; no other of the site has it. With TLS it begins with its node: NODE/...
    std::string name;
    int lanes = 1;
    std::function<void(const std::string&)> say;
  };

  explicit SiteWorker(Options options);
  ~SiteWorker();  // Stop

  // The policy that the runtime is to have: what was granted, and else `own`.
  std::unique_ptr<Policy> MakePolicy(std::unique_ptr<Policy> own);
  // For RuntimeParts::place_granted.
  RowsPlace Place(const GrantedPart& part, TimePoint deadline);

  // Once the runtime serves at `address` (gRPC, HOST:PORT, as front ends reach it). Both outlive
  // Stop.
  void Start(Runtime& runtime, std::string address);
  void Stop();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
