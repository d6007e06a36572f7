// The engine of a front end: a batch runs on a worker of the site, as one KServe call over gRPC
// that names the granted batch whose part it is. A worker that nobody reaches is a lost lane: its
// requests go back to their queue. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/tls/peer_tls.h"
#include "core/engine.h"
#include "site/grant_book.h"
#include "site/messages.h"

namespace tactus {

class RemoteEngine final : public Engine {
 public:
  // `tls`: as with the schedulers. `emulated`: the workers make their answers up, as one engine of
  // theirs. Lanes have `slots`. `book` outlives the engine.
  RemoteEngine(GrantBook& book, PeerTls tls, bool emulated, int slots);
  ~RemoteEngine() override;  // waits for the calls under way

  // Where the workers are now, by slot.
  void SetWorkers(const std::vector<WorkerPlace>& workers);

  EngineTraits traits() const override;
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override;
  void Unload(ModelHandle handle) override;
  void Submit(ModelHandle handle, const BatchJob& job, Completions& completions) noexcept override;
  void Terminate(BatchId batch) noexcept override;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
