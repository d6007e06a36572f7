// What the processes of a site under one central scheduler say to each other (Symphony, Section 4):
//
//   front end -------Offer, Void-------> scheduler --Grant, Refusal--> front end
//   front end ------------rows of a granted batch-------------> worker --answers--> front end
//   worker ----------------BatchDone----------------> scheduler
//
// The scheduler sees no tensors. Every request belongs to the front end that accepted it, from its
// arrival to its answer: what another process forgets when it dies is offered again by the front
// end, so nothing is lost; and only the front end answers, once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fnv.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "core/batch.h"
#include "core/model.h"
#include "core/model_spec.h"
#include "core/profile_table.h"
#include "core/request.h"

namespace tactus {

// Counts who led: a message of a lower term than the highest that was seen is of a scheduler that
// was superseded. 0: nobody has led yet.
using Term = std::uint64_t;

// A connection, as whoever accepted it numbers them.
using PeerId = Id<struct PeerTag>;

// A model by the hash (FNV-1a) of its name: every process knows it without asking.
using ModelKey = std::uint64_t;
constexpr ModelKey KeyOf(std::string_view name) { return Fnv1a(name); }

// A request waits at a front end, or waits no more.
struct Offer {
  RequestId request;  // the front end's
  ModelKey model = 0;
  TimePoint deadline;  // by the clock of whoever holds the message; on the wire: time left
  std::uint32_t shape = 0;
  std::uint32_t priority = 0;
  // It waits no more: cancelled, expired, or run with another batch. Only `request` and `model` say
  // something then.
  bool withdrawn = false;

  bool operator==(const Offer&) const = default;
};

// Identifies a batch on its way: who granted it and which one it is.
struct BatchKey {
  Term term = 0;
  std::uint64_t batch = 0;

  bool operator==(const BatchKey&) const = default;
};

// To a front end: send these requests to that worker, as a part of this batch.
struct Grant {
  BatchKey key;
  ModelKey model = 0;
  ExitId exit{0};
  std::uint32_t worker = 0;         // its slot; see WorkerPlace
  std::uint32_t rows = 0;           // of the whole batch, of all front ends
  std::vector<RequestId> requests;  // this front end's, the most urgent first
};

// To a front end: this request will not be granted in time.
struct Refusal {
  RequestId request;
  ModelKey model = 0;
  DropReason reason = DropReason::kExpired;
};

// From a front end: so many rows of a batch will not come.
struct VoidRows {
  BatchKey key;
  std::uint32_t rows = 0;
  bool unreachable = false;  // it cannot reach the worker now
};

// From a worker: one of its lanes is free again.
struct BatchDone {
  BatchKey key;
  Duration took{};  // as its lane saw it
  BatchStatus status = BatchStatus::kOk;
};

// What a worker says of a model that it serves. `rows` has one lane class: its own.
struct WorkerModel {
  ModelSpec spec;  // for front ends
  Model model;
  ProfileTable::ModelRows rows;
};

// A worker as it joins.
struct WorkerIntroduction {
  std::string name;
  std::string address;  // where front ends send rows
  int lanes = 1;
  int busy = 0;  // lanes that run what an earlier leader granted
  std::vector<WorkerModel> models;
};

// To front ends: who has which slot.
struct WorkerPlace {
  std::uint32_t worker = 0;
  std::string name;
  std::string address;

  bool operator==(const WorkerPlace&) const = default;
};

// With TLS a worker is named NODE or NODE/..., so that nobody takes the place of another node's.
inline std::string_view NodeOfWorker(std::string_view worker) {
  return worker.substr(0, worker.find('/'));
}

// Everything that a front end, a worker or another scheduler says to a scheduler, coalesced.
struct FromPeer {
  Term seen = 0;                         // the highest term that the peer has heard of
  std::vector<WorkerIntroduction> join;  // of a worker; one, or none
  std::vector<Offer> offers;             // in order: what was offered may be withdrawn
  std::vector<VoidRows> voids;
  std::vector<BatchDone> done;
};

// And what a scheduler says to them. With `leads` it is a beat, whatever else it says.
struct ToPeer {
  Term term = 0;
  bool leads = false;
  bool has_workers = false;  // `workers` and `models` are all that there are now
  std::vector<WorkerPlace> workers;
  std::vector<WorkerModel> models;
  std::vector<Grant> grants;
  std::vector<Refusal> refusals;
  std::string refused;  // why a worker may not join; empty: it may
};

// Which of the schedulers that a front end or a worker is connected to leads.
class FollowedTerm {
 public:
  // True where the message makes its sender the leader, of a new term or after the connection to it
  // was lost: it knows nothing of this peer then, who says everything anew.
  bool Hear(std::uint32_t scheduler, const ToPeer& message) {
    const bool again = lost_ && scheduler == leader_ && message.term == term_;
    if (!message.leads || (message.term <= term_ && !again)) return false;
    term_ = message.term;
    leader_ = scheduler;
    lost_ = false;
    return true;
  }
  // True where its sender leads with a term that was superseded, and is to be told; once for each.
  bool Older(const ToPeer& message) {
    if (!message.leads || message.term >= term_ || message.term == older_) return false;
    older_ = message.term;
    return true;
  }
  // The connection to this scheduler ended.
  void Lost(std::uint32_t scheduler) { lost_ = lost_ || scheduler == leader_; }
  bool Follows(std::uint32_t scheduler, const ToPeer& message) const {
    return message.leads && message.term == term_ && scheduler == leader_ && !lost_;
  }
  Term term() const { return term_; }
  std::uint32_t leader() const { return leader_; }  // good once term() is not 0

 private:
  Term term_ = 0;
  Term older_ = 0;
  std::uint32_t leader_ = 0;
  bool lost_ = false;
};

}  // namespace tactus

template <>
struct std::hash<tactus::BatchKey> {
  std::size_t operator()(const tactus::BatchKey& key) const noexcept {
    return std::hash<std::uint64_t>{}(key.batch * 1099511628211U ^ key.term);
  }
};
