// A server as the worker of a node (docs/cluster.md): it sends steps of its pipelines to other
// nodes as its agent says, and takes theirs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "cluster/steps/routed_steps.h"
#include "ensemble/ensemble_service.h"
#include "log_queue.h"
#include "serve_options.h"
#include "server/grpc/grpc_server.h"

namespace tactus {

// Null without --routes. `models` outlives it.
Expected<std::unique_ptr<RoutedSteps>> MakeRoutedSteps(const ServeOptions& options,
                                                       InferenceService& models, const Log& log);

// Reads the file whenever it changes, has `steps` follow it, and has the service serve the
// pipelines of which it speaks. What makes no sense is told, and the last that did holds. `steps`
// and `service` outlive it.
class RoutesWatch {
 public:
  RoutesWatch(const ServeOptions& options, RoutedSteps& steps, EnsembleService& service, Log log);

 private:
  std::jthread thread_;
};

// Measures the ways to other nodes once a second and tells them in a file beside the routes.
// `steps` outlives it.
class LinksWatch {
 public:
  LinksWatch(const ServeOptions& options, RoutedSteps& steps, Log log);

 private:
  std::jthread thread_;
};

// The port for other nodes' steps, with the cluster's certificates: models are run there, and
// neither loaded nor unloaded.
class PeerPort {
 public:
  // Null without --peer-tls. `models` outlives it.
  static Expected<std::unique_ptr<PeerPort>> Start(const ServeOptions& options,
                                                   InferenceService& models, const Log& log);
  ~PeerPort();

  std::uint16_t port() const { return port_; }
  // As GrpcServer::Stop.
  void Stop(std::chrono::milliseconds grace);

 private:
  class RunsOnly;
  PeerPort(std::shared_ptr<Access> access, GrpcOptions options, InferenceService& models);

  const std::shared_ptr<Access> access_;
  const std::unique_ptr<RunsOnly> service_;
  GrpcServer server_;
  std::uint16_t port_ = 0;
  std::jthread refresh_;
};

}  // namespace tactus
