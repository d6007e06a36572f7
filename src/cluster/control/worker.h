// The process that serves on a node: `tactus serve`, or `tactus front-end` where the node is a
// site. Its agent starts it, watches it, and starts it again when it ends, later each time. It
// outlives its agent: the next one finds it again.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/control/state_file.h"
#include "cluster/control/worker_ports.h"

namespace tactus {

struct WorkerOptions {
  std::filesystem::path program;       // tactus
  std::filesystem::path models;        // its repository
  std::vector<std::string> arguments;  // of its command, besides ours
  // The schedulers of the site that the node is, HOST:PORT; none: the process runs models itself.
  std::vector<std::string> schedulers = {};
  std::string address = "127.0.0.1";
  std::filesystem::path state;  // folder: worker.state, .log, .routes, .admin
  // Other nodes' calls come to a port of their own, with the certificates in this folder. Empty:
  // to the gRPC port, in plaintext.
  std::filesystem::path peer_tls;
  std::string peer_address = "127.0.0.1";  // of that port, as others reach it
  WorkerPorts ports = {};
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  // One that lives so long has not failed at its start, and the next one is started at once.
  std::chrono::milliseconds proven_after{10'000};
  int failing_after = 3;  // that ended sooner, in a row
};

struct WorkerEvents {
  // On the worker's thread. `adopted`: it ran already.
  std::function<void(const KeptWorker&, bool adopted)> up;
  std::function<void(const std::string& why, bool failing)> down;
};

class Worker {
 public:
  Worker(WorkerOptions options, WorkerEvents events);
  // Ends the watching; the process goes on.
  ~Worker();
  // Also ends the process. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// Where the worker takes calls of its agent, whatever TLS and tokens it asks of clients.
std::filesystem::path AdminSocketIn(const std::filesystem::path& state);
// The socket's folder, this user's alone.
Status MakeAdminFolder(const std::filesystem::path& state);

// The models that a worker holds, and what it is asked to do, by KServe's repository calls over
// gRPC.
class WorkerCalls {
 public:
  explicit WorkerCalls(const std::filesystem::path& socket);
  ~WorkerCalls();

  Expected<std::vector<std::string>> Loaded();
  Status Load(const std::string& model);
  Status Unload(const std::string& model);
  // Calls that reached each model since it was loaded, whatever became of them.
  Expected<std::vector<std::pair<std::string, std::uint64_t>>> Counts();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
