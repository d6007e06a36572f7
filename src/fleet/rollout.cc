#include "fleet/rollout.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/number_text.h"

namespace tactus {

const char* Name(Rollout::Phase phase) {
  switch (phase) {
    case Rollout::Phase::kPreparing:
      return "preparing";
    case Rollout::Phase::kCommitting:
      return "committing";
    case Rollout::Phase::kRetiring:
      return "retiring";
    case Rollout::Phase::kAbandoned:
      return "abandoned";
    case Rollout::Phase::kDone:
      break;
  }
  return "done";
}

Rollout::Rollout(RolloutPlan plan, RolloutOptions options, TimePoint now, Phase from)
    : plan_(std::move(plan)), options_(options), phase_(from), since_(now) {
  std::size_t in_waves = 0;
  for (const auto& wave : plan_.waves) in_waves += wave.size();
  CHECK(in_waves == plan_.slices.size(), "each node commits in one wave");
  for (const auto& [node, slice] : plan_.slices) nodes_[node];
}

void Rollout::Report(const std::string& node, const NodeReport& report, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.gone) return;
  Progress& at = found->second;
  at.committed = report.committed == plan_.id;
  at.prepared =
      at.committed ? report.committed_ready : report.prepared == plan_.id && report.prepared_ready;
  at.retired = at.committed && report.retired == plan_.id;
  at.old_in_flight = report.old_in_flight;
  at.dropped = report.prepared != plan_.id;
  if (phase_ == Phase::kPreparing && report.fetched > at.fetched) since_ = now;
  at.fetched = report.fetched;
  if (phase_ != Phase::kPreparing && phase_ != Phase::kCommitting) return;
  if (report.refused == plan_.id) Abandon(node, report.trouble);
  if (phase_ == Phase::kPreparing && report.failing && !at.prepared) Abandon(node, report.trouble);
  if (report.committed > plan_.id) Abandon(node, "it serves a later plan");
}

void Rollout::Gone(const std::string& node, const std::string& why) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.gone = true;
  if (phase_ == Phase::kPreparing || phase_ == Phase::kCommitting) Abandon(node, why);
}

void Rollout::Restarted(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Progress& at = found->second;
  at.prepared = at.committed = at.retired = at.sent = false;
  at.dropped = true;
}

void Rollout::Abandon(const std::string& node, std::string why) {
  if (phase_ == Phase::kAbandoned) return;
  phase_ = Phase::kAbandoned;
  culprit_ = node;
  why_ = std::move(why);
  Forget();
}

void Rollout::Forget() {
  for (auto& [name, at] : nodes_) at.sent = false;
}

bool Rollout::OldOnesEnded(TimePoint now) const {
  if (now >= since_ + options_.old_requests) return true;
  return std::ranges::all_of(
      nodes_, [](const auto& n) { return n.second.gone || n.second.old_in_flight == 0; });
}

void Rollout::Advance(TimePoint now, bool hold) {
  const auto all = [&](bool Progress::*what) {
    return std::ranges::all_of(nodes_,
                               [&](const auto& n) { return n.second.gone || n.second.*what; });
  };
  const auto late = [&](bool Progress::*what, Duration within) {
    if (now < since_ + within) return;
    const auto first = [&](bool Progress::*lacks) {
      return std::ranges::find_if(
          nodes_, [&](const auto& n) { return !n.second.gone && !(n.second.*lacks); });
    };
    auto slow = first(&Progress::prepared);  // for whom the others wait
    if (slow == nodes_.end()) slow = first(what);
    Abandon(slow->first, "it was not done within " + NumberText(ToSeconds(within)) + " s");
  };
  if (phase_ == Phase::kPreparing) {
    if (all(&Progress::prepared)) {
      phase_ = Phase::kCommitting;
      since_ = now;
      Forget();
    } else {
      late(&Progress::prepared, options_.prepare_within);
    }
  }
  if (phase_ == Phase::kCommitting) {
    if (all(&Progress::committed)) {
      phase_ = Phase::kRetiring;
      since_ = now;
      Forget();
    } else {
      late(&Progress::committed, options_.commit_within);
    }
  }
  held_ = hold;
  if (phase_ == Phase::kRetiring && !hold && all(&Progress::retired)) phase_ = Phase::kDone;
}

bool Rollout::Due(const Progress& at, TimePoint now) const {
  return !at.gone && (!at.sent || now >= at.sent_at + options_.resend);
}

std::vector<Rollout::Order> Rollout::Commits(TimePoint now) {
  std::vector<Order> orders;
  // A node that lost what it had prepared: all are to be ready before another route changes.
  bool ready = true;
  for (auto& [name, at] : nodes_) {
    if (at.prepared) continue;
    ready = false;
    if (!at.committed && Due(at, now))
      orders.push_back({name, PrepareOrder{plan_.slices.at(name)}});
  }
  for (const auto& wave : plan_.waves) {
    bool whole = true;
    for (const std::string& name : wave) {
      Progress& at = nodes_.at(name);
      whole = whole && at.committed;
      if (!ready || at.committed || !Due(at, now)) continue;
      orders.push_back({name, CommitOrder{plan_.id}});
    }
    if (!whole) break;
  }
  return orders;
}

std::vector<Rollout::Order> Rollout::Step(
    TimePoint now, bool hold, const std::map<std::string, std::set<std::string>>& keep) {
  Advance(now, hold);
  std::vector<Order> orders;
  if (phase_ == Phase::kCommitting) orders = Commits(now);
  for (auto& [name, at] : nodes_) {
    if (!Due(at, now)) continue;
    if (phase_ == Phase::kPreparing && !at.prepared) {
      orders.push_back({name, PrepareOrder{plan_.slices.at(name)}});
    } else if (phase_ == Phase::kAbandoned && !at.dropped) {
      orders.push_back({name, AbandonOrder{plan_.id}});
    } else if (phase_ == Phase::kRetiring && !hold && !at.retired && OldOnesEnded(now)) {
      const auto kept = keep.find(name);
      RetireOrder order{plan_.id, {}};
      if (kept != keep.end()) order.keep.assign(kept->second.begin(), kept->second.end());
      orders.push_back({name, std::move(order)});
    }
  }
  for (const Order& each : orders) {
    nodes_.at(each.node).sent = true;
    nodes_.at(each.node).sent_at = now;
  }
  return orders;
}

TimePoint Rollout::Next() const {
  TimePoint next = kNever;
  for (const auto& [name, at] : nodes_) {
    const bool open = phase_ == Phase::kPreparing    ? !at.prepared
                      : phase_ == Phase::kCommitting ? true
                      : phase_ == Phase::kRetiring   ? !at.retired && !held_
                      : phase_ == Phase::kAbandoned  ? !at.dropped
                                                     : false;
    if (open && !at.gone && at.sent) next = std::min(next, at.sent_at + options_.resend);
  }
  if (phase_ == Phase::kPreparing) next = std::min(next, since_ + options_.prepare_within);
  if (phase_ == Phase::kCommitting) next = std::min(next, since_ + options_.commit_within);
  // Until then the nodes' own counts decide.
  if (phase_ == Phase::kRetiring && !held_ && next == kNever) next = since_ + options_.old_requests;
  return next;
}

}  // namespace tactus
