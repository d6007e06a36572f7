// How a dispatcher learns how long batches take beside their profile, and tells its policy.
#include <algorithm>
#include <cmath>

#include "dispatch/dispatcher.h"

namespace tactus {

// A batch with neighbours tells of them, not of the machine: that is for policies that know what
// neighbours cost. One that failed or was stopped tells nothing.
void Dispatcher::Follow(const Slot& slot, const Lane& lane, const BatchReport& report,
                        TimePoint now) {
  if (report.status != BatchStatus::kOk || !slot.alone || slot.orphaned) return;
  if (report.ended < report.started) return;
  // Whatever a journal claims: an hour is longer than any ratio or reserve.
  const Duration took =
      report.started < report.ended - Seconds(3600) ? Seconds(3600) : report.ended - report.started;
  const ModelId model = slot.batch.model;
  if (followed_->Learn(model, lane.lane_class, slot.profiled, took, now)) {
    TakeRatio(model, lane.lane_class, now);
  }
  const Duration expected = slot.batch.expected_end - slot.batch.start;
  if (followed_->LearnStall(expected, took, now)) {
    Write({.kind = JournalRecord::Kind::kReserve,
           .id = static_cast<std::uint64_t>(followed_->reserve().count()),
           .at = now});
    TakeReserve();
  }
}

void Dispatcher::TakeProfile() {
  followed_->Configure(served_models_->profile);
  TakeReserve();
  for (ModelId::rep m = 0; m < served_models_->models.size(); ++m) {
    if (!served_models_->models[m].loaded) continue;
    for (int i = 0; i < served_models_->profile.lane_classes(); ++i) {
      const LaneClass c{static_cast<LaneClass::rep>(i)};
      outbox_.Followed(ModelId{m}, c, followed_->ratio(ModelId{m}, c));
    }
  }
}

// Half of its SLO is what a model spares at most.
void Dispatcher::TakeReserve() {
  for (ModelId::rep m = 0; m < served_models_->models.size(); ++m) {
    followed_->SetReserve(ModelId{m},
                          std::min(followed_->reserve(), served_models_->models[m].slo / 2));
  }
}

void Dispatcher::TakeRatio(ModelId model, LaneClass lane_class, TimePoint now) {
  const double ratio = followed_->ratio(model, lane_class);
  Write({.kind = JournalRecord::Kind::kRatio,
         .model = model.value(),
         .lane = lane_class.value(),
         .count = static_cast<std::uint32_t>(std::lround(1000 * ratio)),
         .at = now});
  FindQuickest(model);
  // What is unmeetable may have changed: look again at the next step.
  if (options_.expiry != Expiry::kNever && waiting_ > 0) next_expiry_ = TimePoint{};
  outbox_.Followed(model, lane_class, ratio);
}

}  // namespace tactus
