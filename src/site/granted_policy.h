// The policy of a front end: it decides nothing, and runs what the central scheduler grants.
//
// Whatever waits in the front end's queues is offered; a grant runs the most urgent requests of the
// model, as many as were granted: usually the very ones. Where others are more urgent by now, they
// take the places, and the scheduler hears of it: what ran is withdrawn, what was left is offered
// again. When another scheduler leads, all that waits is offered to it.
//
// Lane i of the dispatcher is the worker with slot i. Unlike other policies it allocates: it feeds
// a network.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/learner.h"
#include "core/policy.h"
#include "site/grant_book.h"

namespace tactus {

class GrantedPolicy final : public Policy, public Learner {
 public:
  // Both outlive the policy.
  GrantedPolicy(GrantBook& book, OfferPort& port)
      : Policy({.name = "granted"}), book_(book), port_(port) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override;
  void OnLaneChange(const Lane& lane) override;
  // A part that was lost on its way: the scheduler need not wait for it.
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;

 private:
  struct Mark {
    bool refused = false;
    DropReason reason = DropReason::kExpired;
    std::uint32_t seen = 0;  // by the last Resync that met it
  };
  using Marks =
      std::unordered_map<std::uint64_t, Mark>;  // by RequestId: what waits and was offered
  struct Waiting {
    ModelKey key = 0;
    Marks marks;
    bool changed = false;       // its queue may be another than the marks say
    std::uint32_t refused = 0;  // marks that are
  };

  void TakeNotes(const View& view);
  void Resync(const View& view, ModelId m);
  void OfferOne(ModelId m, const Request& request);
  void Forget(Waiting& waiting, Marks::iterator at);
  // Nothing where the grant cannot be carried out: its rows are void then.
  std::optional<Decision> CarryOut(const View& view, const Grant& grant);
  void Void(const View& view, const Grant& grant, std::uint32_t rows);
  void SettleHeads(const View& view, ModelId m, const Grant& grant, int count);

  GrantBook& book_;
  OfferPort& port_;
  std::vector<Waiting> waiting_;  // by ModelId
  std::unordered_map<ModelKey, ModelId> ids_;
  std::deque<Grant> grants_;
  std::vector<ModelId> changed_;
  std::uint32_t round_ = 0;
  bool offering_ = false;  // somebody leads
  // The grant that the decision just given carries out.
  std::optional<GrantBook::Launched> launching_;
  std::unordered_map<std::uint64_t, BatchKey> running_;  // by BatchId
};

}  // namespace tactus
