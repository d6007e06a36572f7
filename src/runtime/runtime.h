// The serving runtime: a Dispatcher driven by a real clock, engines on lanes, and models from a
// repository, behind the InferenceService that front ends use.
//
//   Runtime runtime(options, {.policy = std::move(policy), .engine_for = engines, ...});
//   Status ready = runtime.Start();      // loads what should serve
//   ... front ends call Find and Infer ...
//   runtime.Stop(Seconds(5));
//
// Threads: one for the dispatcher, one that answers, two that bring back what is lost (more with
// `revivers`), and one for each lane slot, unless all models are on deferred engines (see
// core/engine.h), which have their own. Loading and unloading run on the thread that asks for them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "core/policy.h"
#include "dispatch/dispatcher.h"
#include "dispatch/journal.h"
#include "platform/cpu_affinity.h"
#include "runtime/calls/run_watch.h"
#include "runtime/layout/device_layout.h"
#include "runtime/models/model_repository.h"
#include "service/inference_service.h"
#include "service/observer.h"
#include "service/readings.h"
#include "workload/profile_file.h"
#include "workload/share_profiles.h"

namespace tactus {

struct RuntimeOptions {
  // Lanes run batches; each gets a core for each thread of each of its slots where there are
  // enough.
  int lanes = 1;
  // Devices that lanes are on in turn, as the engine counts them.
  int devices = 1;
  // Batches at once in one lane, of different models or of one. 1 is time division, which
  // EdgeServing assumes. A model whose engine cannot run so many is refused.
  int slots = 1;
  // Threads of the engine that run one batch.
  int threads = 1;
  // Instead of these three; nothing is served before Adopt.
  std::optional<SplitOptions> split;
  // Requests (rows) that may wait for one model; a call that does not fit is refused whole.
  std::size_t queue_capacity = 4096;
  // When a waiting request is given up. kUnmeetable: as soon as its deadline cannot be met any
  // more.
  Expiry expiry = Expiry::kUnmeetable;
  // Whether policies are told the profile as batches take now (docs/reference/following.md).
  FollowOptions follow = {};
  // Calls that may be under way at once, of all models together.
  std::size_t call_capacity = 16384;
  // Bytes that the inputs of accepted calls and the answers that clients have not taken yet may
  // have together: beyond them new calls are refused.
  std::size_t pending_bytes = std::size_t{1} << 30;
  // The SLO of a model that states none. Policies weigh requests by it, and it expires them.
  Duration default_slo = Seconds(10);
  // Pins each lane to its cores, counted from the last, and keeps the runtime's other threads off
  // those cores. Nothing is pinned where that would leave none for the others.
  bool pin = true;
  // Instead of pinning: where all of its threads run. Empty: as `pin` says.
  std::vector<int> cores;
  // How long an idle thread of the runtime looks for work before it sleeps: it saves a wake-up of
  // the kernel (5 to 50 us) for its length in processor time.
  Duration spin = Micros(10);
  // From a lane's death to the first attempt to bring it back, and between attempts.
  Duration revive_after = Seconds(1);
  // Where it is longer: a lane that does not come back, or dies again within this time, waits twice
  // as long each time, up to this.
  Duration revive_longest = {};
  // How many are brought back at a time.
  int revivers = 1;
  // When a run counts as one that may never end: its lane is lost until it does.
  RunWatchOptions watch = {};
  // Whether a model that should serve and does not makes the whole not ready.
  bool strict_readiness = true;
  // How long an unloaded model may finish what waits for it before the rest is refused.
  Duration unload_grace = Seconds(10);
};

// Rows of granted batches: they have the shape class `group` and this deadline. 0: no group.
struct RowsPlace {
  std::uint32_t group = 0;
  TimePoint deadline;
};

// The cores of a runtime's lanes, and those that they leave; of neither where nothing is pinned.
CpuAffinity CoresFor(const RuntimeOptions& options);

struct RuntimeParts {
  std::unique_ptr<Policy> policy;
  // The engine that runs a platform ("onnxruntime_onnx"); it outlives the runtime.
  std::function<Expected<Engine*>(std::string_view platform)> engine_for;
  // Measured latencies. A model that it lacks is measured briefly when it is loaded.
  std::optional<ProfileFile> profile;
  ProfileOptions profile_options;
  // What others have measured, which holds instead of the profile; nothing for a model that they do
  // not know. Empty: nobody has.
  std::function<std::optional<ProfileTable::ModelRows>(const ModelSpec&)> known_rows;
  // Where the rows of a call that is a part of a granted batch go; from any thread. Empty: they are
  // rows like any others.
  std::function<RowsPlace(const GrantedPart&, TimePoint deadline)> place_granted;
  // Both outlive the runtime; may be null.
  Journal* journal = nullptr;
  Observer* observer = nullptr;
  // One line for people, without a newline; from any thread. Empty: nothing is said.
  std::function<void(const std::string&)> log;   // of what somebody may have to mend
  std::function<void(const std::string&)> news;  // of what happened as it should
};

class Runtime final : public InferenceService {
 public:
  Runtime(RuntimeOptions options, RuntimeParts parts);
  ~Runtime() override;  // Stop(0), if it was not stopped

  // Loads what the repository's control mode says, then serves. Models that fail to load are
  // UNAVAILABLE in the index with the reason; only a repository that cannot be read is an error.
  Status Start(RepositoryOptions repository);
  // Starts without a repository; models come through Serve.
  void Start();
  // Serves a model that is not in a repository, or replaces it. Blocking.
  Status Serve(ModelSpec spec);

  // Where the device is split: its lanes become what `plan` says, while requests are served.
  // `plan` has `models` in the order of its ModelIds. Blocks until the lanes that it does not have
  // are gone. kInvalidArgument, and nothing happens, for more lanes than a device may have;
  // kUnimplemented without a split; kCancelled once changes have ended; another error where a
  // lane cannot be had, which it names: the lanes that there were serve on.
  Status Adopt(const Plan& plan, const std::vector<std::string>& models);
  // No plan is adopted from now on; an Adopt under way returns once the engine has loaded the lane
  // that it is at, whatever still runs on old lanes. Waits for nothing. Stop does it too.
  void EndChanges();
  // How the device is split now. Without a split: no plan.
  DeviceLayout layout() const;
  // What a planner is to be asked for the models that are loaded.
  // kUnimplemented without a split; an error where a share's profile does not suit a model.
  Expected<PlanQuestion> CurrentPlanQuestion() const;

  // A lane died that an engine said was lost: loads its models anew and opens it. Done by the
  // runtime itself, every `revive_after`; nothing happens to one that lives. kUnimplemented where
  // lanes are parts of a device, which come and go with plans. Blocks.
  Status ReviveLane(LaneId lane);

  // The lane died while it ran nothing, as far as the caller knows: it is closed and brought back.
  // Nothing happens to one that is closed already, or runs a batch, which will tell. From any
  // thread. Blocks.
  void LaneDied(LaneId lane, const Error& why);
  // The lane's engine gives no sign of life, or does again: it gets no new batch meanwhile, and
  // where all lanes are like that, this is not ready. From any thread. Blocks.
  void SetLaneSilent(LaneId lane, bool silent);

  // The policy has heard something that no event of the dispatcher tells: ask it again soon. From
  // any thread.
  void Nudge();

  // The grace of a stop is over: new calls and those that wait are refused, and so is what runs, as
  // soon as its engine lets go of it; engines in processes of their own are ended, and no lane
  // comes back. Waits for none of it. Stop does it too.
  void Abandon();
  // Refuses new calls, lets those accepted end within `grace`, answers the rest, joins all threads.
  // It waits for what an engine in this process does not end.
  void Stop(Duration grace);

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  CallId Infer(InferCall&& call) override;
  void Cancel(CallId call) override;
  bool Live() const override;
  bool Ready() const override;
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  std::vector<ModelState> Index() const override;
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override;

  // Gauges, from any thread.
  std::size_t pending() const;       // requests (rows) that wait or run
  std::size_t calls() const;         // calls accepted and not yet answered
  std::size_t input_bytes() const;   // of these calls
  std::size_t answer_bytes() const;  // of batches, that front ends or ensembles still hold
  Duration uptime() const;
  // Real time as the records of the observer have it.
  TimePoint At(std::chrono::steady_clock::time_point real) const;
  std::vector<LaneLoad> lane_loads() const;
  // By model: the rows of the calls that were accepted since it was loaded, whatever became of
  // them.
  std::map<std::string, std::uint64_t> offered() const;
  // The served models as the dispatcher has it now: models by ModelId with their profile.
  std::shared_ptr<const ServedModels> served_models() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
