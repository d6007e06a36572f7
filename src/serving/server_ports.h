// The ports of a server: KServe v2 over HTTP and gRPC, and the page of metrics, over any service.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/access/access.h"
#include "server/access/client_limits.h"
#include "service/inference_service.h"
#include "serving/serve_options.h"

namespace tactus {

class LoadSampler;
class LogQueue;
class LoopLag;
class ModelFolders;
class Objectives;
class StreamSet;

class ServerPorts {
 public:
  struct Parts {
    InferenceService& service;  // outlives the ports, as all of these do
    std::shared_ptr<Access> access;
    std::shared_ptr<ClientLimits> limits;
    std::shared_ptr<LoopLag> lag = nullptr;  // of HTTP; may be null
    std::shared_ptr<const Objectives> objectives = nullptr;
    const LogQueue& logs;
    std::shared_ptr<ModelFolders> folders = nullptr;  // for files with a load; null: none are taken
    std::size_t connections = 0;                      // at most, of HTTP and of gRPC each
    StreamSet* streams = nullptr;
    LoadSampler* sampler = nullptr;        // null: no advice
    std::function<std::string()> metrics;  // the page's text
    std::function<void()> unread = {};     // told of each call that is refused by its header
  };

  // Whether the three ports are to be had, before anything is loaded for them; an error says which
  // is not. Nothing listens afterwards: a client that comes too early is refused.
  static Status CheckFree(const ServeOptions& options);
  // Listens on all three; an error says which port is not to be had.
  static Expected<std::unique_ptr<ServerPorts>> Start(const ServeOptions& options, Parts parts);
  ~ServerPorts();

  // Where they are, for people, and the line that programs wait for: "ready http=...". While
  // /v2/health/ready answers 503 it is "started http=... not_ready=a,b", with the models because
  // of which, and the other follows once the service is ready.
  // `peers`: a port for other nodes of a cluster; 0: there is none.
  void PrintPlaces(std::uint16_t peers = 0) const;
  std::uint16_t grpc_port() const;

  // No new calls; those under way end within `grace`. The metrics stay. Calls `beside` meanwhile,
  // and `at_end`, which is to end what they wait for, when the grace is over or all have stopped.
  // Makes no thread.
  void Stop(std::chrono::milliseconds grace, const std::function<void()>& beside,
            const std::function<void()>& at_end = {});
  void StopMetrics();

 private:
  struct Body;
  explicit ServerPorts(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
