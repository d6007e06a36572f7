// A front end of a site: a Runtime whose lanes are the workers, and whose policy runs what the
// central scheduler grants. It serves whatever models some worker has.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/tls/peer_tls.h"
#include "runtime/runtime.h"
#include "service/inference_service.h"
#include "service/observer.h"
#include "site/messages.h"

namespace tactus {

class SiteFrontEnd {
 public:
  struct Options {
    std::vector<std::string> schedulers;  // HOST:PORT
    PeerTls tls;
    int workers = 16;  // at most; as the schedulers have it
    std::size_t queue_capacity = 4096;
    std::size_t call_capacity = 16'384;
    std::size_t pending_bytes = std::size_t{1} << 30;
    Observer* observer = nullptr;  // outlives the front end; may be null
    Journal* journal = nullptr;    // likewise
    std::function<void(const std::string&)> say;
  };

  explicit SiteFrontEnd(Options options);
  ~SiteFrontEnd();  // Stop

  void Start();
  // Waits until a scheduler leads that has a worker, so that there is something to serve; false
  // where none did within `most`.
  bool AwaitModels(Duration most);
  // The model as its workers serve it now, once one does and it may be called here; kUnavailable
  // where none has within `most`.
  Expected<ModelSpec> AwaitModel(const std::string& model, Duration most);
  // Lets the calls that it has end within `grace`.
  void Stop(Duration grace = {});

  // What HTTP and gRPC speak to: the runtime's models, not ready while WhyNotReady says something;
  // a model is not ready, either, while no worker serves it.
  InferenceService& service();
  // Why calls cannot reach a worker now; nothing: they can. A scheduler counts as away when it has
  // not been heard for a second, so that a take-over is none.
  std::optional<std::string> WhyNotReady() const;
  // The models that it has served and that no worker serves now, in order; none while WhyNotReady
  // says something.
  std::vector<std::string> Unserved() const;
  // Whether the scheduler has a worker in that place, a lane of the runtime.
  bool HasWorker(LaneId lane) const;
  Runtime& runtime();
  Term term() const;  // that it follows; 0: nobody leads

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
