// The port of a server for other processes of its cluster: front ends of its site bring rows of
// granted batches, other nodes bring steps of pipelines. They run models here, and neither load nor
// unload them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "cluster/tls/peer_tls.h"
#include "platform/repeated_task.h"
#include "server/grpc/grpc_server.h"
#include "service/inference_service.h"
#include "serving/serve_options.h"

namespace tactus {

// ParseHostPort; InvalidArgument names `option`.
Expected<HostPort> PlaceOf(const std::string& option, const std::string& host_and_port);
// InvalidArgument where it is beyond this machine: what is said there would be in the clear, and
// everybody could say it.
Status CheckClear(const std::string& option, const std::string& host_and_port);
// Whether HOST:PORT is to be had, before anything is done for it; kUnavailable names `option`. A
// host's name is not looked up.
Status CheckListens(const std::string& option, const HostPort& place);
// As CheckClear of each of a list, in which none may be twice. `safe`: they may be beyond this
// machine.
Status CheckSchedulers(const std::string& option, const std::vector<std::string>& schedulers,
                       bool safe);
std::string HostName();

class PeerPort {
 public:
  // Where it will listen; nothing where nobody would come: without --schedulers and --peer-tls.
  static Expected<std::optional<HostPort>> PlaceFor(const ServeOptions& options,
                                                    const PeerTls& tls);
  // Null where nobody would come. `pipelines` takes the calls of `models` too, and those that enter
  // a pipeline half-way; both outlive it. `warn` hears of certificates that change.
  static Expected<std::unique_ptr<PeerPort>> Start(const ServeOptions& options, const PeerTls& tls,
                                                   InferenceService& models,
                                                   InferenceService& pipelines,
                                                   std::function<void(const std::string&)> warn);
  ~PeerPort();

  std::uint16_t port() const { return port_; }
  // HOST:PORT, as others reach it.
  const std::string& place() const { return place_; }
  // As GrpcServer::Stop.
  void Stop(std::chrono::milliseconds grace) { server_.Stop(grace); }

 private:
  class RunsOnly;
  PeerPort(GrpcOptions options, InferenceService& models, InferenceService& pipelines);

  const std::unique_ptr<RunsOnly> service_;
  GrpcServer server_;
  std::unique_ptr<RepeatedTask> follows_;  // the files of certificates
  std::uint16_t port_ = 0;
  std::string place_;
};

}  // namespace tactus
