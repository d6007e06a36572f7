// The agent's side of roll-outs: which slice this node serves, what its worker must load and
// unload, and what it tells the leader. Obeys the leader of the highest term that it has heard of.
// What it serves outlives the leader's absence and its own restarts. Pure: a driver carries out
// what Take says and tells how it went.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "fleet/messages.h"

namespace tactus {

// What a node keeps on disk.
struct NodeKept {
  Incarnation who;                    // of the last start
  std::uint64_t term = 0;             // no leader of an earlier one is obeyed
  FleetSlice slice;                   // what it serves
  std::vector<std::string> held;      // models of earlier slices, to which others may still send
  std::vector<PeerPlace> peers = {};  // by node: where those are to which it routes
  std::vector<ModelRef> loaded = {};  // what its worker was told to load, by which digest; by name

  bool operator==(const NodeKept&) const = default;
};

struct NodeStateOptions {
  std::string name;
  Duration beat_every = Seconds(1);  // until a leader says another
  Duration load_again = Seconds(5);  // after a model that it serves did not load, or did not come
};

// To be carried out in this order. If `keep` cannot be written, `send` must not be sent: it speaks
// of what is kept. The next Take asks for it again, until WasKept.
struct NodeActions {
  std::optional<NodeKept> keep;
  std::vector<std::string> stop;  // placing these: other bytes are wanted, or none
  std::vector<ModelRef> place;    // into the worker's repository; what of it is loaded serves on
  std::vector<std::string> load;  // as it lies there
  std::vector<std::string> unload;
  std::vector<FromNode> send;
};

class NodeState {
 public:
  // `kept` is what was read from disk, its `who` that of this life.
  NodeState(NodeStateOptions options, NodeKept kept);

  void Receive(const ToNode& order, TimePoint now);
  // The worker serves, with these models loaded.
  // `peer`: where it takes calls of other nodes.
  void WorkerUp(const std::vector<std::string>& loaded, std::string http, std::string grpc,
                std::string peer = {});
  // It has ended, and what was asked of it is void. `failing`: it does not stay up.
  void WorkerDown(const std::string& why, bool failing);
  // How placing ended, also if it was stopped.
  void Placed(const std::string& model);
  void PlaceFailed(const std::string& model, const std::string& why, TimePoint now);
  void Fetched(std::uint64_t bytes) { fetched_ = bytes; }
  void Loaded(const std::string& model);
  void LoadFailed(const std::string& model, const std::string& why, TimePoint now);
  void Unloaded(const std::string& model);
  void Measure(std::vector<ModelRate> rates) { rates_ = std::move(rates); }
  void MeasureLinks(std::vector<MeasuredLink> links) { links_ = std::move(links); }
  // Requests under way by an earlier plan; -1: nobody counts.
  void CountOld(int in_flight) { old_in_flight_ = in_flight; }
  // A new connection: whoever is at its end has to be greeted.
  void Connected() { welcomed_ = false; }

  NodeActions Take(TimePoint now);
  void WasKept() { confirmed_ = offered_; }
  // When Take may next have something, if nothing is told.
  TimePoint Next() const;

  const FleetSlice& slice() const { return kept_.slice; }
  const NodeKept& kept() const { return kept_; }
  NodeReport Report() const;
  // Its worker has it, by this digest if there is one.
  bool Holds(const std::string& model, const std::string& digest = {}) const;
  // The digests of all that it serves, prepares or has loaded.
  std::set<std::string> DigestsInUse() const;
  // A plan has the model here and says no digest: it is the node's own.
  bool IsOwn(const std::string& model) const;
  // Why the leader does not want this node; empty: it does.
  const std::string& denied() const { return denied_; }

 private:
  enum class Hold { kAbsent, kLoading, kLoaded, kUnloading, kFailed };
  struct Model {
    Hold hold = Hold::kAbsent;
    TimePoint again = kStart;  // of one that failed
    std::string why;
    std::string digest = {};                 // of what is held; empty: nobody said
    std::optional<std::string> serves = {};  // the worker has it by this digest meanwhile
  };
  enum class Place { kPlacing, kPlaced, kFailed };
  struct Placement {
    std::string digest;
    Place place = Place::kPlacing;
    TimePoint again = kStart;  // of one that failed
    std::string why = {};
    bool stopped = false;
  };
  std::set<std::string> Wanted() const;
  // By name, the digests of what is wanted by one.
  std::map<std::string, std::string> WantedDigests() const;
  bool Ready(const FleetSlice& slice) const;
  bool IsPlaced(const ModelRef& ref) const;
  std::string TroubleOf(const FleetSlice& slice) const;
  void HoldModels(const FleetSlice& slice);
  void Prepare(const FleetSlice& slice);
  void Commit(const CommitOrder& commit);
  void Learn(const std::vector<PeerPlace>& peers);
  void Retire(const RetireOrder& order);
  void Abandon(const AbandonOrder& order);
  void Arrange(TimePoint now, NodeActions& actions);
  void Reconcile(TimePoint now, NodeActions& actions);
  void Bring(const std::string& name, const std::string& digest, TimePoint now,
             NodeActions& actions);
  void NoteLoaded(const std::string& name, const std::string& digest);

  NodeStateOptions options_;
  NodeKept kept_;
  std::optional<NodeKept> offered_;    // what Take last asked to be kept
  std::optional<NodeKept> confirmed_;  // what lies on disk
  std::optional<FleetSlice> prepared_;
  PlanId abandoned_;  // the latest; a late PREPARE of it must not bring it back
  PlanId retired_;
  std::map<std::string, Model> models_;          // of this worker's life
  std::map<std::string, Placement> placements_;  // in its repository
  bool up_ = false;
  bool failing_ = false;
  std::string down_why_;
  std::string http_, grpc_, peer_;
  int old_in_flight_ = -1;
  std::uint64_t fetched_ = 0;
  std::vector<ModelRate> rates_;
  std::vector<MeasuredLink> links_;
  bool welcomed_ = false;
  std::uint64_t welcomed_by_ = 0;  // the term
  std::string denied_;
  std::uint64_t sequence_ = 0;
  bool answer_ = true;
  TimePoint next_beat_ = kStart;
};

}  // namespace tactus
