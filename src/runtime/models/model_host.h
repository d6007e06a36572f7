// Brings models onto the lanes and takes them away: engine handles, profile rows, the served models
// that the dispatcher works with. It knows nothing of folders and names that clients ask for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "dispatch/dispatcher.h"
#include "platform/wall_clock.h"
#include "runtime/calls/dispatch_turns.h"
#include "runtime/layout/lane_loader.h"
#include "runtime/models/quiet_moment.h"
#include "runtime/models/served_model.h"
#include "workload/profile_file.h"
#include "workload/share_profiles.h"

namespace tactus {

class ModelHost {
 public:
  struct Options {
    std::vector<LaneSpec> lanes;
    Duration default_slo{};
    std::function<Expected<Engine*>(std::string_view platform)> engine_for;
    std::optional<ProfileFile> profile;
    ProfileOptions profile_options;
    std::function<void(const std::string&)> log;
    // Somebody is to call Restore for the lane, until it succeeds. May be empty.
    std::function<void(LaneId, const Error&)> left_out = {};
    // The files of a model that serves are not those that it was loaded from, as a lane finds that
    // loads it anew: what they hold now is to be loaded, on all lanes. Called by Restore; may be
    // empty.
    std::function<void(const ServedModel&)> files_changed = {};
    // What others have measured; see RuntimeParts.
    std::function<std::optional<ProfileTable::ModelRows>(const ModelSpec&)> known_rows = {};
    const Policy* policy = nullptr;  // it may know that it will serve nothing of a model
    // Not null: one device is split into lanes by plans; it decides what is loaded where, and
    // `shares` says what batches take, not `profile`.
    LaneLoader* loader = nullptr;
    std::vector<ShareProfile> shares;
  };

  ModelHost(Options options, const WallClock& clock, DispatchTurns& loop);

  // Loads the model on every lane and finds what it costs; may take seconds, stalls nothing. The
  // dispatcher does not know of it yet. Thread-safe.
  Expected<std::shared_ptr<ServedModel>> Prepare(ModelSpec spec);
  // Gives the model an id and the dispatcher the new set of served models. Thread-safe.
  void Publish(const std::shared_ptr<ServedModel>& model);
  // What `publish` publishes the dispatcher has only at its end, all at once: a set costs what all
  // its models do.
  void PublishTogether(const std::function<void()>& publish);
  // Until no call is under way, for at most `grace`.
  void AwaitIdle(const ServedModel& model, Duration grace) const;
  // No new call reaches the model. Those it has end within `grace`, the rest are refused; then it
  // leaves the lanes and its id is free. Blocks. Thread-safe.
  void Retire(const std::shared_ptr<ServedModel>& model, Duration grace);

  // Where the device is split. `plan` has `models` in the order of its ModelIds; the dispatcher
  // gets it with the ids that they have here, without what is not loaded. Thread-safe.
  void SetPlan(std::shared_ptr<const Plan> plan, std::vector<std::string> models);

  // Loads what is deployed anew on a lane that is closed and runs nothing, and opens it; an error,
  // and it stays closed, where a model cannot be had. A model of an engine in a process of its own
  // is left out instead, for it may be why the process dies, and `Options::left_out` is told. Not
  // where the device is split. Thread-safe.
  Status Reload(LaneId lane);
  // Loads on a lane that is open what Reload left out there: each model first in a process apart,
  // so that one that kills its process costs the lane nothing. One whose files have changed is not
  // put there, but loaded as for the first time (Options::files_changed). An error while one is
  // left out. Thread-safe.
  Status Restore(LaneId lane);

  // Refuses whatever waits and launches nothing more; models stay loaded until they are retired.
  void RefuseAll();
  // Every engine that a model was asked of is abandoned, and is asked for no more. Loads under way
  // fail for that, and nothing more is logged of models. Thread-safe.
  void AbandonEngines();
  bool abandoned() const { return abandoned_.load(); }

  std::shared_ptr<const ServedModels> served_models() const;
  // The models that are deployed.
  std::vector<std::shared_ptr<const ServedModel>> served() const;

 private:
  // Prepare, with the error as it came.
  Expected<std::shared_ptr<ServedModel>> PrepareHere(ModelSpec spec);
  // What it measures is numbered from `first` on.
  Expected<ProfileTable::ModelRows> FindRows(const ServedModel& model, ModelHandle handle,
                                             BatchId first, int& max_batch);
  // The engine of a platform, while there is one to be had.
  Expected<Engine*> EngineFor(const std::string& platform);
  Status CheckSlots(const ModelSpec& spec, const EngineTraits& traits) const;
  // The lanes that a model is loaded on to find out what it is like.
  std::vector<LaneSpec> LanesAtFirst(const EngineTraits& traits) const;
  // From there to the lanes that serve it.
  Status MoveToLanes(ServedModel& model) const;
  using Handles = std::vector<ModelHandle>;  // as `models`; 0: none
  static Status LoadAnew(const std::vector<std::shared_ptr<ServedModel>>& models,
                         const LaneSpec& lane, Handles& handles);
  void LoadIsolatedAnew(const std::vector<std::shared_ptr<ServedModel>>& models, LaneId lane,
                        Handles& handles) const;
  // Swaps the lane's new handles in, where the models are still there; what remains in `handles`
  // is to be unloaded. How many models of isolated engines the lane has not.
  int PutOnLane(const std::vector<std::shared_ptr<ServedModel>>& models, LaneId lane,
                Handles& handles, bool opens);
  std::shared_ptr<const Plan> PlanHere() const;
  void WarnIfNeverServed(const ServedModel& served) const;
  void Say(const std::string& line) const {
    if (options_.log && !abandoned()) options_.log(line);
  }
  std::size_t LaneClasses() const {
    return options_.loader == nullptr ? 1 : options_.shares.size();
  }
  // Makes the served models of `published_` and hands it to the dispatcher; `mutex_` is held.
  void Deploy();

  const Options options_;
  const WallClock& clock_;
  DispatchTurns& loop_;
  QuietMoment quiet_;
  std::vector<std::mutex> lane_mutexes_;  // one Reload or Restore at a time; before `mutex_`
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ServedModel>> published_;  // by ModelId; null: free
  std::vector<Model> described_;                         // by ModelId: the last model there
  std::vector<bool> leaving_;           // by ModelId: no longer deployed, id not free yet
  std::set<Engine*> engines_;           // that a model was asked of
  std::atomic<bool> abandoned_{false};  // all of them
  bool together_ = false;               // nothing is deployed for now
  std::shared_ptr<const ServedModels> served_models_ = std::make_shared<ServedModels>();
  std::shared_ptr<const Plan> plan_;      // where the device is split; null: none yet
  std::vector<std::string> plan_models_;  // by the plan's ModelId
  std::atomic<std::uint64_t> measured_models_{0};
  std::atomic<std::uint64_t> loads_{0};
};

}  // namespace tactus
