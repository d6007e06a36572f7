// The agents of a whole fleet in one process, for a real controller: each has a connection of its
// own, the messages of src/cluster/control and the state of src/fleet; their workers are emulated,
// and hold a model as soon as they are asked to. Commands come on standard input, a line each:
//
//   start NAME, stop NAME   an agent; a stopped one falls silent, and starts as its next life
//   rates FACTOR            what all nodes measure: so many times what the fleet declares
//   counts                  answers `counts REPORTS LOST`, since the start
//
// Answers are lines too, with seconds of the monotonic clock: `started NAME AT`, and each time that
// all agents which run serve one plan, `everywhere TERM.EPOCH AGENTS FIRST LAST`: when the first of
// them was asked to prepare it, and when the last one had taken it over.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "cluster/control/codec.h"
#include "cluster/tls/peer_tls.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"
#include "fleet/node_state.h"
#include "platform/process.h"
#include "platform/wall_clock.h"
#include "program.h"
#include "workload/fleet_file.h"

namespace tactus {
namespace {

double Monotonic() {
  return std::chrono::duration<double>(BenchClock::now().time_since_epoch()).count();
}

void Print(const std::string& line) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Which plan each agent serves.
class PlanBoard {
 public:
  void Started() {
    const std::scoped_lock lock(mutex_);
    ++agents_;
  }
  void Stopped(PlanId serves) {
    const std::scoped_lock lock(mutex_);
    --agents_;
    --serving_[serves];
    Tell(last_);
  }
  void Preparing(PlanId plan) {
    const std::scoped_lock lock(mutex_);
    first_.try_emplace(plan, Monotonic());
  }
  void Serves(PlanId before, PlanId plan) {
    const std::scoped_lock lock(mutex_);
    --serving_[before];
    ++serving_[plan];
    last_ = plan;
    Tell(plan);
  }

 private:
  void Tell(PlanId plan) {
    if (plan.none() || plan == told_ || serving_[plan] != agents_) return;
    told_ = plan;
    Print(fmt::format("everywhere {}.{} {} {:.6f} {:.6f}", plan.term, plan.epoch, agents_,
                      first_[plan], Monotonic()));
  }

  std::mutex mutex_;
  int agents_ = 0;
  std::map<PlanId, int> serving_;
  std::map<PlanId, double> first_;
  PlanId last_, told_;
};

// As the fleet's file has it (bench/agents).
constexpr LinkReading kLink{.mbps = 40, .rtt = Millis(20)};

struct Shared {
  explicit Shared(const FleetInput& declared) : fleet(declared) {}

  const FleetInput& fleet;
  const WallClock clock;
  PlanBoard board;
  std::atomic<double> factor{1};
  std::atomic<std::uint64_t> reports{0}, lost{0};
};

class EmulatedAgent final : public grpc::ClientBidiReactor<control::FromNode, control::ToNode> {
 public:
  EmulatedAgent(std::size_t number, NodeKept kept, Shared& shared,
                std::unique_ptr<control::Control::Stub> stub)
      : number_(number),
        shared_(shared),
        stub_(std::move(stub)),
        state_({.name = shared.fleet.devices[number].name}, std::move(kept)) {
    const std::string port = std::to_string(number + 1);
    state_.WorkerUp({}, "127.0.0.1:" + port, "127.0.0.1:" + port, "127.0.0.1:" + port);
    serves_ = state_.slice().id;
    const FleetInput& fleet = shared_.fleet;
    for (FleetPipelineId::rep p = 0; p < fleet.pipelines.size(); ++p) {
      if (fleet.pipelines[p].source.value() != number_) continue;
      const auto& stages = fleet.pipelines[p].stages;
      for (FleetStageId::rep s = 0; s < stages.size(); ++s) {
        declared_.push_back({fleet.models[stages[s].model.value()],
                             fleet.RateOf(FleetPipelineId{p}, FleetStageId{s})});
      }
    }
  }

  void Start() {
    stub_->async()->Attend(&context_, this);
    StartRead(&read_);
    AddHold();  // until it is stopped: writes come from outside of reactions
    StartCall();
    const std::scoped_lock lock(mutex_);
    state_.Connected();
    Pump();
  }
  // What it has kept, once all reactions have ended.
  NodeKept Stop() {
    stopping_ = true;
    context_.TryCancel();
    Release();
    ended_.wait(false);
    const std::scoped_lock lock(mutex_);
    return state_.kept();
  }
  TimePoint due() const { return TimePoint{Duration{due_.load()}}; }
  PlanId serves() const {
    const std::scoped_lock lock(mutex_);
    return serves_;
  }
  void Tick() {
    const std::scoped_lock lock(mutex_);
    Pump();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Release();
    auto order = Decode(read_);
    if (order) {
      if (const auto* prepare = std::get_if<PrepareOrder>(&order->what)) {
        shared_.board.Preparing(prepare->slice.id);
      }
      const std::scoped_lock lock(mutex_);
      state_.Receive(*order, shared_.clock.Now());
      Pump();
    }
    StartRead(&read_);
  }
  void OnWriteDone(bool ok) override {
    const std::scoped_lock lock(mutex_);
    writing_ = false;
    if (ok) Write();
  }
  void OnDone(const grpc::Status&) override {
    if (!stopping_) ++shared_.lost;
    ended_ = true;
    ended_.notify_all();
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(released_, true)) RemoveHold();
  }

  // Under the mutex, as what follows: carries out what the state asks for.
  void Pump() {
    const TimePoint now = shared_.clock.Now();
    for (bool more = true; more;) {
      Measure();
      NodeActions actions = state_.Take(now);
      if (actions.keep) state_.WasKept();
      for (const ModelRef& each : actions.place) state_.Placed(each.name);
      for (const std::string& model : actions.load) state_.Loaded(model);
      for (const std::string& model : actions.unload) state_.Unloaded(model);
      if (!actions.send.empty()) waiting_ = std::move(actions.send.back());
      more = !actions.place.empty() || !actions.load.empty() || !actions.unload.empty();
    }
    if (state_.slice().id != serves_) {
      shared_.board.Serves(std::exchange(serves_, state_.slice().id), state_.slice().id);
    }
    due_ = state_.Next().time_since_epoch().count();
    Write();
  }
  // Of the pipelines that begin here, and of the links to whoever runs their stages.
  void Measure() {
    std::vector<ModelRate> rates = declared_;
    for (ModelRate& each : rates) each.rate_rps *= shared_.factor;
    state_.Measure(std::move(rates));
    std::map<std::string, LinkReading> links;
    for (const SliceRoute& route : state_.slice().routes) {
      for (const RouteTarget& to : route.to) {
        if (to.node != shared_.fleet.devices[number_].name) links[to.node] = kLink;
      }
    }
    std::vector<MeasuredLink> measured;
    for (const auto& [to, reading] : links) measured.push_back({to, reading});
    state_.MeasureLinks(std::move(measured));
  }
  // Reports are whole states: only the latest waits.
  void Write() {
    if (writing_ || !waiting_ || released_) return;
    written_.Clear();
    Encode(*waiting_, written_);
    waiting_.reset();
    writing_ = true;
    ++shared_.reports;
    StartWrite(&written_);
  }

  const std::size_t number_;
  Shared& shared_;
  const std::unique_ptr<control::Control::Stub> stub_;
  grpc::ClientContext context_;
  control::ToNode read_;
  std::atomic<bool> stopping_{false}, ended_{false};
  std::atomic<Duration::rep> due_{0};

  mutable std::mutex mutex_;
  NodeState state_;
  PlanId serves_;
  std::optional<FromNode> waiting_;
  control::FromNode written_;
  bool writing_ = false;
  bool released_ = false;            // the call may end
  std::vector<ModelRate> declared_;  // of the pipelines that begin here
};

// The fleet's agents, as commands start and stop them.
class EmulatedFleet {
 public:
  EmulatedFleet(const FleetInput& fleet, std::string controller, std::string tls)
      : shared_(fleet),
        controller_(std::move(controller)),
        tls_(std::move(tls)),
        kept_(fleet.devices.size()),
        ticker_([this](const std::stop_token& stop) { Tick(stop); }) {
    for (std::size_t d = 0; d < fleet.devices.size(); ++d) kept_[d].who.home = d + 1;
  }
  ~EmulatedFleet() {
    ticker_.request_stop();
    ticker_.join();
    for (auto& [number, agent] : agents_) agent->Stop();
  }

  Status Do(const std::string& line) {
    std::istringstream words(line);
    std::string command, name;
    words >> command;
    if (command == "rates") {
      double factor = 1;
      words >> factor;
      shared_.factor = factor;
      return {};
    }
    if (command == "counts") {
      Print(fmt::format("counts {} {}", shared_.reports.load(), shared_.lost.load()));
      return {};
    }
    words >> name;
    const auto& devices = shared_.fleet.devices;
    const auto device = std::ranges::find(devices, name, &FleetDevice::name);
    if (device == devices.end()) return InvalidArgument("no such command or node: " + line);
    const auto number = static_cast<std::size_t>(device - devices.begin());
    if (command == "start") return Start(number);
    if (command == "stop") Stop(number);
    return {};
  }

 private:
  Status Start(std::size_t number) {
    PeerTls tls;
    const std::string& name = shared_.fleet.devices[number].name;
    if (!tls_.empty()) {
      auto opened = PeerTls::Open(tls_ + "/" + name);
      if (!opened) return std::unexpected(opened.error());
      tls = *std::move(opened);
    }
    grpc::ChannelArguments arguments;  // as attendance.cc has them
    arguments.SetMaxReceiveMessageSize(kMostMessage);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
    ++kept_[number].who.count;
    auto agent =
        std::make_unique<EmulatedAgent>(number, kept_[number], shared_,
                                        control::Control::NewStub(grpc::CreateCustomChannel(
                                            controller_, tls.Towards(kControllerNode), arguments)));
    shared_.board.Started();
    Print(fmt::format("started {} {:.6f}", name, Monotonic()));
    agent->Start();
    const std::scoped_lock lock(mutex_);
    agents_[number] = std::move(agent);
    return {};
  }
  void Stop(std::size_t number) {
    std::unique_ptr<EmulatedAgent> agent;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = agents_.find(number);
      if (found == agents_.end()) return;
      agent = std::move(found->second);
      agents_.erase(found);
    }
    kept_[number] = agent->Stop();
    shared_.board.Stopped(agent->serves());
  }
  void Tick(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::scoped_lock lock(mutex_);
      const TimePoint now = shared_.clock.Now();
      for (const auto& [number, agent] : agents_) {
        if (agent->due() <= now) agent->Tick();
      }
    }
  }

  Shared shared_;
  const std::string controller_, tls_;
  std::vector<NodeKept> kept_;
  std::mutex mutex_;
  std::map<std::size_t, std::unique_ptr<EmulatedAgent>> agents_;  // under the mutex
  std::jthread ticker_;
};

int RunAgents(int argc, char** argv) {
  CLI::App app{"The agents of a fleet, for a real controller"};
  std::string controller, fleet_file, tls;
  app.add_option("--controller", controller, "HOST:PORT")->required();
  app.add_option("--fleet", fleet_file, "The fleet's file")->required();
  app.add_option("--tls", tls, "Folder with one of each node's name: its certificate");
  CLI11_PARSE(app, argc, argv);
  (void)RaiseDescriptorLimit();
  const auto fleet = LoadFleet(fleet_file);
  if (!fleet) return CannotRun("tactus_bench_agents", fleet.error());
  EmulatedFleet agents(*fleet, controller, tls);
  for (std::string line; std::getline(std::cin, line);) {
    if (Status done = agents.Do(line); !done) {
      return CannotRun("tactus_bench_agents", done.error());
    }
  }
  return 0;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) { return tactus::RunAgents(argc, argv); }
