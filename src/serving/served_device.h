// The models of a repository on their lanes: the engines, the profile, the runtime, the host's
// lanes and, with --plan or --planner, who splits the device. It knows no client.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cluster/site/worker.h"
#include "core/policy.h"
#include "engines/engine_shelf.h"
#include "platform/repeated_task.h"
#include "runtime/layout/planning_thread.h"
#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"
#include "serving/host_lanes.h"
#include "serving/journals.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"
#include "workload/predictor_file.h"
#include "workload/profile_file.h"

namespace tactus {

class ServedDevice {
 public:
  struct Parts {
    std::unique_ptr<Policy> policy;
    SiteWorker* site = nullptr;  // outlives the device; null: it is of no site
    ServingMetrics& metrics;     // outlives the device
    Observer& observer;          // hears of the device's calls and batches; outlives it
    Log log;
  };

  // Loads the models. `options` outlives the device. An error for options that do not go together,
  // for files that are no use, and for what the machine lacks.
  static Expected<std::unique_ptr<ServedDevice>> Load(const ServeOptions& options, Parts parts);

  Runtime& runtime() { return *runtime_; }
  EngineShelf& engines() { return engines_; }
  // Null with --engine, which is the host's too.
  HostLanes* host() { return host_.get(); }
  PipelineJournal* pipeline_journal() { return journals_.pipelines(); }
  // Adds what it knows beside the runtime: of the engines, the planner and the journal.
  void AddTo(RuntimeReading& reading) const;
  // The policy, the lanes and the dispatcher's options.
  JournalHeader setting() const;
  // "2 lanes of 2 slots", "1 lane of 4 threads", "4 cores, split as plan.json says".
  std::string LanesText() const;
  // Where the times of a model's batches come from.
  std::string LatenciesOf(const ModelSpec& spec) const;

  // From now on the lanes follow the load and the file of the plan, and processes that die are
  // started again.
  void Start();
  // Reads the --plan again; false where there is none.
  bool TakePlanAgain();
  // While models are still there: what --save-predictor is to write. Processes are no longer
  // watched.
  void BeginStop();
  // Calls that an engine holds are answered with an error.
  void Abandon();
  // Once nobody calls any more: ends lanes, writes what was learnt.
  void Stop();
  // After the last decision.
  void CloseJournals() { journals_.Close(log_); }

 private:
  ServedDevice(const ServeOptions& options, Parts parts);
  Status CheckOptions();
  Status LoadProfileFile();
  Status ReadShares();
  Status Load();
  Status StartHost(const RuntimeOptions& options);
  Status SplitDevice();
  RuntimeParts PartsOf(std::unique_ptr<Policy> policy);
  Expected<ProfileTable::ModelRows> EmulatedRows(const ModelSpec& spec) const;
  // The engine that the device's models run on, most of them.
  Expected<Engine*> MainEngine();
  PredictorFile PredictorHere();
  bool Profiled(const ModelSpec& spec) const;

  const ServeOptions& o_;
  std::unique_ptr<Policy> given_;  // until the runtime has it
  Policy* const policy_;           // the runtime's; not touched while it runs
  SiteWorker* const site_;
  ServingMetrics& metrics_;
  Observer& observer_;
  const Log log_;
  std::optional<ProfileFile> profile_;
  std::optional<SplitOptions> split_;     // with --plan or --planner
  std::optional<PredictorFile> resumed_;  // with --predictor
  std::optional<PredictorFile> learnt_;   // with --save-predictor, from BeginStop on
  EngineShelf engines_;
  ServedJournals journals_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<HostLanes> host_;
  std::unique_ptr<PlanningThread> planning_;  // with --planner
  std::unique_ptr<RepeatedTask> reload_;      // with --plan
  std::unique_ptr<RepeatedTask> watch_;       // of processes, with --isolate
};

}  // namespace tactus
