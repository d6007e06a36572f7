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

  bool operator==(const NodeKept&) const = default;
};

struct NodeStateOptions {
  std::string name;
  Duration beat_every = Seconds(1);
  Duration load_again = Seconds(5);  // after a model that it serves did not load
};

// To be carried out in this order. If `keep` cannot be written, `send` must not be sent: it speaks
// of what is kept. The next Take asks for it again, until WasKept.
struct NodeActions {
  std::optional<NodeKept> keep;
  std::vector<std::string> load;
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
  bool Holds(const std::string& model) const;
  // Why the leader does not want this node; empty: it does.
  const std::string& denied() const { return denied_; }

 private:
  enum class Hold { kAbsent, kLoading, kLoaded, kUnloading, kFailed };
  struct Model {
    Hold hold = Hold::kAbsent;
    TimePoint again = kStart;  // of one that failed
    std::string why;
  };
  std::set<std::string> Wanted() const;
  bool Ready(const FleetSlice& slice) const;
  void HoldModels(const FleetSlice& slice);
  void Prepare(const FleetSlice& slice);
  void Commit(const CommitOrder& commit);
  void Learn(const std::vector<PeerPlace>& peers);
  void Retire(const RetireOrder& order);
  void Abandon(const AbandonOrder& order);
  void Reconcile(TimePoint now, NodeActions& actions);

  const NodeStateOptions options_;
  NodeKept kept_;
  std::optional<NodeKept> offered_;    // what Take last asked to be kept
  std::optional<NodeKept> confirmed_;  // what lies on disk
  std::optional<FleetSlice> prepared_;
  PlanId abandoned_;  // the latest; a late PREPARE of it must not bring it back
  PlanId retired_;
  std::map<std::string, Model> models_;
  bool up_ = false;
  bool failing_ = false;
  std::string down_why_;
  std::string http_, grpc_, peer_;
  int old_in_flight_ = -1;
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
