#include "policies/symphony/symphony_plain_for_test.h"

#include <algorithm>
#include <utility>

#include "core/feasible.h"

namespace tactus {

void PlainSymphony::Prepare(const View& view) {
  groups_.Prepare(view, options_.delays);
  seen_.Prepare(view.profile);
  rates_.resize(view.models.size(), ArrivalRate(options_.rate_window));
  if (!options_.adaptive_lead) return;
  leads_.Prepare(view, groups_);
  for (std::size_t i = 0; i < view.models.size(); ++i) {
    leads_.Update(ModelId{static_cast<ModelId::rep>(i)}, rates_[i].per_second(), groups_);
  }
}

void PlainSymphony::OnArrive(ModelId m, const Request& request) {
  ArrivalRate& rate = rates_[m.value()];
  if (!rate.Count(request.arrival) || !options_.adaptive_lead) return;
  leads_.Update(m, rate.per_second(), groups_);
}

const Lane* PlainSymphony::FirstFree(const View& view, std::uint32_t group) const {
  for (const Lane& lane : view.lanes) {
    if (groups_.Of(lane.id) == group && lane.HasFreeSlot()) return &lane;
  }
  return nullptr;
}

TimePoint PlainSymphony::LostAfter(const View& view, ModelId m) const {
  TimePoint lost{Duration::min()};
  const TimePoint deadline = view.queues[m.value()].front().deadline;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    if (groups_.Serves(g, m)) lost = std::max(lost, deadline - groups_.Costs(g, m)(1));
  }
  return lost;
}

std::optional<PlainSymphony::Choice> PlainSymphony::Choose(const View& view, TimePoint now,
                                                           TimePoint& wake) const {
  std::optional<Choice> best;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const Lane* lane = FirstFree(view, g);
    if (lane == nullptr) continue;
    for (std::size_t i = 0; i < view.queues.size(); ++i) {
      const ModelId m{static_cast<ModelId::rep>(i)};
      if (view.queues[i].empty() || !groups_.Serves(g, m)) continue;
      const BatchCosts& costs = groups_.Costs(g, m);
      const Duration slo = view.models[i].slo;
      const int target = options_.Target(costs, slo, rates_[i].per_second(), groups_.LanesIn(g));
      CandidateOptions options = options_.For(slo);
      if (options_.adaptive_lead) options.lead = leads_.Of(m, g);
      const auto made = MakeCandidate(view.queues[i], costs, options, target, now);
      if (!made) continue;
      const SymphonyCandidate candidate = groups_.Admit(g, m, *made);
      if (candidate.exec > now) {
        wake = std::min(wake, candidate.exec);
      } else if (!best ||
                 std::pair(candidate.latest, m) < std::pair(best->candidate.latest, best->model)) {
        best = Choice{candidate, m, lane->id};
      }
    }
  }
  return best;
}

Decision PlainSymphony::Decide(const View& view, TimePoint now) {
  seen_.Take(view.profile, [&](ModelId m) {
    groups_.Price(view, m);
    if (options_.adaptive_lead) leads_.Update(m, rates_[m.value()].per_second(), groups_);
  });
  TimePoint lost = kNever;
  ModelId loser;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (view.queues[i].empty() || LostAfter(view, m) >= lost) continue;
    lost = LostAfter(view, m);
    loser = m;
  }
  if (lost < now) return Drop{.model = loser, .count = 1, .reason = DropReason::kExpired};
  TimePoint wake = lost == kNever ? kNever : lost + Nanos(1);
  const auto choice = Choose(view, now, wake);
  if (!choice) return Wait{wake};
  const auto& [candidate, model, lane] = *choice;
  if (candidate.drop > 0) {
    return Drop{.model = model, .count = candidate.drop, .reason = DropReason::kShed};
  }
  return Dispatch{.model = model,
                  .exit = FinalExit(view.profile, model),
                  .batch = candidate.batch,
                  .lane = lane};
}

}  // namespace tactus
