// What one client may have of the server, asked for each inference call (access/client_limits.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include <grpcpp/server_context.h>

#include "base/expected.h"
#include "server/access/access.h"
#include "server/access/client_limits.h"
#include "server/access/refusal_pace.h"
#include "server/kserve/objectives.h"

namespace tactus {

// Inference calls that have no answer yet, and whether new ones are still taken. A call counts
// first and looks then.
struct CallsNow {
  std::atomic<std::size_t> calls{0};
  std::atomic<bool> stopping{false};
};

class CallGate {
 public:
  // A place for one call and its bytes; given back at the end of the last copy.
  using Place = std::shared_ptr<const void>;

  // Null access: no tokens; null limits: no limits; null refusals: told at once.
  CallGate(std::shared_ptr<const Access> access, std::shared_ptr<ClientLimits> limits,
           std::shared_ptr<PacedRefusals> refusals, std::size_t max_message,
           std::shared_ptr<const Objectives> objectives, bool takes_granted, bool takes_entered)
      : max_message(max_message),
        takes_granted(takes_granted),
        takes_entered(takes_entered),
        objectives(std::move(objectives)),
        access_(std::move(access)),
        limits_(std::move(limits)),
        refusals_(std::move(refusals)) {}

  // Bytes of a message, also when unpacked.
  const std::size_t max_message;
  // Of the port of a site, where all callers are front ends.
  const bool takes_granted;
  // Of a port where other nodes of a cluster call.
  const bool takes_entered;
  // What the names in kObjectiveHeader mean; null: nothing.
  const std::shared_ptr<const Objectives> objectives;
  const std::shared_ptr<CallsNow> now = std::make_shared<CallsNow>();

  // Unavailable once the server stops.
  Status Open() const;
  // ResourceExhausted, in words for the client.
  Expected<Place> Enter(const grpc::CallbackServerContext& context, std::size_t bytes) const;
  // Calls `tell`, which refuses a call of so many bytes, at once or when it is time to
  // (access/refusal_pace.h), but before the client's own deadline.
  void Refuse(const grpc::CallbackServerContext& context, std::size_t bytes,
              std::function<void()> tell) const;

 private:
  const std::shared_ptr<const Access> access_;
  const std::shared_ptr<ClientLimits> limits_;
  const std::shared_ptr<PacedRefusals> refusals_;
};

}  // namespace tactus
