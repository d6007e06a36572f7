#include "server/kserve/body_admission.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "platform/wall_clock.h"
#include "server/kserve/error_mapping.h"

namespace tactus {

struct BodyAdmission::Place::Gate {
  WallClock clock;
  std::mutex mutex;
  BodyGate gate;  // under the mutex
};

void BodyAdmission::Place::Leave(AdmissionWindow::End end) {
  const auto gate = std::exchange(gate_, nullptr);
  if (gate == nullptr) return;
  const std::lock_guard lock(gate->mutex);
  gate->gate.Leave(place_, end, gate->clock.Now());
}

void BodyAdmission::Place::Answered(const InferReply& reply, Duration way) {
  using End = AdmissionWindow::End;
  if (gate_ == nullptr) return;
  if (IsRefusal(reply.status)) return Leave(End::kInVain);
  if (!reply.status) return Leave(End::kNeither);
  // Where the I/O threads are far behind, its client has it late though it was in time for us.
  const bool met = reply.served.outcome == Outcome::kMet && gate_->clock.Now() + way <= place_.due;
  Leave(met ? End::kInTime : End::kInVain);
}

void BodyAdmission::OnLeaving(const InferReply& reply,
                              std::chrono::steady_clock::time_point received,
                              std::optional<Duration> limit) const {
  if (!late_ || !limit || !reply.status || reply.served.outcome != Outcome::kMet) return;
  if (std::chrono::steady_clock::now() - received > *limit) late_();
}

std::shared_ptr<BodyAdmission::Place::Gate> BodyAdmission::GateOf(const std::string& model) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Place::Gate>& gate = gates_[model];
  if (gate == nullptr) gate = std::make_shared<Place::Gate>();
  return gate;
}

Expected<std::shared_ptr<BodyAdmission::Place>> BodyAdmission::Enter(
    const InferenceService& service, std::string_view model, std::int64_t version,
    std::size_t bytes, std::optional<Duration> limit) {
  if (bytes < BodyGate::kLeastBytes) return nullptr;
  const auto spec = service.Find(model, version);
  if (!spec) return nullptr;
  TimeLimit time;
  time.Tighten(limit);
  if ((*spec)->slo > Duration{}) time.Tighten((*spec)->slo);
  if (!time.shortest()) return nullptr;
  auto gate = GateOf((*spec)->name);
  const TimePoint now = gate->clock.Now();
  const TimePoint due = now + std::max(*time.shortest(), Duration{});
  std::unique_lock lock(gate->mutex);
  const auto place = gate->gate.Enter(due, now);
  lock.unlock();
  if (place) return std::shared_ptr<Place>(new Place(gate, *place));
  if (unread_) unread_();
  return Fail(ErrorCode::kResourceExhausted,
              fmt::format("model '{}': refused before its body was read, since twice as many calls "
                          "are under way as are answered in time: try again later",
                          (*spec)->name));
}

}  // namespace tactus
