// What one client may have of the server, asked for each inference call (access/client_limits.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/expected.h"
#include "server/access/client_limits.h"
#include "server/access/paced_refusals.h"
#include "server/grpc/call.h"
#include "server/kserve/body_admission.h"
#include "server/kserve/objectives.h"
#include "service/infer_call.h"
#include "service/refusal.h"

namespace tactus {

// Inference calls that have no answer yet, and whether new ones are still taken. A call counts
// first and looks then.
struct CallsNow {
  std::atomic<std::size_t> calls{0};
  std::atomic<bool> stopping{false};
};

// A place for one call and its bytes; given back at the end of the last copy.
class CallPlace {
 public:
  explicit CallPlace(ClientLimits::Call call) : call_(std::move(call)) {}
  ~CallPlace() { call_.bytes->Give(bytes_); }
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;

  // From one thread at a time. ResourceExhausted, in words for the client.
  Status Take(std::size_t bytes);
  ByteBudget::Taken TryTake(std::size_t bytes);
  // The bytes of a large answer to the call count too, and its place is kept, until it is out.
  static void KeepFor(InferReply& reply, const std::shared_ptr<CallPlace>& place);

 private:
  ClientLimits::Call call_;
  std::size_t bytes_ = 0;
};

class CallGate {
 public:
  using Place = std::shared_ptr<CallPlace>;

  // Null refusals: told at once.
  CallGate(std::shared_ptr<ClientLimits> limits, std::shared_ptr<PacedRefusals> refusals,
           std::size_t max_message, std::shared_ptr<const Objectives> objectives,
           bool takes_granted, bool takes_entered, std::shared_ptr<BodyAdmission> bodies,
           CountRefusal refused)
      : max_message(max_message),
        takes_granted(takes_granted),
        takes_entered(takes_entered),
        objectives(std::move(objectives)),
        bodies(std::move(bodies)),
        limits_(std::move(limits)),
        refused_(std::move(refused)),
        refusals_(std::move(refusals)) {}

  // Bytes of a message, also when unpacked.
  const std::size_t max_message;
  // True for the port of a site, where all callers are front ends.
  const bool takes_granted;
  // True for a port where other nodes of a cluster call.
  const bool takes_entered;
  // What the names in kObjectiveHeader mean; null: nothing.
  const std::shared_ptr<const Objectives> objectives;
  // Decides which messages of inference calls are read; null: all.
  const std::shared_ptr<BodyAdmission> bodies;
  const std::shared_ptr<CallsNow> now = std::make_shared<CallsNow>();

  // An inference call is refused before the service has it. Enter has counted what it refuses.
  void Count(RefusalReason why) const {
    if (refused_) refused_(why);
  }
  // Unavailable once the server stops.
  Status Open() const;
  // ResourceExhausted, in words for the client.
  Expected<Place> Enter(const CallHead& head, std::size_t bytes) const;
  // A place for bytes alone, which counts as no call.
  Expected<Place> Hold(const CallHead& head, std::size_t bytes) const;
  // Calls `tell`, which refuses a call of so many bytes, at once or when it is time to
  // (service/refusal_pace.h), but while the client waits: for `patience`.
  void Refuse(const CallHead& head, std::size_t bytes, std::optional<Duration> patience,
              std::function<void()> tell) const;

 private:
  const std::shared_ptr<ClientLimits> limits_;
  const CountRefusal refused_;  // or empty
  const std::shared_ptr<PacedRefusals> refusals_;
};

}  // namespace tactus
