// How a plan comes to serve everywhere: PREPARE wherever something appears, and when all are ready
// COMMIT, downstream first, then those that route to it; RETIRE what served before once nothing of
// it is under way. Who refuses or dies before all have committed ends it: it is abandoned, and says
// who and why. Every order is sent again until a report shows that it was carried out, so orders
// and reports may be lost, doubled and late. Any prefix of it is safe: all is ready before the
// first route changes, and nothing goes before the last one has.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "fleet/messages.h"

namespace tactus {

struct RolloutOptions {
  Duration resend = Millis(500);  // an order that nothing shows the effect of
  // Loading and warming, from when the last bytes of a model came to any of the nodes.
  Duration prepare_within = Seconds(120);
  Duration commit_within = Seconds(30);
  Duration old_requests = Seconds(2);  // how long those of the plan before may take: twice the SLO
};

struct RolloutPlan {
  PlanId id;
  std::map<std::string, FleetSlice> slices;     // by node: all that take part
  std::vector<std::vector<std::string>> waves;  // the same nodes, in the order of COMMIT
};

class Rollout {
 public:
  enum class Phase { kPreparing, kCommitting, kRetiring, kDone, kAbandoned };

  // From kRetiring on: all nodes serve it already, by an earlier leader's orders.
  Rollout(RolloutPlan plan, RolloutOptions options, TimePoint now, Phase from = Phase::kPreparing);

  // `report` is of the node's present incarnation, and later than the last.
  void Report(const std::string& node, const NodeReport& report, TimePoint now);
  // The node is dead, or has started anew.
  void Gone(const std::string& node, const std::string& why);
  void Restarted(const std::string& node);

  struct Order {
    std::string node;
    decltype(ToNode::what) what;
  };
  // What is to be sent now; of an abandoned plan the caller says what is to be kept. While `hold`
  // stands, nothing is retired: a node of which nobody knows where it sends is away. `keep`, by
  // node, are the models that nodes outside still send to.
  std::vector<Order> Step(TimePoint now, bool hold,
                          const std::map<std::string, std::set<std::string>>& keep);
  // When Step may next have something, if no report comes.
  TimePoint Next() const;

  Phase phase() const { return phase_; }
  bool adopted() const { return phase_ == Phase::kRetiring || phase_ == Phase::kDone; }
  bool over() const { return adopted() || phase_ == Phase::kAbandoned; }
  const RolloutPlan& plan() const { return plan_; }
  // The node that made it be abandoned, and why. The node is empty where nobody in particular is to
  // blame.
  const std::string& culprit() const { return culprit_; }
  const std::string& why() const { return why_; }

 private:
  struct Progress {
    bool prepared = false;
    bool committed = false;
    bool retired = false;
    bool dropped = false;  // of an abandoned one: it has let go of it
    bool gone = false;
    int old_in_flight = -1;
    std::uint64_t fetched = 0;
    bool sent = false;
    TimePoint sent_at = kStart;
  };
  void Abandon(const std::string& node, std::string why);
  void Advance(TimePoint now, bool hold);
  bool Due(const Progress& progress, TimePoint now) const;
  void Forget();  // what was sent: the next phase has its own orders
  std::vector<Order> Commits(TimePoint now);
  bool OldOnesEnded(TimePoint now) const;

  const RolloutPlan plan_;
  const RolloutOptions options_;
  std::map<std::string, Progress> nodes_;
  Phase phase_ = Phase::kPreparing;
  TimePoint since_;  // of the phase; while it prepares, or since models last came
  bool held_ = false;
  std::string culprit_;
  std::string why_;
};
const char* Name(Rollout::Phase phase);

}  // namespace tactus
