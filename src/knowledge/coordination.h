// Who of several controllers leads: one at a time, each with a term that is higher than all before.
// The term fences off a leader that has not noticed yet that it is none: the store and the agents
// obey the highest that they have seen.
//
//   auto coordination = OpenCoordination("etcd://127.0.0.1:2379/street", {.name = "ctl1"});
//   auto term = coordination->Acquire(now, store->HighestSeen()->term);   // every second until it
//                                             // works
//   coordination->Renew(now);                 // every third of a lease
//   if (!coordination->Leads(now)) ...        // stop at once: another may lead
//
// Instants are the caller's monotonic clock, read just before the call. Nothing here reads a clock;
// a call may take as long as its service's timeouts say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus::knowledge {

struct LeaseOptions {
  std::string name;               // of this controller, for the others' messages
  Duration length = Seconds(10);  // from the last renewal; at least 2 s
};

// One thread at a time.
class Coordination {
 public:
  virtual ~Coordination() = default;

  // For messages, such as "etcd 127.0.0.1:2379/street".
  virtual const std::string& place() const = 0;
  // Tries once to lead. The term: higher than `above` and than every term that anyone had here.
  // kUnavailable: another leads, or nobody answers; try again later.
  virtual Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) = 0;
  // Leads for another LeaseOptions::length from `now` on. kCancelled: it leads no more, and must
  // acquire a new term. kUnavailable: nobody answers; it leads for as long as Leads() says.
  virtual Status Renew(TimePoint now) = 0;
  // Lets another lead at once. Does nothing where it does not lead.
  virtual void Resign() = 0;

  bool Leads(TimePoint now) const { return term_ != 0 && now < until_; }
  // Until when it leads if nothing renews it; kStart: it does not.
  TimePoint leads_until() const { return term_ == 0 ? kStart : until_; }
  // Who leads, as the last Acquire heard that was refused; empty: nobody knows.
  const std::string& leader() const { return leader_; }
  // 0: it does not lead, as far as it knows.
  std::uint64_t term() const { return term_; }

 protected:
  void Hold(std::uint64_t term, TimePoint until) { term_ = term, until_ = until; }
  void Extend(TimePoint until) { until_ = until; }
  void Lose() { term_ = 0; }
  void Heard(std::string leader) { leader_ = std::move(leader); }
  bool IsHeld() const { return term_ != 0; }
  TimePoint Until() const { return until_; }

 private:
  std::uint64_t term_ = 0;
  TimePoint until_{};
  std::string leader_;
};

// "sqlite:PATH": no other controller may use that store at all; PATH.lock is locked while it leads.
// "postgresql://USER@HOST:PORT/DATABASE": an advisory lock of that database.
// "etcd://HOST:PORT[,HOST:PORT...]/NAME": a lease of etcd 3.4 or later; NAME is the cluster's.
// Connects when it acquires.
Expected<std::unique_ptr<Coordination>> OpenCoordination(std::string_view where,
                                                         const LeaseOptions& options);

}  // namespace tactus::knowledge
