#include "site/site_scheduler.h"

#include <algorithm>
#include <utility>

namespace tactus {

SiteScheduler::SiteScheduler(Options options, TimePoint now)
    : options_(std::move(options)), takeover_(options_.takeover, now) {}

ToPeer& SiteScheduler::For(PeerId peer) {
  ToPeer& message = peers_[peer];
  if (!message.leads) {
    message.leads = true;
    message.term = takeover_.term();
    touched_.push_back(peer);
  }
  return message;
}

void SiteScheduler::AddWorkers(ToPeer& message) const {
  message.has_workers = true;
  message.workers = central_->workers();
  message.models = central_->models();
}

void SiteScheduler::Send(PeerId front_end, const Grant& grant) {
  if (peers_.contains(front_end)) For(front_end).grants.push_back(grant);
}

void SiteScheduler::Send(PeerId front_end, const Refusal& refusal) {
  if (peers_.contains(front_end)) For(front_end).refusals.push_back(refusal);
}

void SiteScheduler::OnConnected(PeerId peer, TimePoint) {
  peers_[peer];
  if (central_ != nullptr) AddWorkers(For(peer));
}

void SiteScheduler::OnMessage(PeerId peer, const FromPeer& message, TimePoint now) {
  if (!peers_.contains(peer)) return;
  takeover_.OnTerm(message.seen, now);
  if (!takeover_.leads()) StepDown();
  if (central_ == nullptr) return;
  for (const WorkerIntroduction& worker : message.join) {
    if (const Status added = central_->AddWorker(peer, worker, now); !added) {
      Say(added.error().message);
      For(peer).refused = added.error().message;
    }
  }
  // Reports first: they make room for what is offered.
  for (const BatchDone& done : message.done) central_->OnDone(peer, done, now);
  for (const VoidRows& rows : message.voids) central_->OnVoid(rows, now);
  for (const Offer& offer : message.offers) central_->OnOffer(peer, offer, now);
}

void SiteScheduler::OnClosed(PeerId peer, TimePoint now) {
  peers_.erase(peer);
  std::erase(touched_, peer);
  if (central_ != nullptr) central_->Remove(peer, now);
}

void SiteScheduler::OnScheduler(const ToPeer& message, TimePoint now) {
  if (message.leads) {
    takeover_.OnBeat(message.term, now);
  } else {
    takeover_.OnTerm(message.term, now);
  }
  if (!takeover_.leads()) StepDown();
}

void SiteScheduler::OnSchedulerGone(Term last_led, TimePoint now) {
  if (last_led != 0) takeover_.OnLeaderGone(last_led, now);
}

void SiteScheduler::Lead(TimePoint now) {
  const Term term = takeover_.term();
  Say("leads, term " + std::to_string(term));
  policy_ = options_.policy();
  central_ = std::make_unique<CentralScheduler>(
      options_.central, term, *policy_, static_cast<SiteOutbox&>(*this),
      options_.journal ? options_.journal(term) : nullptr);
  workers_changed_ = true;
  next_beat_ = now;
}

void SiteScheduler::StepDown() {
  if (central_ == nullptr) return;
  Say("superseded in term " + std::to_string(central_->term()) + ": watches");
  central_.reset();
  policy_.reset();
  for (auto& [peer, message] : peers_) message = {};
  touched_.clear();
}

void SiteScheduler::Flush() {
  for (const PeerId peer : touched_) options_.send(peer, std::exchange(peers_[peer], {}));
  touched_.clear();
}

TimePoint SiteScheduler::Step(TimePoint now) {
  const TimePoint watch = takeover_.Step(now);
  if (!takeover_.leads()) return watch;
  if (central_ == nullptr) Lead(now);
  const TimePoint next = central_->Step(now);
  if (std::exchange(workers_changed_, false)) {
    for (const auto& [peer, message] : peers_) AddWorkers(For(peer));
  }
  if (next_beat_ <= now) {
    next_beat_ = now + options_.beat;
    for (const auto& [peer, message] : peers_) For(peer);
  }
  Flush();
  return std::min(next, next_beat_);
}

}  // namespace tactus
