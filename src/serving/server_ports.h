// The ports of a server: KServe v2 over HTTP and gRPC, and the page of metrics, over any service.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/host_port.h"
#include "service/inference_service.h"
#include "service/refusal.h"
#include "serving/serve_options.h"
#include "serving/server_access.h"

namespace tactus {

class LiveFeed;
class LoadSampler;
class LogQueue;
class LoopLag;
class ModelFolders;
class StreamSet;
class WhatIf;

class ServerPorts {
 public:
  struct Parts {
    InferenceService& service;  // outlives the ports, as all of these do
    const ServerAccess& access;
    std::shared_ptr<LoopLag> lag = nullptr;  // of HTTP; may be null
    const LogQueue& logs;
    std::shared_ptr<ModelFolders> folders = nullptr;  // for files with a load; null: none are taken
    StreamSet* streams = nullptr;
    LiveFeed* live = nullptr;              // null: there is no live page
    WhatIf* what_if = nullptr;             // null: nobody answers what-ifs
    LoadSampler* sampler = nullptr;        // null: no advice
    std::function<std::string()> metrics;  // the page's text
    CountRefusal refused = [](RefusalReason) {};
    std::function<void()> late = {};  // told as BodyAdmission has it
    std::function<void(std::uint64_t)> spans_lost = [](std::uint64_t) {};
  };

  // Whether the three ports are to be had, the one for other nodes (`peers`, which may be none) and
  // the file of traces, before anything is loaded for them; an error says which is not. Nothing
  // listens afterwards: a client that comes too early is refused.
  static Status CheckFree(const ServeOptions& options, const std::optional<HostPort>& peers);
  // Listens on all three; an error says which port is not to be had.
  static Expected<std::unique_ptr<ServerPorts>> Start(const ServeOptions& options, Parts parts);
  ~ServerPorts();

  using Print = std::function<void(const std::string&)>;
  // Prints where they are, for people, and the line that programs wait for: "ready http=...". While
  // /v2/health/ready answers 503 it is "started http=... not_ready=a,b", with the models because
  // of which, and the other follows, from a thread of its own, once the service is ready.
  // `peers`: a port for other nodes of a cluster; 0: there is none.
  void Announce(std::uint16_t peers, Print print) const;

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
