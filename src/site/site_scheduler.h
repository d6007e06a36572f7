// One of the schedulers of a site with all its peers: it watches, takes over when that is due, and
// while it leads, drives a CentralScheduler of its term. Drivers hand it messages and carry those
// that it sends. Pure: no thread, clock or socket.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "site/central_scheduler.h"
#include "site/takeover.h"

namespace tactus {

class SiteScheduler final : private SiteOutbox {
 public:
  struct Options {
    Takeover::Options takeover;
    CentralScheduler::Options central;
    Duration beat = Millis(5);
    std::function<std::unique_ptr<Policy>()> policy;  // one for each term that it leads
    // Sends a message to a peer; may not call back.
    std::function<void(PeerId, ToPeer&&)> send;
    std::function<void(const std::string&)> say;  // one line for people; empty: nothing is said
    // The journal of a term that it leads, which outlives the term; empty or null: none.
    std::function<Journal*(Term)> journal = {};
  };

  SiteScheduler(Options options, TimePoint now);

  // A peer is there, and from now on hears what this scheduler says.
  void OnConnected(PeerId peer, TimePoint now);
  void OnMessage(PeerId peer, const FromPeer& message, TimePoint now);
  void OnClosed(PeerId peer, TimePoint now);
  // What another scheduler says, to which this one is connected; and that it is gone.
  void OnScheduler(const ToPeer& message, TimePoint now);
  void OnSchedulerGone(Term last_led, TimePoint now);

  // After any number of events: decides, sends. Returns when to step again.
  TimePoint Step(TimePoint now);

  bool leads() const { return takeover_.leads(); }
  Term term() const { return takeover_.term(); }
  const CentralScheduler* central() const { return central_.get(); }
  std::size_t peers() const { return peers_.size(); }

 private:
  void Send(PeerId front_end, const Grant& grant) override;
  void Send(PeerId front_end, const Refusal& refusal) override;
  void WorkersChanged() override { workers_changed_ = true; }
  void Say(const std::string& line) override {
    if (options_.say) options_.say(line);
  }

  void Lead(TimePoint now);
  void StepDown();
  ToPeer& For(PeerId peer);
  void AddWorkers(ToPeer& message) const;
  void Flush();

  const Options options_;
  Takeover takeover_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<CentralScheduler> central_;  // while it leads
  std::map<PeerId, ToPeer> peers_;             // with what is to be sent
  std::vector<PeerId> touched_;                // whose message is not empty
  bool workers_changed_ = false;
  TimePoint next_beat_{};
};

}  // namespace tactus
