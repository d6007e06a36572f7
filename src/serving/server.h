// The server of `tactus serve`: the models of a repository on this machine's lanes, the ensembles
// over them, and the ports that clients and other processes of a site or a cluster come to.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cluster/site/worker.h"
#include "platform/repeated_task.h"
#include "server/autoscale/load_sampler.h"
#include "server/live/live_feed.h"
#include "server/live/live_moments.h"
#include "server/metrics/serving_metrics.h"
#include "server/net/loop_lag.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"
#include "serving/served_device.h"
#include "serving/server_access.h"
#include "serving/server_ports.h"
#include "serving/service_stack.h"
#include "serving/what_if.h"
#include "stream/stream_set.h"

namespace tactus {

class Server {
 public:
  // Loads the models; nobody can call yet. Errors say which option or file is wrong, or what the
  // machine lacks. `logs` outlives the server.
  static Expected<std::unique_ptr<Server>> Make(const ServeOptions& options, const LogQueue& logs);

  // Listens. An error says which port is not to be had.
  Status Open();
  // A table of what it serves, for people.
  std::string Text() const;
  // Where it listens, for people and for programs (ServerPorts::Announce).
  void Announce(ServerPorts::Print print) const {
    ports_->Announce(stack_->peer_port(), std::move(print));
  }
  // What SIGHUP asks for.
  void TakePlanAgain();
  // No new calls; those under way end within the options' grace.
  void Stop();

 private:
  Server(const ServeOptions& options, const LogQueue& logs);
  Status Load();
  Status MakeSampler();
  LoadTotals ReadLoad() const;
  RuntimeReading Read() const;
  // Whether the lanes run the model.
  bool Runs(const std::string& name) const;

  const ServeOptions o_;
  const LogQueue& logs_;
  const Log log_;
  ServerAccess access_;
  std::unique_ptr<ServingMetrics> metrics_;
  std::unique_ptr<LiveMoments> moments_;
  std::unique_ptr<SiteWorker> site_;  // with --schedulers
  std::unique_ptr<ServedDevice> device_;
  std::unique_ptr<LoadSampler> sampler_;  // null: no advice
  std::unique_ptr<ServiceStack> stack_;
  const std::shared_ptr<LoopLag> lag_ = std::make_shared<LoopLag>();
  std::unique_ptr<StreamSet> streams_;  // to the service
  std::unique_ptr<LiveFeed> live_;
  std::unique_ptr<WhatIf> what_if_;  // null: this server does not decide alone which batches run
  std::unique_ptr<ServerPorts> ports_;
  std::unique_ptr<RepeatedTask> access_refresh_;
  std::unique_ptr<RepeatedTask> idle_memory_;
  std::unique_ptr<RepeatedTask> overloads_;
};

}  // namespace tactus
