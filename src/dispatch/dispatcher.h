// The serving state machine: it owns the queues, the lanes and the running batches, and asks a
// policy what to do. It has no thread, no clock and no I/O: events come in with the instant at
// which they happened, commands go out through an Outbox. The simulator and the server drive the
// same one.
//
//   dispatcher.Arrive(model, request);                 // any number of events ...
//   dispatcher.Finish(lane, batch, report, now);
//   TimePoint wake = dispatcher.Step(now);             // ... then one step; ask again at `wake`
//
// Every request that Arrive is given ends in exactly one Reject or one Complete. Nothing allocates
// after Configure. One thread owns a dispatcher.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/fixed_vector.h"
#include "core/learner.h"
#include "core/policy.h"
#include "dispatch/followed_profile.h"
#include "dispatch/journal.h"
#include "dispatch/outbox.h"

namespace tactus {

// What is served: the models, by ModelId, and what they cost. Immutable once configured.
struct ServedModels {
  std::vector<Model> models;
  ProfileTable profile;
};

// When a waiting request is given up without asking the policy.
enum class Expiry : std::uint8_t {
  kNever,       // the papers' experiments: every request runs, however late
  kPassed,      // at its deadline
  kUnmeetable,  // as soon as even the quickest run on the quickest lane would end after its
                // deadline
};

struct DispatcherOptions {
  // Requests that may wait for one model; the next one is rejected with kQueueFull. Bounds memory.
  std::size_t queue_capacity = 4096;
  Expiry expiry = Expiry::kUnmeetable;
  FollowOptions follow = {};  // whether the profile is corrected by measured latencies
};

class Dispatcher {
 public:
  // `policy`, `outbox` and `journal` outlive the dispatcher; `journal` may be null.
  Dispatcher(DispatcherOptions options, std::vector<LaneSpec> lanes, Policy& policy, Outbox& outbox,
             Journal* journal = nullptr);

  // Sets or replaces the served models. A model keeps its id while it is loaded; requests that wait
  // for one that is no longer loaded are rejected with kUnloaded, those that run still finish.
  // `profile` must cover every loaded model up to its max_batch.
  void Configure(std::shared_ptr<const ServedModels> served_models);

  // Sets or replaces the plan that the policy reads; null removes it. A lane serves the models that
  // the plan has there, as far as its spec allows them; a lane that is not in the plan serves none.
  void Adopt(std::shared_ptr<const Plan> plan);

  // request.arrival is the instant; ids must rise.
  void Arrive(ModelId model, const Request& request);
  // A batch ended. `now` is when the dispatcher learnt of it. If the batch was lost with its lane,
  // the lane is closed until SetLaneOpen opens it.
  void Finish(LaneId lane, BatchId batch, const BatchReport& report, TimePoint now);
  // The client has left. Unknown ids (already answered) are ignored.
  void Cancel(ModelId model, RequestId request);
  // A closed lane takes no new batch; those that run there still finish.
  void SetLaneOpen(LaneId lane, bool open);
  // Whether the lane holds the model. It does until it is told otherwise, and takes no batch of a
  // model that it does not hold. What it was told ends when the model is no longer loaded.
  void SetLaneHolds(LaneId lane, ModelId model, bool holds);
  // Makes another lane of a closed one on which nothing runs, on the same device.
  void SetLaneShare(LaneId lane, LaneClass lane_class, double fraction);

  // Expires what is unmeetable, then runs the policy until it waits. Returns when to step again if
  // nothing happens before; kNever when only an event can matter.
  TimePoint Step(TimePoint now);

  View view() const { return {served_models_->models, queues_, lanes_, profile(), plan_.get()}; }
  std::size_t waiting() const { return waiting_; }  // requests in all queues
  std::size_t running() const { return running_; }  // batches on all lanes

 private:
  struct Slot {  // a place in a lane; its requests until the batch is finished
    BatchId id;
    Batch batch;
    FixedVector<Request> requests;
    bool used = false;
    bool preempted = false;
    bool aborting = false;  // Abort was asked for
    bool orphaned = false;  // its model was unloaded; the id may mean another one by now
    bool alone = false;     // no other batch has run on its lane since it began
    Duration profiled{};    // what the profile expected of it
  };

  // Ends the process for a dispatch that no correct policy decides.
  void Validate(const Dispatch& dispatch) const;
  void CarryOut(const Dispatch& dispatch, TimePoint now);
  void CarryOut(const Drop& drop);
  void CarryOut(const Preempt& preempt);
  void ExpireUnmeetable(TimePoint now);
  // Expires the requests of this batch that it would answer late. False when there are none.
  bool ExpireUnmeetableOf(const Dispatch& dispatch, TimePoint now);
  void MakeRoom(const ServedModels& served_models);
  // The profile that policies see: that of the served models, or the corrected one.
  const ProfileTable& profile() const {
    return followed_ ? followed_->table() : served_models_->profile;
  }
  void FindQuickest();
  void FindQuickest(ModelId model);
  void Follow(const Slot& slot, const Lane& lane, const BatchReport& report, TimePoint now);
  void TakeProfile();
  void TakeReserve();
  void TakeRatio(ModelId model, LaneClass lane_class, TimePoint now);
  // Works out which models each lane serves; true if that changed.
  bool PlaceModels();
  void DropUnloaded();
  void Requeue(const Slot& slot);
  void Abort(Slot& slot);
  // Takes the first `count` out of the queue and rejects them.
  void RejectFront(ModelId model, int count, DropReason reason);
  // The last instant at which the request can still be started in time; kNever with Expiry::kNever.
  TimePoint LatestStart(ModelId model, const Request& request) const;
  Slot* FindSlot(LaneId lane, BatchId batch);
  Slot& FreeSlot(LaneId lane);
  bool CancelRunning(ModelId model, RequestId request);
  void Write(const JournalRecord& record) {
    if (journal_ != nullptr) journal_->Append(record);
  }

  const DispatcherOptions options_;
  Policy& policy_;
  Learner* const learner_;  // the policy as one; null: it does not learn
  Outbox& outbox_;
  Journal* const journal_;

  std::shared_ptr<const ServedModels> served_models_;
  std::optional<FollowedProfile> followed_;  // where options_.follow.on
  std::shared_ptr<const Plan> plan_;
  std::vector<RequestQueue> queues_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Slot>> slots_;       // by LaneId
  std::vector<ModelSet> allowed_;              // by LaneId: of its spec
  std::vector<std::vector<ModelId>> lacking_;  // by LaneId: what it does not hold
  // By ModelId: over the lanes that may run it, whatever the plan, for the next one may have it
  // there; Duration::max() where none may.
  std::vector<Duration> quickest_;
  std::uint64_t next_batch_ = 0;
  std::size_t waiting_ = 0;
  std::size_t running_ = 0;
  TimePoint next_expiry_ = kNever;  // no waiting request expires before this
};

}  // namespace tactus
