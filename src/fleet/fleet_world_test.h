// For tests: a whole cluster in virtual time. Leaders, agents, their disks, workers that load
// models, and a network that delays, loses and doubles messages and falls apart; all of it by a
// seed. After every event it checks what must hold whatever happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "fleet/fleet_world_options_test.h"
#include "fleet/leader.h"
#include "fleet/made_fleet_test.h"
#include "fleet/node_state.h"

namespace tactus {

class FleetWorld {
 public:
  explicit FleetWorld(FleetWorldOptions options)
      : o_(std::move(options)),
        chance_(Rng::Stream(o_.seed, "world")),
        placing_(Rng::Stream(o_.seed, "planner")),
        input_(MadeFleet(o_.servers, o_.edges)) {
    for (std::size_t i = 0; i < input_.devices.size(); ++i) {
      const std::string& name = input_.devices[i].name;
      nodes_[name].disk.who.home = 1000 + i;
      StartHost(name);
    }
    StartLeader();
    if (o_.faults) Later(Seconds(2), [this] { Fault(); });
    if (o_.faults) At(o_.heal_at, [this] { Heal(); });
  }

  static FleetInput MadeFleet(int servers, int edges) {
    return FleetOfServersAndEdges(servers, edges);
  }

  // Until `end`, or until something is wrong.
  void Run(TimePoint end) {
    while (!events_.empty() && !::testing::Test::HasFailure()) {
      const auto first = events_.begin();
      if (first->first.first > end) break;
      now_ = first->first.first;
      const auto event = std::move(first->second);
      events_.erase(first);
      event();
      if (o_.transcript) Check();
    }
    now_ = std::max(now_, end);
  }

  // Every roll-out has ended, and what is served is one plan, everywhere, whole and nothing else.
  bool Settled() const {
    const FleetLeader* leader = nullptr;
    for (const auto& each : leaders_) {
      if (each.leader->superseded()) continue;
      if (leader != nullptr) return false;
      leader = each.leader.get();
    }
    if (leader == nullptr || leader->rollout() == nullptr) return false;
    if (leader->rollout()->phase() != Rollout::Phase::kDone) return false;
    return std::ranges::all_of(nodes_, [&](const auto& each) {
      const SimNode& node = each.second;
      if (node.agent == nullptr || !node.worker_up) return false;
      const std::vector<std::string> models = ModelsOf(node.disk.slice);
      return node.disk.slice.id == leader->serving() && KnowsPeers(node) && HasBytes(node) &&
             node.loaded == std::set<std::string>(models.begin(), models.end());
    });
  }

  TimePoint now() const { return now_; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t lines() const { return lines_; }
  int adopted() const { return adopted_; }
  int abandoned() const { return abandoned_; }
  std::string Tail() const {
    std::string text;
    for (const std::string& line : tail_) text += line + "\n";
    return text;
  }
  FleetLeader& leader() { return *leaders_.back().leader; }
  const FleetSlice& SliceOf(const std::string& node) const { return nodes_.at(node).disk.slice; }
  void StopHost(const std::string& name) {
    SimNode& node = nodes_.at(name);
    if (node.agent != nullptr) KillAgent(node, name);
    if (node.worker_up) KillWorker(node, name);
    node.host_up = false;
  }

 private:
  struct SimNode {
    std::unique_ptr<NodeState> agent;  // null: it is not running
    NodeKept disk;
    int life = 0;  // of the agent; what was under way for an earlier one is void
    bool host_up = false;
    bool worker_up = false;
    int worker_life = 0;
    std::set<std::string> loaded;
    std::map<std::string, std::string> lies;   // in its worker's repository: digests by name
    std::map<std::string, std::string> bytes;  // of what is loaded
    std::set<std::string> stopped;             // placing these
    std::set<std::string> lost;                // by a crash, and not yet loaded again
    FleetSlice routes;                         // by which it sends
    TimePoint wake = kNever;
  };
  struct SimLeader {
    std::unique_ptr<FleetLeader> leader;
    int life = 0;
    PlanId ended;
    TimePoint wake = kNever;
  };

  void At(TimePoint at, std::function<void()> event) {
    events_.emplace(std::pair(at, ++serial_), std::move(event));
  }
  void Later(Duration after, std::function<void()> event) { At(now_ + after, std::move(event)); }
  bool Chance(double part) { return Chaos() && chance_.Uniform() < part; }
  bool Chaos() const { return o_.faults && now_ < o_.heal_at; }
  Duration Between(Duration low, Duration high) {
    return low + Duration{static_cast<Duration::rep>(chance_.Uniform() *
                                                     static_cast<double>((high - low).count()))};
  }

  void Say(const std::string& text) {
    if (!o_.transcript) return;
    const std::string line = std::to_string(now_.time_since_epoch().count()) + " " + text;
    for (const char c : line) sum_ = (sum_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    ++lines_;
    tail_.push_back(line);
    constexpr std::size_t kTail = 60;
    if (tail_.size() > kTail) tail_.erase(tail_.begin());
  }

  // --- nodes
  void StartHost(const std::string& name) {
    SimNode& node = nodes_.at(name);
    node.host_up = true;
    StartAgent(name);
  }

  void StartAgent(const std::string& name) {
    SimNode& node = nodes_.at(name);
    if (!node.host_up || node.agent != nullptr) return;
    ++node.life;
    node.stopped.clear();
    ++node.disk.who.count;
    node.agent = std::make_unique<NodeState>(NodeStateOptions{.name = name}, node.disk);
    Say(name + " starts, life " + std::to_string(node.disk.who.count));
    if (node.worker_up) {
      node.agent->WorkerUp({node.loaded.begin(), node.loaded.end()}, "", "", PlaceOf(name));
    } else {
      StartWorker(name);
    }
    Pump(name);
  }

  // Another one for each life of the worker.
  std::string PlaceOf(const std::string& name) const {
    return name + ":" + std::to_string(nodes_.at(name).worker_life);
  }
  // It knows where those are to which it sends.
  bool KnowsPeers(const SimNode& node) const {
    for (const SliceRoute& route : node.disk.slice.routes) {
      for (const RouteTarget& to : route.to) {
        const PeerPlace place{to.node, PlaceOf(to.node)};
        if (std::ranges::find(node.disk.peers, place) == node.disk.peers.end()) return false;
      }
    }
    return true;
  }

  // What it serves is what the leader's repository has.
  static bool HasBytes(const SimNode& node) {
    const std::vector<std::string> models = ModelsOf(node.disk.slice);
    return std::ranges::all_of(node.disk.slice.models, [&](const ModelRef& each) {
      const bool loads = std::ranges::binary_search(models, each.name);
      const auto& has = loads ? node.bytes : node.lies;
      const auto found = has.find(each.name);
      return found != has.end() && found->second == each.digest;
    });
  }
  void Place(const std::string& name, const ModelRef& ref) {
    const int life = nodes_.at(name).life;
    const bool chance = Chance(0.05);
    Later(Between(Millis(20), Seconds(3)), [=, this] {
      SimNode& node = nodes_.at(name);
      if (node.agent == nullptr || node.life != life) return;
      const bool fails = node.stopped.erase(ref.name) > 0 || chance;
      if (fails) node.agent->PlaceFailed(ref.name, "other bytes", now_);
      if (!fails) node.lies[ref.name] = ref.digest;
      if (!fails) node.agent->Placed(ref.name);
      Pump(name);
    });
  }

  void StartWorker(const std::string& name) {
    const int life = nodes_.at(name).life;
    Later(Between(Millis(100), Seconds(1)), [this, name, life] {
      SimNode& node = nodes_.at(name);
      if (!node.host_up || node.agent == nullptr || node.life != life || node.worker_up) return;
      node.worker_up = true;
      ++node.worker_life;
      node.agent->WorkerUp({}, "", "", PlaceOf(name));
      Pump(name);
    });
  }

  void KillAgent(SimNode& node, const std::string& name) {
    Say(name + ": agent dies");
    node.agent.reset();
  }
  void KillWorker(SimNode& node, const std::string& name) {
    Say(name + ": worker dies");
    node.worker_up = false;
    node.lost.insert(node.loaded.begin(), node.loaded.end());
    node.loaded.clear();
    if (node.agent == nullptr) return;
    node.agent->WorkerDown("it died", false);
    StartWorker(name);
    Pump(name);
  }

  void Load(const std::string& name, const std::string& model, bool load) {
    const int worker = nodes_.at(name).worker_life;
    const int life = nodes_.at(name).life;
    const bool fails = load && Chance(0.05);
    const std::string bytes = nodes_.at(name).lies[model];
    if (!load) nodes_.at(name).loaded.erase(model);  // from the order on it takes no more requests
    Later(Between(Millis(20), Seconds(2)), [=, this] {
      SimNode& node = nodes_.at(name);
      if (!node.worker_up || node.worker_life != worker) return;
      if (load && !fails) node.loaded.insert(model);
      if (load && !fails) node.bytes[model] = bytes;
      if (load && !fails) node.lost.erase(model);
      if (node.agent == nullptr || node.life != life) return;
      if (!load) node.agent->Unloaded(model);
      if (load && !fails) node.agent->Loaded(model);
      if (fails) node.agent->LoadFailed(model, "no memory", now_);
      Pump(name);
    });
  }

  void Pump(const std::string& name) {
    SimNode& node = nodes_.at(name);
    if (node.agent == nullptr) return;
    if (o_.rates) node.agent->Measure(o_.rates(name, now_));
    NodeActions actions = node.agent->Take(now_);
    node.routes = node.agent->slice();
    bool written = true;
    if (actions.keep) {
      written = !Chance(0.05);
      if (written) {
        node.disk = *actions.keep;
        node.agent->WasKept();
      }
    }
    node.stopped.insert(actions.stop.begin(), actions.stop.end());
    for (const ModelRef& each : actions.place) Place(name, each);
    for (const std::string& model : actions.load) Load(name, model, true);
    for (const std::string& model : actions.unload) Load(name, model, false);
    for (FromNode& message : actions.send) {
      if (!written) break;
      EXPECT_EQ(ReportOf(message).committed, node.disk.slice.id) << "it says what is not kept";
      if (o_.on_report) o_.on_report(message);
      for (const SimLeader& each : leaders_) ToLeader(name, each.life, message);
    }
    const TimePoint next = std::max(node.agent->Next(), now_ + Millis(1));
    if (node.wake <= next && node.wake > now_) return;
    node.wake = next;
    At(next, [this, name, next] {
      SimNode& woken = nodes_.at(name);
      if (woken.wake != next) return;
      woken.wake = kNever;
      Pump(name);
    });
  }

  // --- leaders
  void StartLeader() {
    LeaderOptions options = o_.leader;
    options.term = ++terms_;  // as whoever elects leaders would say
    if (o_.remembered) options.remembered = o_.remembered();
    // A repository that changes between leaders; of one model every node has its own.
    for (const char* each : {"find", "read", "camera0"}) {
      if (o_.faults) options.digests[each] = each + std::to_string(terms_ / 3);
    }
    SimLeader leader;
    leader.life = static_cast<int>(terms_);
    leader.leader = std::make_unique<FleetLeader>(
        input_, o_.planning ? o_.planning : [this](const FleetInput& in) { return Anywhere(in); },
        options, LeaderKept{}, now_, o_.history);
    leaders_.push_back(std::move(leader));
    Say("a leader of term " + std::to_string(terms_) + " starts");
    PumpLeader(leaders_.back().life);
  }

  Expected<FleetPlan> Anywhere(const FleetInput& input) {
    FleetPlan plan;
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      const FleetPipeline& pipeline = input.pipelines[p];
      for (FleetStageId::rep s = 0; s < pipeline.stages.size(); ++s) {
        const auto copies = 1 + placing_.Below(2);
        for (std::uint64_t copy = 0; copy < copies; ++copy) {
          const auto device = static_cast<DeviceId::rep>(placing_.Below(input.devices.size()));
          plan.instances.push_back({FleetPipelineId{p}, FleetStageId{s}, DeviceId{device}});
        }
      }
    }
    plan.routes = RoutesOf(plan.instances);
    return plan;
  }

  void PumpLeader(int life) {
    const auto found = std::ranges::find(leaders_, life, &SimLeader::life);
    if (found == leaders_.end()) return;
    found->leader->Step(now_);
    LeaderActions actions = found->leader->Take();
    if (actions.keep) found->leader->WasKept();
    for (const ToNode& order : actions.send) FromLeader(life, order);
    Count(*found);
    WakeLeader(*found, std::max(found->leader->Next(), now_ + Millis(1)));
  }

  void WakeLeader(SimLeader& leader, TimePoint next) {
    if (next == kNever || (leader.wake <= next && leader.wake > now_)) return;
    leader.wake = next;
    At(next, [this, life = leader.life, next] {
      const auto woken = std::ranges::find(leaders_, life, &SimLeader::life);
      if (woken == leaders_.end() || woken->wake != next) return;
      woken->wake = kNever;
      PumpLeader(life);
    });
  }

  void Count(SimLeader& each) {
    const Rollout* rollout = each.leader->rollout();
    if (rollout == nullptr || !rollout->over() || rollout->plan().id == each.ended) return;
    each.ended = rollout->plan().id;
    (rollout->adopted() ? adopted_ : abandoned_) += 1;
    Say("plan " + std::to_string(each.ended.term) + "." + std::to_string(each.ended.epoch) + " " +
        Name(rollout->phase()) + " " + rollout->culprit() + " " + rollout->why());
  }

  // --- the network
  void Carry(int leader, const std::string& node, const std::function<void()>& deliver) {
    if (Chaos() && cut_.contains({leader, node})) return;
    const int copies = Chance(0.08) ? 0 : Chance(0.08) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const Duration delay =
          Chance(0.03) ? Between(Millis(100), Seconds(6)) : Between(Millis(1), Millis(40));
      Later(delay, deliver);
    }
  }
  void ToLeader(const std::string& name, int life, const FromNode& message) {
    Carry(life, name, [this, life, message] {
      const auto found = std::ranges::find(leaders_, life, &SimLeader::life);
      if (found == leaders_.end()) return;
      Say(message.node + " -> " + std::to_string(life) + " " + std::to_string(message.sequence));
      found->leader->Receive(message, now_);
      WakeLeader(*found, now_ + Millis(5));  // with whatever else comes until then
    });
  }
  void FromLeader(int life, const ToNode& order) {
    if (o_.on_order) o_.on_order(order);
    Carry(life, order.node, [this, life, order] {
      SimNode& node = nodes_.at(order.node);
      Say(std::to_string(life) + " -> " + order.node + " order " +
          std::to_string(order.what.index()));
      if (const auto* prepare = std::get_if<PrepareOrder>(&order.what)) Remember(order, *prepare);
      if (node.agent == nullptr) return;
      node.agent->Receive(order, now_);
      Pump(order.node);
    });
  }

  // --- faults
  void Fault() {
    if (!Chaos()) return;
    auto at = nodes_.begin();
    std::advance(at, static_cast<long>(chance_.Below(nodes_.size())));
    const std::string name = at->first;
    SimNode& node = at->second;
    switch (chance_.Below(6)) {
      case 0:
        if (node.agent != nullptr) KillAgent(node, name);
        Later(Between(Millis(50), Seconds(15)), [this, name] { StartAgent(name); });
        break;
      case 1:
        if (node.worker_up) KillWorker(node, name);
        break;
      case 2:  // the whole machine
        StopHost(name);
        Later(Between(Seconds(1), Seconds(20)), [this, name] { StartHost(name); });
        break;
      case 3:
      case 4: {
        const std::pair link(leaders_.empty() ? 0 : leaders_.back().life, name);
        cut_.insert(link);
        Later(Between(Seconds(1), Seconds(20)), [this, link] { cut_.erase(link); });
        break;
      }
      default:
        FaultOfLeaders();
    }
    Later(Between(Millis(200), Seconds(8)), [this] { Fault(); });
  }
  void FaultOfLeaders() {
    std::erase_if(leaders_, [](const SimLeader& each) { return each.leader->superseded(); });
    if (leaders_.size() < 3 && chance_.Uniform() < 0.5) return StartLeader();  // one more
    if (leaders_.empty()) return;
    Say("the leader of term " + std::to_string(leaders_.front().life) + " dies");
    leaders_.erase(leaders_.begin());
  }
  void Heal() {
    Say("all heals");
    cut_.clear();
    leaders_.clear();
    StartLeader();
    for (const auto& [name, node] : nodes_) StartHost(name);
  }

  // --- what must hold
  void Remember(const ToNode& order, const PrepareOrder& prepare) {
    const auto [known, fresh] =
        planned_.emplace(std::pair(prepare.slice.id, order.node), prepare.slice);
    EXPECT_EQ(known->second, prepare.slice) << "two plans of one number";
    EXPECT_EQ(prepare.slice.id.term, order.term);
  }

  void Check() {
    for (auto& [name, node] : nodes_) {
      EXPECT_GE(node.disk.slice.id, last_[name].slice.id) << name << " went back";
      EXPECT_GE(node.disk.term, last_[name].term) << name << " obeys an earlier term";
      if (node.disk.slice.id != last_[name].slice.id) {
        last_[name] = node.disk;
        EXPECT_EQ(node.disk.slice, planned_.at({node.disk.slice.id, name}));
      }
      if (!node.host_up) continue;
      for (const SliceRoute& route : node.routes.routes) {
        for (const RouteTarget& to : route.to) CheckTarget(name, route, nodes_.at(to.node), to);
      }
    }
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << o_.seed << " at " << ToSeconds(now_ - kStart) << " s\n" << Tail();
    }
  }
  void CheckTarget(const std::string& from, const SliceRoute& route, const SimNode& target,
                   const RouteTarget& to) {
    const bool ready = target.loaded.contains(route.model) || target.lost.contains(route.model);
    EXPECT_TRUE(ready) << from << " sends " << route.pipeline << "/" << route.stage << " to "
                       << to.node << ", which does not hold " << route.model;
  }

  const FleetWorldOptions o_;
  Rng chance_;
  Rng placing_;
  const FleetInput input_;
  TimePoint now_ = kStart;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t serial_ = 0;
  std::map<std::string, SimNode> nodes_ = [this] {
    std::map<std::string, SimNode> nodes;
    for (const FleetDevice& device : input_.devices) nodes[device.name];
    return nodes;
  }();
  std::vector<SimLeader> leaders_;
  std::uint64_t terms_ = 0;
  std::set<std::pair<int, std::string>> cut_;
  std::map<std::pair<PlanId, std::string>, FleetSlice> planned_;
  std::map<std::string, NodeKept> last_;
  std::uint64_t sum_ = 14695981039346656037ULL;
  std::uint64_t lines_ = 0;
  std::vector<std::string> tail_;
  int adopted_ = 0;
  int abandoned_ = 0;
};

}  // namespace tactus
