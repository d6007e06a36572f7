// Brings models onto the lanes and takes them away: engine handles, profile rows, the deployment
// that the dispatcher works with. It knows nothing of folders and names that clients ask for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"
#include "dispatch/dispatcher.h"
#include "runtime/dispatch_loop.h"
#include "runtime/places.h"
#include "runtime/served_model.h"
#include "runtime/wall_clock.h"
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
    const Policy* policy = nullptr;  // it may know that it will serve nothing of a model
    // Not null: the lanes are places for parts of one device; they decide what is loaded where, and
    // `shares` says what batches take, not `profile`.
    Places* places = nullptr;
    std::vector<ShareProfile> shares;
  };

  ModelHost(Options options, const WallClock& clock, DispatchLoop& loop);

  // Loads the model on every lane and finds what it costs; may take seconds, stalls nothing. The
  // dispatcher does not know of it yet. Thread-safe.
  Expected<std::shared_ptr<ServedModel>> Prepare(ModelSpec spec);
  // Gives the model an id and the dispatcher the new deployment. Thread-safe.
  void Publish(const std::shared_ptr<ServedModel>& model);
  // Until no call is under way, for at most `grace`.
  void AwaitIdle(const ServedModel& model, Duration grace) const;
  // No new call reaches the model. Those it has end within `grace`, the rest are refused; then it
  // leaves the lanes and its id is free. Blocks. Thread-safe.
  void Retire(const std::shared_ptr<ServedModel>& model, Duration grace);

  // Where lanes are places. `plan` has `models` in the order of its ModelIds; the dispatcher gets
  // it with the ids that they have here, without what is not loaded. Thread-safe.
  void SetPlan(std::shared_ptr<const Plan> plan, std::vector<std::string> models);

  // Loads what is deployed anew on a lane that is closed and runs nothing, and opens it; an error,
  // and it stays closed, where a model cannot be had. Not where lanes are places. Thread-safe.
  Status Reload(LaneId lane);

  // Refuses whatever waits and launches nothing more; models stay loaded until they are retired.
  void RefuseAll();

  std::shared_ptr<const Deployment> deployment() const;
  // The models that are deployed.
  std::vector<std::shared_ptr<const ServedModel>> served() const;

 private:
  Expected<ProfileTable::ModelRows> FindRows(const ServedModel& model, ModelHandle handle,
                                             int& max_batch);
  Status LoadOnLanes(ModelSpec& spec, Engine& engine, std::vector<ModelHandle>& handles) const;
  // The lanes that a model is loaded on to find out what it is like.
  std::vector<LaneSpec> LanesAtFirst() const;
  std::shared_ptr<const Plan> PlanHere() const;
  void WarnIfNeverServed(const ServedModel& served) const;
  void Say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  std::size_t LaneClasses() const {
    return options_.places == nullptr ? 1 : options_.shares.size();
  }
  // Makes the deployment of `published_` and hands it to the dispatcher; `mutex_` is held.
  void Deploy();

  const Options options_;
  const WallClock& clock_;
  DispatchLoop& loop_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ServedModel>> published_;  // by ModelId; null: free
  std::vector<Model> described_;                         // by ModelId: the last model there
  std::vector<bool> leaving_;  // by ModelId: no longer deployed, id not free yet
  std::shared_ptr<const Deployment> deployment_ = std::make_shared<Deployment>();
  std::shared_ptr<const Plan> plan_;      // where lanes are places; null: none yet
  std::vector<std::string> plan_models_;  // by the plan's ModelId
  std::atomic<std::uint64_t> measured_models_{0};
};

}  // namespace tactus
