#include "cluster/control/agent.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "cluster/control/attendance.h"
#include "cluster/control/blob_client.h"
#include "cluster/control/loop.h"
#include "cluster/control/model_placer.h"
#include "cluster/control/state_file.h"
#include "cluster/tls/tls.h"
#include "fleet/node_state.h"
#include "fleet/rate_windows.h"
#include "fleet/worker_routes.h"
#include "platform/process.h"
#include "platform/repeated_task.h"
#include "platform/wall_clock.h"

namespace tactus {
namespace {

constexpr auto kMeasureEvery = std::chrono::seconds(1);
constexpr Duration kWriteAgain = Millis(200);

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

// Models that lie beside others, which need them. Loading an ensemble loads those that nobody has
// loaded: one that the worker has by other bytes must be loaded before.
class NeededModels {
 public:
  void WorkerUp(const std::vector<std::string>& loaded) {
    found_ = {loaded.begin(), loaded.end()};
    by_.clear();
  }
  // As ModelFetch gives them: the model itself is the last.
  void Placed(const std::string& model, ModelLinks links) {
    links.pop_back();
    needs_[model] = std::move(links);
  }
  std::vector<std::string> Changed(const std::string& model) {
    std::vector<std::string> changed;
    for (const auto& [name, folder] : needs_[model]) {
      const auto known = by_.find(name);
      const bool other = known == by_.end() ? found_.contains(name) : known->second != folder;
      if (other) changed.push_back(name);
      by_[name] = folder;
    }
    return changed;
  }

 private:
  std::map<std::string, ModelLinks> needs_;
  std::set<std::string> found_;                      // in a worker that ran already
  std::map<std::string, std::filesystem::path> by_;  // where each was loaded from
};

}  // namespace

struct Agent::Body {
  Body(AgentOptions given, NodeKept kept, FolderLock held, ModelStore on_disk, Log told)
      : options(std::move(given)),
        lock(std::move(held)),
        models(std::move(on_disk)),
        log(std::move(told)),
        state({.name = options.node}, std::move(kept)) {}

  void Start();
  void Up(const KeptWorker& kept, bool adopted);
  void Down(const std::string& why, bool failing);
  void Order(const ToNode& order);
  void Carry(const NodeActions& actions);
  void Place(const ModelRef& ref);
  void Do(const std::string& model, bool load);
  void Measure();
  void Point(std::shared_ptr<WorkerCalls> to);
  void Run();
  void End();
  std::string AddressOf(std::uint16_t port) const {
    return options.worker.address + ":" + std::to_string(port);
  }
  // Where other nodes send to.
  std::string PeerPlaceOf(const KeptWorker& kept) const {
    if (kept.peer == 0) return AddressOf(kept.grpc);
    return options.worker.peer_address + ":" + std::to_string(kept.peer);
  }
  // Tells the worker where its pipelines' steps run, where that is not what it was last told.
  Status WriteRoutes();

  const AgentOptions options;
  const FolderLock lock;
  ModelStore models;
  const Log log;
  const WallClock clock;
  Loop loop;
  NodeState state;  // of the loop, like all below to the next remark
  std::shared_ptr<WorkerCalls> calls;
  int life = 0;  // of the worker: what an earlier one answers is void
  RateWindows rates;
  std::string said;    // of the connection, last
  std::string denied;  // last
  TimePoint write_at = kStart;
  std::optional<WorkerRoutes> routed;  // what the worker was told

  std::mutex measured_mutex;
  std::shared_ptr<WorkerCalls> measured;  // under the mutex
  int measured_life = 0;                  // under the mutex
  // Calls that may take long, one after the other; no link of a model's changes while it loads.
  Loop errands;
  NeededModels needed;  // of the errands
  std::unique_ptr<ModelPlacer> placer;
  std::unique_ptr<Attendance> attendance;
  std::unique_ptr<Worker> worker;
  std::jthread errand_thread;
  RepeatedTask measuring;
  std::jthread thread;
};

void Agent::Body::Start() {
  using std::chrono::steady_clock;
  errand_thread = std::jthread([this] {
    while (errands.RunUntil(steady_clock::now() + std::chrono::hours(1))) {
    }
  });
  placer = std::make_unique<ModelPlacer>(
      models, BlobsOfControllers(options.controllers, options.tls), options.node, log);
  attendance = std::make_unique<Attendance>(
      options.controllers, options.tls,
      AttendanceEvents{
          .connected = [this] { loop.Post([this] { state.Connected(); }); },
          .order = [this](ToNode order) { loop.Post([this, order] { Order(order); }); },
          .lost =
              [this](std::string why) {
                loop.Post([this, why] {
                  if (why != said)
                    log("no controller at " + Join(options.controllers) + ": " + why);
                  said = why;
                });
              }});
  worker = std::make_unique<Worker>(
      options.worker, WorkerEvents{.up =
                                       [this](const KeptWorker& kept, bool adopted) {
                                         loop.Post([this, kept, adopted] { Up(kept, adopted); });
                                       },
                                   .down =
                                       [this](const std::string& why, bool failing) {
                                         loop.Post([this, why, failing] { Down(why, failing); });
                                       }});
  measuring.Start("measuring", Every(kMeasureEvery, [this] { Measure(); }), kMeasureEvery);
  thread = std::jthread([this] { Run(); });
}

void Agent::Body::Run() {
  TimePoint next = clock.Now();
  while (loop.RunUntil(clock.RealAt(next))) {
    const TimePoint now = clock.Now();
    if (now < write_at) {  // the disk refused: not at once again
      next = write_at;
      continue;
    }
    state.Fetched(placer->fetched());
    Carry(state.Take(now));
    next = std::max(state.Next(), write_at);
  }
}

// What the worker holds is asked for on the other thread: it may still be busy.
void Agent::Body::Up(const KeptWorker& kept, bool adopted) {
  const int now = ++life;
  rates = {};
  Point(std::make_shared<WorkerCalls>(AdminSocketIn(options.worker.state)));
  log("worker " + std::to_string(kept.process.pid) + (adopted ? " found again" : " started") +
      ": http " + AddressOf(kept.http) + ", grpc " + AddressOf(kept.grpc));
  errands.Post([this, now, kept, digests = state.DigestsInUse(), planned = ModelsOf(state.slice()),
                called = calls] {
    auto loaded = called->Loaded();
    needed.WorkerUp(loaded.value_or(std::vector<std::string>{}));
    // What others brought along goes with them: it is no model of an earlier plan.
    for (const std::string& each : models.NeededBy(digests)) {
      if (loaded && !std::ranges::binary_search(planned, each)) std::erase(*loaded, each);
    }
    loop.Post([this, now, kept, loaded] {
      if (now != life) return;
      if (!loaded) log("the worker does not say what it holds: " + loaded.error().message);
      state.WorkerUp(loaded.value_or(std::vector<std::string>{}), AddressOf(kept.http),
                     AddressOf(kept.grpc), PeerPlaceOf(kept));
    });
  });
}

void Agent::Body::Down(const std::string& why, bool failing) {
  ++life;
  Point(nullptr);
  log("worker: " + why + (failing ? "; it does not stay up" : ""));
  state.WorkerDown(why, failing);
}

void Agent::Body::Order(const ToNode& order) {
  const PlanId before = state.slice().id;
  state.Receive(order, clock.Now());
  said.clear();
  if (state.denied() != denied) {
    denied = state.denied();
    if (!denied.empty()) log("the controller refuses this node: " + denied);
  }
  if (state.slice().id != before) {
    log("plan " + std::to_string(state.slice().id.epoch) + " of term " +
        std::to_string(state.slice().id.term) + " serves: " + Join(ModelsOf(state.slice())));
  }
}

Status Agent::Body::WriteRoutes() {
  WorkerRoutes routes = RoutesOf(state.kept(), options.node);
  if (routed == routes) return {};
  // Pipelines of the node's own repository.
  if (Status linked = models.LinkOwn(); !linked) return linked;
  Status written = Write(routes, options.worker.state);
  if (written) routed = std::move(routes);
  return written;
}

// A plan that it says it serves is on disk, and its worker sends by it.
void Agent::Body::Carry(const NodeActions& actions) {
  Status written;
  if (actions.keep) written = Write(*actions.keep, options.worker.state);
  if (written && actions.keep) state.WasKept();
  if (written) written = WriteRoutes();
  const bool kept = written.has_value();
  if (!kept) {
    log(written.error().message);
    write_at = clock.Now() + kWriteAgain;
  }
  for (const std::string& model : actions.stop) placer->Stop(model);
  for (const ModelRef& each : actions.place) Place(each);
  for (const std::string& model : actions.load) Do(model, true);
  for (const std::string& model : actions.unload) Do(model, false);
  for (const FromNode& message : actions.send) {
    if (kept) attendance->Send(message);
  }
}

void Agent::Body::Place(const ModelRef& ref) {
  placer->Place(ref, state.DigestsInUse(), [this, model = ref.name](Expected<ModelLinks> links) {
    errands.Post([this, model, links = std::move(links)] {
      Status placed;
      if (!links) placed = std::unexpected(links.error());
      for (const auto& [name, folder] : links.value_or(ModelLinks{})) {
        if (placed) placed = models.Link(name, folder);
      }
      if (placed) needed.Placed(model, *links);
      loop.Post([this, model, placed] {
        if (placed) return state.Placed(model);
        if (placed.error().code != ErrorCode::kCancelled) log(placed.error().message);
        state.PlaceFailed(model, placed.error().message, clock.Now());
      });
    });
  });
}

void Agent::Body::Do(const std::string& model, bool load) {
  if (calls == nullptr) return;
  errands.Post([this, model, load, own = state.IsOwn(model), now = life, called = calls] {
    Status done = load && own ? models.LinkOwn(model) : Status();
    if (load && !own) {
      for (const std::string& each : needed.Changed(model)) {
        if (done) done = called->Load(each);
      }
    }
    if (done) done = load ? called->Load(model) : called->Unload(model);
    loop.Post([this, model, load, now, done] {
      if (now != life) return;
      if (!done) {
        log((load ? "load of " : "unload of ") + model + ": " + done.error().message);
      }
      if (!load) {
        state.Unloaded(model);
      } else if (done) {
        state.Loaded(model);
      } else {
        state.LoadFailed(model, done.error().message, clock.Now());
      }
    });
  });
}

void Agent::Body::Measure() {
  std::shared_ptr<WorkerCalls> asked;
  int of = 0;
  {
    const std::scoped_lock guard(measured_mutex);
    asked = measured;
    of = measured_life;
  }
  if (asked == nullptr) return;
  const auto counts = asked->Counts();
  if (!counts) return;
  loop.Post([this, of, counts, links = ReadLinks(options.worker.state)] {
    if (of != life) return;
    state.MeasureLinks(links);
    rates.Add(clock.Now(), {counts->begin(), counts->end()});
    state.Measure(rates.Rates());
  });
}

void Agent::Body::Point(std::shared_ptr<WorkerCalls> to) {
  calls = std::move(to);
  const std::scoped_lock guard(measured_mutex);
  measured = calls;
  measured_life = life;
}

void Agent::Body::End() {
  errands.Close();
  loop.Close();
  thread.join();  // before what it uses
  placer.reset();
  attendance.reset();
  worker.reset();
  measuring.Stop();
  errand_thread.join();
}

Agent::Agent(std::unique_ptr<Body> body) : body_(std::move(body)) {}

Agent::~Agent() { body_->End(); }

void Agent::StopAll(std::chrono::milliseconds grace) { body_->worker->Stop(grace); }

Expected<std::unique_ptr<Agent>> Agent::Start(AgentOptions options, Log log) {
  if (options.controllers.empty()) {
    return InvalidArgument("an agent without a controller; name one by --controller HOST:PORT");
  }
  for (const std::string& each : options.controllers) {
    if (Status reach = CheckReach(each, options.tls); !reach) {
      return std::unexpected(std::move(reach.error()));
    }
  }
  auto lock = FolderLock::Take(options.worker.state);
  if (!lock) return std::unexpected(std::move(lock.error()));
  options.models.state = options.worker.state;
  auto models = ModelStore::Open(options.models);
  if (!models) return std::unexpected(std::move(models.error()));
  options.worker.models = models->repository();
  auto kept = ReadNode(options.worker.state);
  if (!kept) return std::unexpected(std::move(kept.error()));
  ++kept->who.count;
  // A life that is not on disk could be taken for the one before.
  if (Status written = Write(*kept, options.worker.state); !written) {
    return std::unexpected(std::move(written.error()));
  }
  if (!kept->slice.id.none()) {
    log("plan " + std::to_string(kept->slice.id.epoch) + " of term " +
        std::to_string(kept->slice.id.term) + ", as kept: " + Join(ModelsOf(kept->slice)));
  }
  auto body = std::make_unique<Body>(std::move(options), *std::move(kept), *std::move(lock),
                                     *std::move(models), std::move(log));
  body->Start();
  return std::unique_ptr<Agent>(new Agent(std::move(body)));
}

}  // namespace tactus
