// A server as a worker of a site (docs/site.md).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/site/worker.h"
#include "cluster/tls/peer_tls.h"
#include "log_queue.h"
#include "serve_options.h"
#include "service/inference_service.h"

namespace tactus {

class GrpcServer;

// How the processes of a site are to speak to each other: InvalidArgument where it would cross a
// network in the clear, or a place is not HOST:PORT, or is there twice.
struct SiteReach {
  const std::vector<std::string>& schedulers;
  const std::string& listen;  // empty: it does not
  const std::string& tls;     // a folder; empty: in the clear
  bool insecure = false;
};
Status CheckSite(const SiteReach& reach);

// Of HOST:PORT; brackets of IPv6 go.
struct SitePlace {
  std::string host;
  std::uint16_t port = 0;
};
SitePlace PlaceOf(const std::string& host_and_port);

class ServedSite {
 public:
  // Null without --schedulers.
  static Expected<std::unique_ptr<ServedSite>> Make(const ServeOptions& options, const Log& log);
  ~ServedSite();

  std::unique_ptr<Policy> MakePolicy(std::unique_ptr<Policy> own) {
    return worker_.MakePolicy(std::move(own));
  }
  // For RuntimeParts::place_granted.
  std::function<RowsPlace(const GrantedPart&, TimePoint)> Placing();

  // Opens the port and tells the schedulers what the runtime serves. Both outlive Stop.
  Status Start(Runtime& runtime, InferenceService& service);
  // Nothing is granted to it any more.
  void Leave() { worker_.Stop(); }
  // Closes the port; calls under way end within `grace`.
  void Stop(std::chrono::milliseconds grace);

 private:
  ServedSite(const ServeOptions& options, PeerTls tls, SiteWorker::Options worker);

  const ServeOptions& options_;
  const PeerTls tls_;
  SiteWorker worker_;
  std::unique_ptr<GrpcServer> port_;
};

}  // namespace tactus
