// The server of `tactus front-end`: the models of a site's workers (docs/reference/site.md) and,
// with a repository, its pipelines and host operators over them. With --routes it is the worker of
// a fleet's node, which is the whole site (docs/reference/cluster.md).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "cluster/site/front_end.h"
#include "cluster/site/site_models.h"
#include "engines/engine_shelf.h"
#include "platform/repeated_task.h"
#include "server/live/live_feed.h"
#include "server/live/live_moments.h"
#include "server/metrics/serving_metrics.h"
#include "service/starting_service.h"
#include "serving/host_lanes.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"
#include "serving/server_access.h"
#include "serving/server_ports.h"
#include "serving/service_stack.h"

namespace tactus {

// An error for options of a repository or a node without --models.
Status CheckFrontEndNode(const ServeOptions& options);

class FrontEnd {
 public:
  // Listens, and waits a while for a scheduler with a worker; nobody is served yet. Errors say
  // which option or file is wrong. `logs` outlives it.
  static Expected<std::unique_ptr<FrontEnd>> Make(const ServeOptions& options,
                                                  const LogQueue& logs);

  // Serves.
  Status Open();
  // What it serves, for people.
  std::string Text() const;
  // Where it listens, for people and for programs (ServerPorts::Announce).
  void Announce(ServerPorts::Print print) const {
    ports_->Announce(stack_ ? stack_->peer_port() : 0, std::move(print));
  }
  // What SIGHUP asks for: nothing.
  void TakePlanAgain() {}
  // No new calls; those under way end within the options' grace.
  void Stop();

 private:
  FrontEnd(const ServeOptions& options, const LogQueue& logs);
  Status Start();
  Status StartHost();
  // What the live page shows: no model before it is open.
  LiveFeed::Parts LiveParts();
  InferenceService& service() const { return stack_ ? stack_->service() : site_->service(); }

  const ServeOptions o_;
  const ServeOptions own_;  // of what runs in this process
  const LogQueue& logs_;
  const Log log_;
  ServerAccess access_;
  ServingMetrics metrics_;
  LiveMoments moments_;
  StartingService door_;  // probes have an answer from the start on
  std::unique_ptr<SiteFrontEnd> site_;
  EngineShelf engines_;
  std::unique_ptr<SiteModels> models_;   // with explicit control: of the site's, those loaded
  std::unique_ptr<HostLanes> host_;      // with --models
  std::unique_ptr<ServiceStack> stack_;  // with --models
  std::atomic<bool> open_{false};
  std::unique_ptr<LiveFeed> live_;
  std::unique_ptr<ServerPorts> ports_;
  std::unique_ptr<RepeatedTask> access_refresh_;
  std::unique_ptr<RepeatedTask> follow_;
  std::unique_ptr<RepeatedTask> idle_memory_;
  std::unique_ptr<RepeatedTask> overloads_;
};

}  // namespace tactus
