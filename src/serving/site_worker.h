// A server as a worker of a site (docs/site.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/site/worker.h"
#include "cluster/tls/peer_tls.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// InvalidArgument, which names `option`, where one is not HOST:PORT, or twice there, or, unless
// `safe`, beyond this machine.
Status CheckSchedulers(const std::string& option, const std::vector<std::string>& schedulers,
                       bool safe);

class ServedSite {
 public:
  // Null without --schedulers.
  static Expected<std::unique_ptr<ServedSite>> Make(const ServeOptions& options, const PeerTls& tls,
                                                    const Log& log);

  std::unique_ptr<Policy> MakePolicy(std::unique_ptr<Policy> own) {
    return worker_.MakePolicy(std::move(own));
  }
  // For RuntimeParts::place_granted.
  std::function<RowsPlace(const GrantedPart&, TimePoint)> Placing();

  // Once the runtime serves at `place`, as front ends reach it. It outlives Leave.
  void Start(Runtime& runtime, std::string place) { worker_.Start(runtime, std::move(place)); }
  // Nothing is granted to it any more.
  void Leave() { worker_.Stop(); }

 private:
  explicit ServedSite(SiteWorker::Options worker) : worker_(std::move(worker)) {}

  SiteWorker worker_;
};

}  // namespace tactus
