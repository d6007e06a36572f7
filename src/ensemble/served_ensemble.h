// An ensemble whose steps have models: takes calls, drives a Flow in real time, and answers each
// call once. A run of a step is an ordinary call of its model, with the step's deadline as limit.
//
// Thread-safe. What happens (a call, a step's reply, a deadline) is put into an inbox and handled
// by whoever brings it, one thread at a time: who finds another at it leaves. So the Flow needs no
// lock, none is held across Infer, and a reply that comes inside an Infer waits its turn.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/deadline_timer.h"
#include "base/expected.h"
#include "ensemble/call_tensors.h"
#include "ensemble/ensemble_counters.h"
#include "ensemble/pipeline_journal.h"
#include "ensemble/step_latency.h"
#include "pipeline/ensemble_declaration.h"
#include "pipeline/flow.h"
#include "service/inference_service.h"
#include "service/observer.h"
#include "service/step_group.h"

namespace tactus {

// What all ensembles of a service share.
struct EnsembleSurroundings {
  InferenceService& steps;  // runs them
  Observer* observer = nullptr;
  PipelineJournal* journal = nullptr;
  std::function<std::chrono::steady_clock::time_point()> clock;
  std::chrono::steady_clock::time_point origin;  // of serving time
  std::size_t most_calls = 0;                    // under way at once, of all ensembles together
  DeadlineTimer timer;
  std::atomic<std::size_t> calls{0};
  std::atomic<CallId> next_part{1};  // of calls that are parts of others

  TimePoint At(std::chrono::steady_clock::time_point real) const {
    return TimePoint{std::chrono::duration_cast<Duration>(real - origin)};
  }
  TimePoint Now() const { return At(clock()); }
};

class ServedEnsemble final : public std::enable_shared_from_this<ServedEnsemble>,
                             private FlowOutbox {
 public:
  struct Parts {
    EnsembleDeclaration declaration;
    BoundEnsemble bound;
    Pipeline pipeline;
    std::shared_ptr<EnsembleSurroundings> around;
    std::shared_ptr<EnsembleCounters> counters;
    // Who runs its steps, where not `around` says; outlives it.
    InferenceService* steps = nullptr;
    // Its calls are parts of others, which were admitted and are counted where those came.
    bool is_part = false;
    // By stage: several steps as one; null, or none at all: a model's.
    std::vector<std::shared_ptr<const StepGroup>> groups = {};
    // Where there are groups: the same ensemble without any.
    std::shared_ptr<ServedEnsemble> plain = nullptr;
  };
  explicit ServedEnsemble(Parts parts);

  // Set once, before the first call: stands in the ids of its calls.
  std::uint32_t number = 0;

  const ModelSpec& spec() const { return declaration_.model; }
  const PipelineDeclaration& pipeline() const { return declaration_.pipeline; }
  const std::vector<std::shared_ptr<const ModelSpec>>& models() const { return bound_.models; }
  InferenceService& steps() const { return steps_; }
  bool is_part() const { return is_part_; }
  // Null: it has no groups.
  const std::shared_ptr<ServedEnsemble>& plain() const { return plain_; }
  // Whether a call for these outputs needs all steps.
  bool NeedsAll(const std::vector<int>& outputs) const;
  // Runs a part's call, and gives what cancels it.
  std::function<void()> RunPart(InferCall&& call);

  // Where its steps run, as was asked when it was bound, and what that was by; of whoever binds.
  std::vector<std::string> places;
  mutable std::atomic<std::uint64_t> places_by{0};

  // Replies exactly once, as InferenceService::Infer does. `id`: what Cancel is told.
  void Infer(InferCall&& call, CallId id);
  // The reply still comes.
  void Cancel(CallId id);

  // Calls under way, and runs that a step still owes a reply: both 0 when all is quiet. Only while
  // nothing happens.
  std::size_t underway() const { return flow_.underway(); }
  std::size_t runs() const { return runs_.size() - free_.size(); }

 private:
  struct Arrived {
    InferCall call;
    CallId id;
  };
  struct Replied {
    std::uint32_t run;
    InferReply reply;
  };
  struct Left {
    CallId id;
  };
  struct Due {
    std::uint32_t run;
    std::uint64_t number;
  };
  using Event = std::variant<Arrived, Replied, Left, Due>;

  // A run of a step. Its place is free again once the step's reply is there.
  struct Run {
    RunKey key;
    TimePoint deadline;
    TimePoint began;
    std::uint64_t number = 0;  // unlike any other run's
    CallId call = 0;
    const ModelSpec* model = nullptr;  // that it was sent to; to be compared alone
    std::size_t in_call = 0;           // its position among its call's runs
    DeadlineTimer::Key due;            // where somebody looks whether it is late
    bool sent = false;
    bool cancelled = false;
    bool told = false;  // the Flow knows its end
  };
  struct Call {
    InferCall call;
    CallId id = 0;
    TimePoint received;
    TimePoint deadline;
    CallTensors tensors;
    std::vector<std::uint32_t> runs;  // whose end the Flow does not know
    bool answered = true;
    StageId failed;        // where `error` happened
    TimePoint failed_due;  // that step's deadline
    Error error;
    Duration queue{}, execution{};
    int batch = 0;
    bool emulated = false;
  };
  struct StartRun {
    std::uint32_t run;
  };
  struct CancelRun {
    std::uint32_t run;
    std::uint64_t number;
  };
  using Action = std::variant<StartRun, CancelRun, PipelineEnd>;

  void Start(const RunKey& run, TimePoint now, TimePoint deadline) override;
  void Lost(const RunKey&, TimePoint) override {}
  void Cancel(const RunKey& run) override;
  void Ended(const PipelineEnd& end) override { actions_.emplace_back(end); }

  void Take(Event&& event);
  void Handle(Arrived& event);
  void Handle(Replied& event);
  void Note(const Run& run, const ServedBy& served);
  bool WasReplaced(const Run& run, const InferReply& reply) const;
  void Handle(Left& event);
  void Handle(Due& event);
  void CarryOut();
  void Do(const StartRun& action);
  void Do(const CancelRun& action);
  void Do(const PipelineEnd& end);
  Status CheckOneRow(StageId stage, std::span<const InputTensor> inputs) const;
  // The step's call. What comes of it is an event.
  Status Send(std::uint32_t place);
  // The model that runs the step now, if it is still as the ensemble knows it.
  Expected<std::shared_ptr<const ModelSpec>> ModelOf(StageId stage) const;
  // Tells the Flow how the run ended.
  void Tell(std::uint32_t place, const Error& error, DropReason reason);
  void TellAnswer(std::uint32_t place, InferReply&& reply);
  RunKey Forget(std::uint32_t place);
  void Free(std::uint32_t place);
  void Learn();
  // The steps that make these outputs.
  StageMask WantedFor(const std::vector<int>& outputs) const;
  Expected<InferReply> Outputs(Call& call, const ItemProgress& progress) const;
  Error WhyDropped(const Call& call, const PipelineEnd& end) const;
  void Answer(Call& call, InferReply&& reply);
  Call& At(PipelineRequestId id);
  const std::string& NameOf(StageId stage) const {
    return declaration_.pipeline.stages[stage.value()].name;
  }

  const EnsembleDeclaration declaration_;
  const BoundEnsemble bound_;
  const std::shared_ptr<EnsembleSurroundings> around_;
  const std::shared_ptr<EnsembleCounters> counters_;
  InferenceService& steps_;
  const bool is_part_;
  const std::vector<std::shared_ptr<const StepGroup>> groups_;
  const std::shared_ptr<ServedEnsemble> plain_;

  std::mutex inbox_mutex_;
  std::vector<Event> inbox_;
  bool at_work_ = false;

  // Only whoever is at work touches these.
  Flow flow_;
  std::unique_ptr<FlowJournal> journal_;  // null: there is none
  TimePoint now_;
  std::vector<std::unique_ptr<Call>> calls_;  // by PipelineRequestId
  std::unordered_map<CallId, PipelineRequestId> underway_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> free_;
  std::vector<Action> actions_;
  std::uint64_t next_number_ = 1;
  std::vector<StepLatency> latencies_;  // by stage; empty where budgets are stated
  TimePoint learn_at_;
};

}  // namespace tactus
