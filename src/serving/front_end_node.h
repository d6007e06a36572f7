// A repository in front of a site (docs/site.md): its pipelines and host operators run in this
// front end, the models of their steps on the site's workers. With --routes the front end is the
// worker of a fleet's node, which is the whole site (docs/cluster.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "cluster/site/front_end.h"
#include "cluster/site/site_models.h"
#include "cluster/tls/peer_tls.h"
#include "engines/engine_shelf.h"
#include "server/metrics/serving_metrics.h"
#include "serving/ensembles.h"
#include "serving/host_lanes.h"
#include "serving/log_queue.h"
#include "serving/peer_port.h"
#include "serving/routes.h"
#include "serving/serve_options.h"

namespace tactus {

// An error for options of a repository or a node without --models.
Status CheckFrontEndNode(const ServeOptions& options);

class FrontEndNode {
 public:
  // `site`, which has started, and `metrics` outlive it.
  static Expected<std::unique_ptr<FrontEndNode>> Make(const ServeOptions& options,
                                                      const PeerTls& tls, SiteFrontEnd& site,
                                                      ServingMetrics& metrics, const Log& log);

  // Of the site's models, or of those that were loaded, and of the repository's.
  InferenceService& service() { return *service_; }
  // Follows its agent's routes, and lets other nodes in where they have certificates.
  Status Open();
  // Where they come in; 0: at the gRPC port, or nowhere.
  std::uint16_t peer_port() const { return peers_ ? peers_->port() : 0; }
  void AddTo(RuntimeReading& reading) const;

  // Other nodes' calls end within `grace`.
  void StopPeers(std::chrono::milliseconds grace);
  // Once nobody calls any more.
  void Stop();

 private:
  FrontEndNode(ServeOptions options, PeerTls tls, const Log& log);
  Status StartHost(InferenceService& models, ServingMetrics& metrics);
  InferenceService& Models() { return composed_ ? *composed_ : host_->service(); }

  const ServeOptions o_;
  const PeerTls tls_;
  const Log log_;
  EngineShelf engines_;
  std::unique_ptr<SiteModels>
      models_;  // with explicit control: of the site's those that are loaded
  std::unique_ptr<HostLanes> host_;
  std::unique_ptr<EnsembleService> composed_;  // ensembles that are steps; may be null
  std::unique_ptr<RoutedSteps> routed_;        // with --routes
  std::unique_ptr<EnsembleService> service_;
  std::unique_ptr<PeerPort> peers_;
  std::unique_ptr<RepeatedTask> links_;   // with --routes
  std::unique_ptr<RepeatedTask> routes_;  // with --routes
};

}  // namespace tactus
