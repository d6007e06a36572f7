// One policy for whatever is served (docs/research/horizon.md): early exits or none, one lane or
// hundreds, priorities or not, less load than there is room for or several times as much. No
// options.
//
// Each model has a candidate on each kind of lane: the batch that its queue allows at the quickest
// exit, the instant from which it may go, and the one until which it may. It may go when it is
// full, or `lead` (demand.h) before nobody could join it any more: at once where lanes are few and
// shared, as late as Symphony's where they are many. A batch that has grown to nearly what its
// model's load sustains may also go where a lane is to spare (spare_lanes.h).
//
// Where all models have one exit and one priority, a free lane takes the candidate with the least
// latest start, in O(log models), and heads that hold a batch under its target are given up, which
// keeps the goodput up when there is too much to do. Otherwise a free lane for which some candidate
// is ready is given what a schedule of everything says (schedule.h): who goes first, at which exit,
// and who is left out.
//
// Who may run beside whom on a lane of several slots is Strait's question: a system that has such
// lanes is decided by the policy that is handed over for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/indexed_heap.h"
#include "core/learner.h"
#include "core/policy.h"
#include "policies/horizon/demand.h"
#include "policies/horizon/lane_kinds.h"
#include "policies/horizon/schedule.h"
#include "policies/horizon/spare_lanes.h"
#include "policies/match.h"

namespace tactus {

class Horizon final : public Policy, public Learner {
 public:
  // `beside` decides where lanes run several batches at once; it learns from them.
  Horizon(std::string name, std::unique_ptr<Policy> beside);

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override;
  void OnLaneChange(const Lane& lane) override;

  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;
  std::optional<LearnedState> Learned() const override { return learner_.Learned(); }
  Status Resume(const LearnedState& learned) override { return learner_.Resume(learned); }
  const PredictionErrors* prediction_errors() const override {
    return shared_ ? learner_.prediction_errors() : nullptr;
  }

 private:
  void Touch(ModelId m);
  void TouchAll();
  SymphonyCandidate& OfferOf(ModelId m, std::uint32_t kind) {
    return offers_[m.value() * kinds_.size() + kind];
  }
  std::optional<SymphonyCandidate> MakeOffer(const View& view, ModelId m, std::uint32_t kind,
                                             TimePoint now);
  void Refresh(const View& view, ModelId m, std::uint32_t kind, TimePoint now);
  void RefreshTouched(const View& view, TimePoint now);
  bool Grown(const Course& course, const Outlook& outlook, int batch) const;
  std::optional<Decision> TakeSpare(const View& view, TimePoint now);
  std::optional<Decision> TakeSpared(const View& view, std::uint32_t kind, TimePoint now);
  bool MostUrgent(const View& view, ModelId m, int batch) const;
  Decision TakeLeastLatest(const View& view, TimePoint now, TimePoint wake);
  Decision TakePlanned(const View& view, TimePoint now, TimePoint wake);
  bool MayGo(ModelId m, std::uint32_t kind, bool spare, TimePoint now);
  std::optional<Decision> Plan(const View& view, std::uint32_t kind, LaneId lane, bool spare,
                               TimePoint now);
  std::optional<Duration> Postponed(const PlannedBatch& batch, std::uint32_t kind, ExitId exit);
  Decision Launch(const Dispatch& dispatch);

  const std::unique_ptr<Policy> beside_;
  Learner& learner_;      // the same
  bool shared_ = false;   // some lane has several slots: beside_ decides
  bool few_ = false;      // models and lanes
  bool planned_ = false;  // some model has several exits, or somebody a priority of its own
  LaneKinds kinds_;
  RevisionsSeen seen_;
  Demand demand_;
  Schedule schedule_;
  Match match_;
  SpareLanes spare_;
  bool review_ = false;
  std::vector<SymphonyCandidate> offers_;      // by model, then kind; of size 0: none
  std::vector<IndexedHeap<TimePoint>> grown_;  // by kind: models whose batch has, by its latest
  std::vector<IndexedHeap<TimePoint>>
      spared_;                         // by kind: models that a flood is to spare, by latest
  std::vector<ModelId> passed_over_;   // in one question, to go later
  TimePoint postponed_ = kNever;       // the first instant at which one of these goes
  std::int64_t underway_ = 0;          // requests that wait or run, of all models
  std::vector<std::int64_t> waiting_;  // of them, by ModelId
  std::vector<int> running_;           // of them, by LaneId
  std::vector<bool> touched_;          // by ModelId: it is in changed_
  std::vector<ModelId> changed_;
  IndexedHeap<TimePoint> lost_;        // models by when their head is lost on every lane
  std::optional<Dispatch> launching_;  // decided, and not yet carried out
};

}  // namespace tactus
