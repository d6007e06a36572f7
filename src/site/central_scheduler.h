// The central scheduler of a site (Symphony, Section 4): a Dispatcher whose requests wait at front
// ends and whose lanes are those of workers, driven by messages. Any policy decides; what it
// launches goes out as grants. It holds no tensor, and nothing that is lost with it: when it dies
// another begins with empty books, and front ends offer again.
//
// Pure: no thread, clock or socket. Events come in with their instant, then one Step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/dispatcher.h"
#include "site/messages.h"

namespace tactus {

// To the peers. Called inside the scheduler's methods; must not call back.
class SiteOutbox {
 public:
  virtual ~SiteOutbox() = default;
  virtual void Send(PeerId front_end, const Grant& grant) = 0;
  virtual void Send(PeerId front_end, const Refusal& refusal) = 0;
  // Who the workers are has changed.
  virtual void WorkersChanged() = 0;
  // One line for people.
  virtual void Say(const std::string& line) = 0;
};

// The lanes of its dispatcher, all closed at first: they open as workers join.
std::vector<LaneSpec> SiteLanes(std::uint32_t count);

class CentralScheduler final : private Outbox {
 public:
  struct Options {
    DispatcherOptions dispatcher;
    std::uint32_t lanes = 64;    // of all workers, at most
    std::uint32_t workers = 16;  // at most
    // A batch that no worker reports ends in the books so long after it should have ended.
    Duration unreported = Millis(200);
    // A lane that a front end could not reach is granted again after so long.
    Duration unreachable = Millis(50);
  };

  // Leads with `term` from its first breath. `policy` and `outbox` outlive it; so does `journal`,
  // which may be null.
  CentralScheduler(const Options& options, Term term, Policy& policy, SiteOutbox& outbox,
                   Journal* journal = nullptr);
  ~CentralScheduler() override = default;

  // A worker joins, or says anew which models it serves; an error says why it may not, and nothing
  // happens.
  Status AddWorker(PeerId peer, const WorkerIntroduction& worker, TimePoint now);
  // A worker or a front end is gone: its lanes close, or its requests leave.
  void Remove(PeerId peer, TimePoint now);

  // Front ends send these. A request that is known is the one that waits; it is not offered twice.
  void OnOffer(PeerId front_end, const Offer& offer, TimePoint now);
  void OnVoid(const VoidRows& rows, TimePoint now);
  // Workers send this.
  void OnDone(PeerId worker, const BatchDone& done, TimePoint now);

  // Takes all decisions of this instant. Returns when to step again if nothing happens before.
  TimePoint Step(TimePoint now);

  Term term() const { return term_; }
  std::vector<WorkerPlace> workers() const;
  // The models that some worker serves; with the digest that all of these say.
  std::vector<WorkerModel> models() const;
  std::size_t waiting() const { return dispatcher_.waiting(); }
  std::size_t running() const { return dispatcher_.running(); }

 private:
  struct Worker {
    PeerId peer;
    LaneClass lane_class;
    WorkerIntroduction introduction;
    std::vector<LaneId> lanes;
    std::vector<LaneId> busy;  // with what an earlier leader granted
  };
  struct Known {  // a model
    ModelKey key = 0;
    WorkerModel first;  // as the first worker had it
  };
  struct Waiting {  // an offer
    PeerId front_end;
    RequestId request;  // the front end's
    ModelId model;
    RequestId id;             // the dispatcher's
    std::uint32_t shape = 0;  // the front end's
  };
  struct Flight {  // a granted batch
    LaneId lane;
    std::uint32_t rows = 0;  // that may still come
    TimePoint granted;
    TimePoint given_up;
  };
  struct PeerRequest {
    PeerId peer;
    RequestId request;
    bool operator==(const PeerRequest&) const = default;
  };
  struct HashPeerRequest {
    std::size_t operator()(const PeerRequest& r) const {
      return std::hash<std::uint64_t>{}(r.request.value() * 0x9E3779B97F4A7C15U + r.peer.value());
    }
  };

  // Outbox.
  void Launch(const Batch& batch) override;
  void Abort(LaneId, BatchId) override {}
  void Reject(ModelId model, const Request& request, DropReason reason) override;
  void Complete(const Batch&, const BatchReport&) override {}

  Worker* WorkerOf(PeerId peer);
  LaneClass ClassOf(const WorkerIntroduction& worker) const;
  Status TakeModels(const WorkerIntroduction& worker);
  // Whether another worker than that serves the model.
  bool ServedBesides(ModelId model, const std::string& worker) const;
  ModelId Find(ModelKey key) const;
  // Empty: its workers do not say one and the same.
  std::string DigestOf(const std::string& model) const;
  void Deploy();
  void Withdraw(const PeerRequest& request);
  void KeepUnplaced(PeerId front_end, const Offer& offer);
  // Offers again what now has a worker.
  void PlaceUnplaced(TimePoint now);
  void OpenLane(LaneId lane);
  void RemoveWorker(Worker& worker, TimePoint now);
  std::uint32_t ShapeOf(PeerId front_end, std::uint32_t shape);
  void EndFlight(std::uint64_t batch, BatchStatus status, TimePoint now);

  const Options options_;
  const Term term_;
  SiteOutbox& outbox_;
  Dispatcher dispatcher_;

  std::vector<std::optional<Worker>> workers_;  // by slot
  std::vector<std::uint32_t> free_lanes_;       // greatest first
  std::vector<std::uint32_t> worker_of_;        // by LaneId
  std::vector<Known> models_;                   // by ModelId
  std::unordered_map<ModelKey, ModelId> ids_;
  std::uint64_t plans_ = 0;

  std::vector<Waiting> slab_;  // by Request::payload
  std::vector<std::uint32_t> free_slab_;
  std::unordered_map<PeerRequest, std::uint32_t, HashPeerRequest> waiting_;
  std::uint64_t next_request_ = 0;
  // Offers of models that no worker serves now: a leader hears of some front ends before it hears
  // of the workers, and a worker that died may be back in time. Their front ends end them.
  std::unordered_map<PeerRequest, Offer, HashPeerRequest> unplaced_;
  // Shape classes are each front end's own: those of two never share a batch.
  std::unordered_map<PeerRequest, std::uint32_t, HashPeerRequest> shapes_;
  std::uint32_t next_shape_ = 1;

  std::unordered_map<std::uint64_t, Flight> flights_;  // by BatchId
  TimePoint next_given_up_ = kNever;
  struct Shut {
    LaneId lane;
    TimePoint until;
  };
  std::vector<Shut> shut_;  // lanes that a front end could not reach
  TimePoint now_{};
};

}  // namespace tactus
