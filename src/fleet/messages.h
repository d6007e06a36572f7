// What a controller and the nodes of a fleet tell each other, as plain values. A node answers every
// order with its whole state (NodeReport), so what is lost, doubled or late does no harm: the next
// report says all of it again.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/serving_time.h"
#include "fleet/link_meter.h"

namespace tactus {

// Plans are numbered by the leader that made them, and leaders by terms: a later leader's are
// newer.
struct PlanId {
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;

  bool none() const { return epoch == 0; }
  auto operator<=>(const PlanId&) const = default;
};

// One life of a node's agent. `home` is drawn once for its folder of state, `count` rises by one at
// each start from there: a later life is known from an earlier one, and from another node of the
// same name.
struct Incarnation {
  std::uint64_t home = 0;
  std::uint64_t count = 0;

  bool operator==(const Incarnation&) const = default;
};

// A stage's worker on this node.
struct SliceInstance {
  std::string pipeline;
  std::string stage;
  std::string model;
  int accelerator = 0;
  int stream = 0;
  int batch = 1;
  Duration offset{};
  Duration length{};  // 0: at any time in the cycle
  Duration cycle{};

  bool operator==(const SliceInstance&) const = default;
};

struct RouteTarget {
  std::string node;
  double weight = 1;  // instances there

  bool operator==(const RouteTarget&) const = default;
};

// Where this node sends what a stage is to work on.
struct SliceRoute {
  std::string pipeline;
  std::string stage;
  std::string model;
  std::vector<RouteTarget> to;

  bool operator==(const SliceRoute&) const = default;
};

// Where a node's worker takes calls of other nodes.
struct PeerPlace {
  std::string node;
  std::string address;  // HOST:PORT, gRPC

  bool operator==(const PeerPlace&) const = default;
};
// A sum of places in the order of their nodes; 0 for none. Two lists that differ have two sums, but
// for one chance in 2^64.
std::uint64_t SumOf(const std::vector<PeerPlace>& peers);

// A model's folder as the leader's repository has it, whichever bytes lie on a node's own disk.
struct ModelRef {
  std::string name;
  std::string digest;  // of all its files; nodes only compare it

  bool operator==(const ModelRef&) const = default;
};

// One node's part of a plan.
struct FleetSlice {
  PlanId id;
  std::vector<SliceInstance> instances;
  std::vector<SliceRoute> routes;
  // By name: models of instances, and folders of pipelines that are routed. What is not among them
  // a node has of its own.
  std::vector<ModelRef> models = {};

  bool operator==(const FleetSlice&) const = default;
};

// Ascending, each once.
std::vector<std::string> ModelsOf(const FleetSlice& slice);

struct ModelRate {
  std::string model;
  double rate_rps = 0;

  bool operator==(const ModelRate&) const = default;
};

// The way from a node to another, as it is measured.
struct MeasuredLink {
  std::string to;
  LinkReading reading;

  bool operator==(const MeasuredLink&) const = default;
};

// What a node has now.
struct NodeReport {
  std::uint64_t term = 0;  // the highest that it has heard of
  PlanId committed;        // whose slice it serves
  PlanId prepared;         // for which it loads, or has loaded
  PlanId retired;          // the last one whose predecessors it has put away
  PlanId refused;          // what it cannot prepare, with the reason in `trouble`
  bool prepared_ready = false;
  bool committed_ready = false;
  bool failing = false;       // its worker does not stay up, and waiting has not helped
  int old_in_flight = -1;     // requests under way by an earlier plan; -1: nobody counts
  std::uint64_t peers = 0;    // SumOf the places that it sends to
  std::uint64_t fetched = 0;  // bytes of models that have come to it, in this life
  std::string trouble;        // for people; empty: none
  std::string http;           // where its worker listens; empty: nowhere
  std::string grpc;
  std::string peer;  // where other nodes send to; empty: nowhere

  bool operator==(const NodeReport&) const = default;
};

// The first word of an incarnation to a leader, until it is welcomed.
struct NodeHello {
  NodeReport report;
  FleetSlice slice;  // what it serves

  bool operator==(const NodeHello&) const = default;
};
struct NodeBeat {
  NodeReport report;
  std::vector<ModelRate> rates;  // of the requests that reached its worker
  std::vector<MeasuredLink> links = {};

  bool operator==(const NodeBeat&) const = default;
};
struct FromNode {
  std::string node;
  Incarnation who;
  std::uint64_t sequence = 0;  // rises within an incarnation
  std::variant<NodeHello, NodeBeat> what;

  bool operator==(const FromNode&) const = default;
};
const NodeReport& ReportOf(const FromNode& message);

struct WelcomeOrder {
  Duration beat_every{};  // 0: as the node does by itself
  bool operator==(const WelcomeOrder&) const = default;
};
// Say hello (again): this leader does not know what you serve.
struct GreetOrder {
  bool operator==(const GreetOrder&) const = default;
};
struct DenyOrder {
  std::string why;
  bool operator==(const DenyOrder&) const = default;
};
struct PrepareOrder {
  FleetSlice slice;
  bool operator==(const PrepareOrder&) const = default;
};
struct CommitOrder {
  PlanId id;
  std::vector<PeerPlace> peers = {};  // of the nodes to which it routes
  bool operator==(const CommitOrder&) const = default;
};
// Where those are to which it routes; they have moved, or it knew of some of them nothing.
struct PeersOrder {
  std::vector<PeerPlace> peers;
  bool operator==(const PeersOrder&) const = default;
};
// Unload what `id` does not need, but for `keep`: nodes that are away may still send to it.
struct RetireOrder {
  PlanId id;
  std::vector<std::string> keep;
  bool operator==(const RetireOrder&) const = default;
};
struct AbandonOrder {
  PlanId id;
  // What was loaded for it goes, but for these: some node may send to them.
  bool keep_all = false;
  std::vector<std::string> keep = {};
  bool operator==(const AbandonOrder&) const = default;
};
struct ToNode {
  std::string node;
  Incarnation to;  // another one ignores it
  std::uint64_t term = 0;
  std::variant<WelcomeOrder, GreetOrder, DenyOrder, PrepareOrder, CommitOrder, RetireOrder,
               AbandonOrder, PeersOrder>
      what;

  bool operator==(const ToNode&) const = default;
};

}  // namespace tactus
