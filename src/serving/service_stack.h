// What clients speak to, over the models of a runtime or of a site: host operators, ensembles that
// are steps of others, steps that run on other nodes, and ensembles; and where other nodes come in.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/steps/routed_steps.h"
#include "cluster/tls/peer_tls.h"
#include "ensemble/ensemble_service.h"
#include "platform/repeated_task.h"
#include "serving/host_lanes.h"
#include "serving/log_queue.h"
#include "serving/peer_port.h"
#include "serving/serve_options.h"

namespace tactus {

class ServiceStack {
 public:
  // All but `log` outlive the stack.
  struct Parts {
    InferenceService& models;   // that do not run on the host
    const Runtime& runtime;     // of those
    HostLanes* host = nullptr;  // over `models`; null: no model runs there
    const PeerTls& tls;
    Observer& observer;
    PipelineJournal* journal = nullptr;  // null: ensembles have none
    Log log;
  };

  // Whether --routes may be followed; before anything is loaded.
  static Status CheckRoutes(const ServeOptions& options);
  // Opens the ensembles: what can serve does. `options` outlives the stack.
  ServiceStack(const ServeOptions& options, Parts parts);

  // Of everything.
  InferenceService& service() { return *service_; }
  // Lets other nodes in and, with --routes, follows the agent's routes and measures the ways to
  // other nodes. An error where --peer-listen is not to be had.
  Status Open();
  // Where other processes come in; 0: at the gRPC port, or nowhere.
  std::uint16_t peer_port() const { return peers_ ? peers_->port() : 0; }
  // HOST:PORT, as others reach it; empty where there is no such port.
  std::string peer_place() const { return peers_ ? peers_->place() : ""; }
  // Adds what the host's lanes hold, and the steps on other nodes.
  void AddTo(RuntimeReading& reading) const;
  // Routes stay as they are, and other nodes' calls end within `grace`.
  void StopPeers(std::chrono::milliseconds grace);

 private:
  // Of all models but ensembles, save those that are steps of others.
  InferenceService& Models() const { return composed_ ? *composed_ : models_; }

  const ServeOptions& o_;
  HostLanes* const host_;
  const PeerTls& tls_;
  const Log log_;
  InferenceService& models_;
  std::unique_ptr<EnsembleService> composed_;  // ensembles that are steps; may be null
  std::unique_ptr<RoutedSteps> routed_;        // with --routes
  std::unique_ptr<EnsembleService> service_;
  std::unique_ptr<PeerPort> peers_;       // may be null
  std::unique_ptr<RepeatedTask> routes_;  // with --routes
  std::unique_ptr<RepeatedTask> links_;   // with --routes
};

}  // namespace tactus
