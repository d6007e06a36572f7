// The agent of a node: it attends a controller, keeps a worker up, has it load what the plan says,
// and measures what reaches it. It drives NodeState in real time. Without a controller the last
// plan serves on, also after the agent was started again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/control/worker.h"
#include "cluster/models/model_store.h"
#include "cluster/tls/peer_tls.h"

namespace tactus {

struct AgentOptions {
  std::string node;                      // its name: a device of the fleet
  std::vector<std::string> controllers;  // HOST:PORT of each that may lead
  PeerTls tls;
  WorkerOptions worker;      // its `state` is the agent's folder too; its `models` is set by Start
  ModelStoreOptions models;  // its `state` too
};

class Agent {
 public:
  using Log = std::function<void(const std::string&)>;

  // Reads the state and starts all. kAlreadyExists where another process holds the folder.
  static Expected<std::unique_ptr<Agent>> Start(AgentOptions options, Log log);
  // Ends; the worker goes on.
  ~Agent();
  // Ends with the worker, whose calls under way have `grace`.
  void StopAll(std::chrono::milliseconds grace);

 private:
  struct Body;
  explicit Agent(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
