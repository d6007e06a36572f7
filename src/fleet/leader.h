// The leader of a term: it gathers the fleet's nodes, plans for those that are here with the rates
// that they measure, and rolls the plans out. Pure: a driver hands it what nodes say and the time,
// sends what it says, and keeps what it must know when it starts again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/fleet_plan.h"
#include "fleet/history.h"
#include "fleet/membership.h"
#include "fleet/messages.h"
#include "fleet/remembered.h"
#include "fleet/rollout.h"
#include "fleet/slices.h"

namespace tactus {

struct LeaderKept {
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;

  bool operator==(const LeaderKept&) const = default;
};

struct LeaderOptions {
  MembershipOptions membership;
  RolloutOptions rollout;
  // The term that the election gave; 0: nobody elects, and it is the first one that no node knows.
  std::uint64_t term = 0;
  Duration settle = Seconds(3);          // how long nodes have to say hello before the first plan
  Duration replan_every = Seconds(360);  // for the rates that are measured
  // Between two plans: changes the one that serves for the fleet as it is measured, and says what
  // it has changed; empty: nothing. Null: nobody does.
  std::function<std::string(const FleetInput&, FleetPlan&, TimePoint now)> scaling = {};
  Duration scale_every = Seconds(30);
  Duration plan_again = Seconds(5);    // after a plan that could not be made
  Duration links_every = Seconds(30);  // not sooner after a plan for a link that has changed
  Duration links_hold = Seconds(600);  // what was measured of a link that nobody uses any more
  Duration refused_for = Seconds(60);  // a node that refused is left out; longer each time
  // How long models that a silent node may still call stay loaded.
  Duration forget_after = Seconds(600);
  // Digests of the models and pipelines in its repository, by name: nodes have these from there.
  std::map<std::string, std::string> digests = {};
  // What leaders before it did. Nodes of their plans have MembershipOptions::dead_after to say
  // hello before there is a plan without them.
  Remembered remembered;
};

// If `keep` cannot be written, `send` must not be sent; the next Take asks again, until WasKept.
struct LeaderActions {
  std::optional<LeaderKept> keep;
  std::vector<ToNode> send;
};

// For people.
struct LeaderView {
  struct Node {
    std::string name;
    Standing standing = Standing::kAway;
    Duration silent{};
    NodeReport report;
    FleetSlice slice;
    std::map<std::string, double> rates;  // requests a second, by model
    std::vector<MeasuredLink> links;
    std::string left_out;  // why it has no part in the plan; empty: it has
  };
  std::uint64_t term = 0;  // 0: it gathers nodes and does not lead yet
  PlanId serving;          // the last that was adopted
  PlanId rolling;          // what is rolled out now, or was last
  std::string phase;       // of it; empty: no plan was made yet
  std::string problem;     // why there is no newer plan; empty: none is needed
  std::vector<LostPipeline> lost;
  std::vector<Node> nodes;
};

class FleetLeader {
 public:
  using Planning = std::function<Expected<FleetPlan>(const FleetInput&)>;

  // `history` may be null, else it outlives the leader.
  FleetLeader(FleetInput declared, Planning planning, LeaderOptions options, LeaderKept kept,
              TimePoint now, FleetHistory* history = nullptr);

  void Receive(const FromNode& message, TimePoint now);
  // Does what is due.
  void Step(TimePoint now);
  LeaderActions Take();
  void WasKept() { confirmed_ = kept_; }
  // When Step may next have something, if nobody says anything. It looks at no node while Step has
  // nothing to do: a driver may ask after each report.
  TimePoint Next() const;

  // A leader of a later term is there. This one has ended: it sends nothing any more.
  bool superseded() const { return !superseded_.empty(); }
  const std::string& superseded_why() const { return superseded_; }
  bool leads() const { return leading_; }
  std::uint64_t term() const { return kept_.term; }
  PlanId serving() const { return serving_; }
  const Rollout* rollout() const { return rollout_ ? &*rollout_ : nullptr; }
  LeaderView View(TimePoint now) const;

 private:
  // What is known of a node beyond its being there.
  struct Node {
    NodeReport report;
    std::map<std::string, double> rates;
    std::vector<FleetSlice> in_force;  // any of which it may serve; none: nobody knows
    TimePoint left_out_until = kStart;
    std::string left_out_why;
    int refusals = 0;
    std::string peer;  // where its worker takes calls of other nodes, as it last said
    TimePoint told_peers = kStart;
    struct Way {
      LinkReading reading;
      TimePoint at;
    };
    std::map<std::string, Way> links;  // to other nodes, as they were last measured
  };
  WelcomeOrder Welcome() const { return {options_.membership.beat_every}; }
  void Send(const std::string& node, const Incarnation& to, decltype(ToNode::what) what);
  void Greeted(const FromNode& message, bool new_life);
  void Reported(const FromNode& message, TimePoint now);
  void Work(TimePoint now);
  // Next, by all that is known now.
  TimePoint WhenDue() const;
  void Lead(TimePoint now);
  void Watch(TimePoint now);
  void Roll(TimePoint now);
  void Ended(TimePoint now);
  void LeaveOut(const std::string& node, const std::string& why, TimePoint now);

  // Where those are to which the node may route, as far as it is known.
  std::vector<PeerPlace> PeersOf(const std::string& node) const;
  void TellPeers(const std::string& node, const Incarnation& who, TimePoint now);
  bool Known(const std::string& node) const;
  bool AllKnown() const;
  std::set<std::string> Participants(TimePoint now) const;
  bool Forgotten(const std::string& node, TimePoint now) const;
  bool HoldBack(TimePoint now) const;
  // By node: the models to which others may send; `all`: also those that are in the roll-out.
  std::map<std::string, std::set<std::string>> RoutedTo(TimePoint now, bool all) const;
  AbandonOrder Abandoning(const std::string& node, PlanId id, TimePoint now) const;
  void Measure(Node& node, const NodeBeat& beat, TimePoint now) const;
  // The declared fleet, with what was measured of its links.
  FleetInput Linked(TimePoint now) const;
  // Once a second: whether the last plan's split may not suit the links any more.
  void LookAtLinks(TimePoint now);
  bool WantsPlan(TimePoint now, const std::set<std::string>& participants) const;
  // Nodes of remembered plans that are not among those; they may still come.
  bool Awaits(const std::set<std::string>& participants) const;
  // Whether the nodes serve one plan of an earlier leader that suits them: it ends its roll-out.
  bool TakeUp(TimePoint now, const std::set<std::string>& participants);
  void StartRollout(RolloutPlan plan, Rollout::Phase from, TimePoint now);
  void MakePlan(TimePoint now, const std::set<std::string>& participants);
  // What is due between two plans; whether another one is rolled out for it.
  bool Scale(TimePoint now);
  // The fleet of `planned_for_` as it is measured, with these links.
  FleetInput MeasuredNow(const FleetInput& linked, std::vector<LostPipeline>& lost) const;
  // Adds what the nodes serve of pipelines that are lost. The nodes that these miss may serve on,
  // unheard; what is here of them stays as it is until they are forgotten.
  void KeepLost(std::map<std::string, FleetSlice>& slices, TimePoint now) const;
  // Rolls it out by the next number, unless the nodes serve it. `scaled`: what was changed of the
  // plan before; empty: it was made anew.
  void RollOut(TimePoint now, const FleetInput& input, FleetPlan plan, const std::string& scaled);
  bool Serves(const std::map<std::string, FleetSlice>& slices) const;

  const FleetInput declared_;
  const Planning planning_;
  const LeaderOptions options_;
  FleetHistory* const history_;
  LeaderKept kept_;
  std::optional<LeaderKept> confirmed_;
  Membership membership_;
  std::map<std::string, Node> nodes_;
  std::vector<ToNode> outgoing_;
  std::string superseded_;

  bool leading_ = false;
  TimePoint since_;                       // it gathers, or it leads
  TimePoint nothing_new_until_ = kStart;  // if no node says otherwise, Step has nothing to do
  TimePoint next_at_rest_ = kNever;       // WhenDue, when Step last found nothing to do
  std::uint64_t seen_term_ = 0;
  std::optional<Rollout> rollout_;
  bool ended_ = true;           // Ended has seen the roll-out's end
  bool known_adopted_ = false;  // an earlier leader has told of its end
  PlanId serving_;
  std::set<std::string> planned_for_;
  std::optional<FleetPlan> current_;  // that serves or is rolled out, by ids of its nodes' fleet
  std::optional<FleetPlan> scaled_from_;  // what `current_` was before it was scaled
  TimePoint next_scaling_ = kStart;
  std::vector<FleetLink> planned_links_;
  TimePoint planned_at_ = kStart;
  TimePoint look_at_links_ = kStart;
  bool links_changed_ = false;
  bool planned_ = false;
  bool retry_ = false;
  TimePoint not_before_ = kStart;
  TimePoint next_period_ = kStart;
  std::string problem_;
  std::vector<LostPipeline> lost_;
};

}  // namespace tactus
