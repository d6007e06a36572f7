// A service over another that serves ensembles besides: pipelines of that one's models, which
// clients call like any model. Everything else is passed on.
//
//   EnsembleService service(runtime, options, folders);
//   service.Open({"*"});   // or the names of those to load
//   ... front ends call service.Find and service.Infer ...
//
// An ensemble is ready while all models of its steps are, and fit. Nobody tells it of their coming
// and going: every Find looks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/expected.h"
#include "ensemble/served_ensemble.h"
#include "pipeline/build.h"
#include "pipeline/ensemble_declaration.h"
#include "platform/repeated_task.h"
#include "service/inference_service.h"
#include "service/observer.h"

namespace tactus {

// Where ensembles are declared. Given by the server, which knows the format of the configuration;
// `config` is a ModelConfig as JSON that replaces the folder's, or empty.
struct EnsembleFolders {
  // The folders that declare an ensemble.
  std::function<std::vector<std::string>()> list;
  std::function<bool(const std::string& model, const std::string& config)> holds;
  // One entry for each version that should serve.
  std::function<Expected<std::vector<EnsembleDeclaration>>(const std::string& model,
                                                           const std::string& config)>
      read;
};

struct EnsembleOptions {
  // The SLO of an ensemble that states none.
  Duration default_slo = Seconds(10);
  // Calls of ensembles that may be under way at once; one more is refused.
  std::size_t most_calls = 16384;
  // Runs of one step that may wait at once; an ensemble of which one request may make more does not
  // load. 0: any number.
  std::int64_t most_runs = 0;
  // Whether clients may load and unload.
  bool is_explicit = false;
  // Whether an ensemble that should serve and does not makes the whole not ready.
  bool strict_readiness = true;
  // Above 0: folders are read again so often, and what changed is served.
  Duration poll_interval{};
  // Who runs the steps, where that is not the service itself: it may have models that clients do
  // not see. Null: the service. Outlives it.
  InferenceService* runs_steps = nullptr;
  // Where its ensembles are steps of another service's, and so have steps that are models only:
  // whether a folder declares an ensemble of any kind. Empty: they are not.
  std::function<bool(const std::string& model)> any_ensemble;
  // The bit that marks its calls. A service below this one, whose ensembles are steps of this
  // one's, has another, and another than what lies between (service/routed_service.h,
  // cluster/steps).
  CallId mark = CallId{1} << 31;
  // What a model's batches take; empty, or nothing for a model: not known, so that all steps count
  // alike until they have been measured.
  std::function<std::optional<StageCost>(const ModelSpec&)> cost_of;
  // Where the steps of a pipeline run, by stage: those of one text, which is not empty, may be one
  // call (pipeline/step_groups.h). Empty: none ever are.
  std::function<std::vector<std::string>(const PipelineDeclaration&)> places;
  // Another number whenever places may have changed.
  std::function<std::uint64_t()> places_number;
  // Steps as they are told to another node, and read there; with `places`, and for Enter.
  std::function<Expected<std::string>(const EnsembleDeclaration&)> describe;
  std::function<Expected<EnsembleDeclaration>(std::string_view)> read_described;
  // Both outlive the service; may be null.
  Observer* observer = nullptr;
  PipelineJournal* journal = nullptr;
  std::function<void(const std::string&)> log;
  // For tests: real time otherwise. Then nobody waits for deadlines, and the test calls RunTimer.
  std::function<std::chrono::steady_clock::time_point()> clock;
};

class EnsembleService final : public InferenceService {
 public:
  // `steps` outlives it, and every call is answered before it goes. Ids of calls with options.mark
  // are those of ensembles; `steps` gives none such (a runtime's have the place of the call there).
  EnsembleService(InferenceService& steps, EnsembleOptions options, EnsembleFolders folders);
  ~EnsembleService() override;

  // Reads the folders of these; "*": of all. What cannot serve says why in the index and the log.
  void Open(const std::vector<std::string>& names);
  // Serves an ensemble from when its steps have models; loads none. The folder is read again.
  Status Declare(const std::string& name);

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  // An ensemble is ready if the models of all its steps are.
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  // Keeps the last kMostEntered that were described. Their steps run on this node.
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override;
  static constexpr std::size_t kMostEntered = 64;
  CallId Infer(InferCall&& call) override;
  void Cancel(CallId call) override;
  bool Live() const override { return steps_.Live(); }
  bool Ready() const override;
  std::vector<ModelState> Index() const override;
  // Loads first what the steps of an ensemble need and nobody has loaded.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Status UnloadWithSteps(const std::string& model) override;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override;

  // Calls of ensembles that are under way.
  std::size_t calls() const { return around_->calls.load(std::memory_order_relaxed); }
  // What is due at the clock's now.
  void RunTimer() { around_->timer.Run(around_->Now()); }
  // For tests, while nothing happens: calls and runs that are not over, of all ensembles.
  std::size_t unfinished() const;

 private:
  struct Version {
    EnsembleDeclaration declared;
    std::shared_ptr<EnsembleCounters> counters;
    std::shared_ptr<ServedEnsemble> served;  // as its steps' models were when somebody looked
  };
  struct Entry {
    std::map<std::int64_t, Version> versions;  // none: it could not be read, or was unloaded
    std::string reason;
    bool wanted = true;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Status Read(const std::string& model, const std::string& config);
  // Ready, once it has been read; where clients may load, with the models that it needs.
  Status Bring(const std::string& model);
  // With the models that its steps have now.
  Expected<std::shared_ptr<ServedEnsemble>> Bind(const EnsembleDeclaration& declared,
                                                 std::shared_ptr<EnsembleCounters> counters) const;
  // How an ensemble is bound: who runs its steps, with what models, and what those cost.
  struct Binding {
    EnsembleDeclaration declared;
    std::vector<std::shared_ptr<const ModelSpec>> models;
    std::vector<StageCost> costs;
    std::vector<std::shared_ptr<const StepGroup>> groups;
    std::shared_ptr<EnsembleCounters> counters;
    InferenceService* steps = nullptr;
    bool is_part = false;
    std::shared_ptr<ServedEnsemble> plain;
  };
  // With mutex_ held: the models of an ensemble's steps.
  std::vector<std::string> StepsOf(const std::string& ensemble) const;
  Expected<Binding> ModelsOf(const EnsembleDeclaration& declared, InferenceService& steps) const;
  Expected<std::shared_ptr<ServedEnsemble>> Make(Binding&& binding) const;
  // The same with steps that run at one place as one; null: there are none.
  std::shared_ptr<ServedEnsemble> Grouped(const Binding& plain,
                                          const std::shared_ptr<ServedEnsemble>& served) const;
  Status Group(Binding& binding, const std::vector<std::string>& names) const;
  bool PlacesHold(const ServedEnsemble& served) const;
  // With mutex_ held: it may be called from now on.
  void Keep(const std::shared_ptr<ServedEnsemble>& served) const;
  Expected<std::shared_ptr<ServedEnsemble>> Served(std::string_view model,
                                                   std::int64_t version) const;
  bool IsCurrent(const ServedEnsemble& served) const;
  static Status StepsReady(const ServedEnsemble& served);
  // Load, where there is the memory for it.
  Status LoadHere(const std::string& model, const std::string& config);
  StageCost CostOf(const ModelSpec& model) const;
  static CallId Refuse(InferCall& call, ErrorCode code, std::string why, Observer* observer);
  void Poll();
  bool IsEnsemble(std::string_view model) const;
  void Say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  InferenceService& steps_;
  const EnsembleOptions options_;
  const EnsembleFolders folders_;
  const std::shared_ptr<EnsembleSurroundings> around_;

  std::mutex changing_;              // held while folders are read and models loaded
  mutable std::shared_mutex mutex_;  // of what follows; held briefly
  mutable Entries entries_;
  // Everything that was bound and may still be called, by what Find gave for it.
  mutable std::unordered_map<const ModelSpec*, std::weak_ptr<ServedEnsemble>> bound_;

  mutable std::unordered_map<std::uint32_t, std::weak_ptr<ServedEnsemble>> by_number_;
  mutable std::uint32_t next_number_ = 0;
  struct Entered {
    std::shared_ptr<ServedEnsemble> served;
    std::uint64_t used = 0;
  };
  mutable std::map<std::string, Entered, std::less<>> entered_;  // by how they are described
  mutable std::uint64_t entries_used_ = 0;
  std::atomic<std::uint32_t> next_call_{1};

  std::map<std::string, std::string> poll_said_;  // by ensemble: why it was not read; the poller's
  RepeatedTask poller_;
};

}  // namespace tactus
