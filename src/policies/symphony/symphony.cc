#include "policies/symphony/symphony.h"

#include <algorithm>
#include <utility>

#include "core/feasible.h"

namespace tactus {

void Symphony::Prepare(const View& view) {
  const std::size_t models = view.models.size();
  groups_.Prepare(view, options_.delays);
  seen_.Prepare(view.profile);
  match_.Resize(models, groups_.group_of_lane(), groups_.size());
  for (const Lane& lane : view.lanes) match_.SetFree(lane.id, lane.HasFreeSlot());
  models_.resize(models, ModelState{.rate = ArrivalRate(options_.rate_window), .options = {}});
  offers_.assign(models * groups_.size(), Offer{});
  lost_.Resize(models);
  touched_.clear();
  touched_.reserve(models);
  if (options_.adaptive_lead) leads_.Prepare(view, groups_);
  for (std::size_t i = 0; i < models; ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    models_[i].options = options_.For(view.models[i].slo);
    models_[i].touched = false;
    SetLead(m);
    SetTargets(view, m);
    Touch(m);
  }
}

void Symphony::SetTargets(const View& view, ModelId m) {
  const ModelState& model = models_[m.value()];
  for (const std::uint32_t g : groups_.ServersOf(m)) {
    OfferOf(m, g).target = options_.Target(groups_.Costs(g, m), view.models[m.value()].slo,
                                           model.rate.per_second(), groups_.LanesIn(g));
  }
}

void Symphony::SetLead(ModelId m) {
  if (!options_.adaptive_lead) return;
  leads_.Update(m, models_[m.value()].rate.per_second(), groups_);
}

void Symphony::OnArrive(ModelId m, const Request& request) {
  ModelState& model = models_[m.value()];
  if (model.rate.Count(request.arrival)) {
    model.retarget = true;
    SetLead(m);
  }
  Touch(m);
}

void Symphony::Refresh(const View& view, ModelId m, std::uint32_t group, TimePoint now) {
  Offer& offer = OfferOf(m, group);
  CountExamined();
  CandidateOptions options = models_[m.value()].options;
  if (options_.adaptive_lead) options.lead = leads_.Of(m, group);
  const auto made =
      MakeCandidate(view.queues[m.value()], groups_.Costs(group, m), options, offer.target, now);
  if (!made) return match_.Erase(m, group);
  offer.candidate = groups_.Admit(group, m, *made);
  match_.Put(m, group, offer.candidate);
}

void Symphony::RefreshTouched(const View& view, TimePoint now) {
  for (const ModelId m : touched_) {
    ModelState& model = models_[m.value()];
    model.touched = false;
    if (std::exchange(model.retarget, false)) SetTargets(view, m);
    const RequestQueue& queue = view.queues[m.value()];
    TimePoint lost{Duration::min()};
    for (const std::uint32_t g : groups_.ServersOf(m)) {
      Refresh(view, m, g, now);
      if (!queue.empty()) lost = std::max(lost, queue.front().deadline - groups_.Costs(g, m)(1));
    }
    queue.empty() ? lost_.Erase(m.value()) : lost_.Put(m.value(), lost);
  }
  touched_.clear();
}

Decision Symphony::Decide(const View& view, TimePoint now) {
  seen_.Take(view.profile, [&](ModelId m) {
    groups_.Price(view, m);
    SetLead(m);
    models_[m.value()].retarget = true;
    Touch(m);
  });
  RefreshTouched(view, now);
  if (!lost_.empty() && lost_.top_key() < now) {
    return Drop{.model = ModelId{lost_.top()}, .count = 1, .reason = DropReason::kExpired};
  }
  for (;;) {
    const Match::Outcome outcome = match_.Next(now);
    switch (outcome.kind) {
      case Match::Outcome::Kind::kStale:
        Refresh(view, outcome.model, outcome.group, now);
        continue;
      case Match::Outcome::Kind::kNothing:
        return Wait{lost_.empty() ? outcome.until
                                  : std::min(outcome.until, lost_.top_key() + Nanos(1))};
      case Match::Outcome::Kind::kGrant:
        break;
    }
    const SymphonyCandidate& candidate = OfferOf(outcome.model, outcome.group).candidate;
    if (candidate.drop > 0) {
      return Drop{.model = outcome.model, .count = candidate.drop, .reason = DropReason::kShed};
    }
    return Dispatch{.model = outcome.model,
                    .exit = FinalExit(view.profile, outcome.model),
                    .batch = candidate.batch,
                    .lane = outcome.lane};
  }
}

}  // namespace tactus
