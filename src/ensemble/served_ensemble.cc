#include "ensemble/served_ensemble.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "ensemble/nested_steps.h"
#include "ensemble/step_tensors.h"
#include "platform/held_turns.h"
#include "service/deadline.h"
#include "service/same_tensors.h"

namespace tactus {
namespace {

constexpr Duration kLearnEvery = Seconds(1);

// How the Flow hears of a step that gave no answer.
// Of a step that failed, or whose model is not there: no sign that there is too much to do.
constexpr DropReason kFailed = DropReason::kUnloaded;

DropReason ReasonOf(Outcome outcome) {
  if (outcome == Outcome::kExpired) return DropReason::kExpired;
  if (outcome == Outcome::kCancelled) return DropReason::kCancelled;
  if (outcome == Outcome::kShed) return DropReason::kShed;
  return kFailed;
}

std::vector<Pipeline> One(Pipeline pipeline) {
  std::vector<Pipeline> one;
  one.push_back(std::move(pipeline));
  return one;
}

// What the ensemble's owner says of its calls; 0: each step as its model does.
std::uint32_t PriorityOf(const ModelSpec& model) {
  return model.parameters.contains("priority") ? static_cast<std::uint32_t>(model.priority) : 0;
}

bool IsBudgeted(const PipelineDeclaration& pipeline) {
  return pipeline.stages.front().budget > Duration{};
}

}  // namespace

ServedEnsemble::ServedEnsemble(Parts parts)
    : declaration_(std::move(parts.declaration)),
      bound_(std::move(parts.bound)),
      around_(std::move(parts.around)),
      counters_(std::move(parts.counters)),
      steps_(parts.steps != nullptr ? *parts.steps : around_->steps),
      is_part_(parts.is_part),
      groups_(std::move(parts.groups)),
      plain_(std::move(parts.plain)),
      flow_(One(std::move(parts.pipeline)), *this) {
  if (!IsBudgeted(declaration_.pipeline)) latencies_.resize(bound_.models.size());
  if (around_->journal == nullptr || is_part_) return;
  journal_ = around_->journal->Begin(declaration_.pipeline, flow_.pipelines()[0]);
  flow_.Record(journal_.get());
}

StageMask ServedEnsemble::WantedFor(const std::vector<int>& outputs) const {
  if (outputs.empty()) return kAllStages;
  StageMask wanted = 0;
  for (const int output : outputs) {
    const StageId maker = bound_.tensors.outputs[static_cast<std::size_t>(output)].from;
    if (maker.valid()) wanted |= StageMask{1} << maker.value();
  }
  if (wanted == 0) return kAllStages;
  return flow_.pipelines()[0].graph.WithAllBefore(wanted);
}

bool ServedEnsemble::NeedsAll(const std::vector<int>& outputs) const {
  const StageMask wanted = WantedFor(outputs);
  const std::size_t stages = bound_.models.size();
  const StageMask all =
      stages == PipelineGraph::kMostStages ? kAllStages : (StageMask{1} << stages) - 1;
  return (wanted & all) == all;
}

std::function<void()> ServedEnsemble::RunPart(InferCall&& call) {
  const CallId id = around_->next_part.fetch_add(1, std::memory_order_relaxed);
  around_->calls.fetch_add(1, std::memory_order_relaxed);
  Infer(std::move(call), id);
  return [self = shared_from_this(), id] { self->Cancel(id); };
}

void ServedEnsemble::Infer(InferCall&& call, CallId id) { Take(Arrived{std::move(call), id}); }

void ServedEnsemble::Cancel(CallId id) { Take(Left{id}); }

void ServedEnsemble::Take(Event&& event) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(event));
    if (at_work_) return;
    at_work_ = true;
  }
  std::vector<Event> events;
  for (;;) {
    events.clear();
    {
      const std::lock_guard lock(inbox_mutex_);
      if (inbox_.empty()) {
        at_work_ = false;
        return;
      }
      events.swap(inbox_);
    }
    // A step's rows, and the next steps of several calls, are decided together.
    const HeldTurns together;
    for (Event& each : events) {
      now_ = around_->Now();
      std::visit([this](auto& of_its_kind) { Handle(of_its_kind); }, each);
      CarryOut();
    }
    if (!latencies_.empty() && now_ >= learn_at_) Learn();
  }
}

ServedEnsemble::Call& ServedEnsemble::At(PipelineRequestId id) {
  while (calls_.size() <= id.value()) calls_.push_back(std::make_unique<Call>());
  return *calls_[id.value()];
}

void ServedEnsemble::Handle(Arrived& event) {
  const TimePoint received = around_->At(event.call.received);
  const TimePoint deadline =
      DeadlineOf(received, declaration_.pipeline.slo, event.call.limit, event.call.way);
  const PipelineRequestId id = flow_.Begin(
      0, now_, deadline, WantedFor(event.call.outputs),
      is_part_ || event.call.priority > 0 ? PipelineEntry::kAside : PipelineEntry::kByWindow);
  Call& call = At(id);
  call.call = std::move(event.call);
  call.call.model.reset();  // this ensemble, which its steps' calls keep alive
  call.id = event.id;
  call.received = received;
  call.deadline = deadline;
  call.tensors.Begin(bound_, flow_.pipelines()[0], call.call);
  call.answered = false;
  call.failed = StageId{};
  call.queue = call.execution = Duration{};
  call.batch = 0;
  call.emulated = false;
  underway_[event.id] = id;
}

void ServedEnsemble::Handle(Left& event) {
  const auto found = underway_.find(event.id);
  if (found != underway_.end()) flow_.Cancel(found->second, now_);
}

void ServedEnsemble::Handle(Due& event) {
  Run& run = runs_[event.run];
  if (run.number != event.number || run.told) return;
  const CallId call = run.call;
  Tell(event.run,
       {ErrorCode::kDeadlineExceeded,
        fmt::format("step '{}' had no answer at its deadline", NameOf(run.key.run.stage))},
       DropReason::kExpired);
  steps_.Cancel(call);
}

void ServedEnsemble::Handle(Replied& event) {
  const Run run = runs_[event.run];
  if (WasReplaced(run, event.reply)) {
    around_->timer.Cancel(run.due);
    actions_.emplace_back(StartRun{event.run});
    return;
  }
  Note(run, event.reply.served);
  if (!run.told && event.reply.status) {
    TellAnswer(event.run, std::move(event.reply));
  } else if (!run.told) {
    Tell(event.run, event.reply.status.error(), ReasonOf(event.reply.served.outcome));
  }
  Free(event.run);
}

// Between Find and Infer, so that it was refused and may be sent again.
bool ServedEnsemble::WasReplaced(const Run& run, const InferReply& reply) const {
  if (run.told || run.cancelled || !reply.refused || reply.status) return false;
  if (reply.status.error().code != ErrorCode::kUnavailable || now_ >= run.deadline) return false;
  const auto now = ModelOf(run.key.run.stage);
  return now && now->get() != run.model;
}

void ServedEnsemble::Note(const Run& run, const ServedBy& served) {
  if (run.told) return;  // its call may have ended
  const auto& runs = At(run.key.request).call.step_runs;
  if (runs == nullptr) return;
  const auto instant = [this](TimePoint at) { return around_->origin + (at - kStart); };
  runs->push_back({.step = NameOf(run.key.run.stage),
                   .began = instant(run.began),
                   .ended = instant(now_),
                   .outcome = served.outcome,
                   .batch = served.batch,
                   .queue_us = served.queue_us,
                   .exit = std::string(served.exit)});
}

void ServedEnsemble::TellAnswer(std::uint32_t place, InferReply&& reply) {
  const Run& run = runs_[place];
  const StageId stage = run.key.run.stage;
  Call& call = At(run.key.request);
  const Error nobody{ErrorCode::kCancelled, "nobody waits for it"};
  if (call.answered) return Tell(place, nobody, DropReason::kCancelled);
  if (reply.outputs.size() != bound_.tensors.stages[stage.value()].outputs.size()) {
    return Tell(
        place,
        {ErrorCode::kInternal,
         fmt::format("model '{}' gave {} outputs of {}", bound_.models[stage.value()]->name,
                     reply.outputs.size(), bound_.tensors.stages[stage.value()].outputs.size())},
        kFailed);
  }
  int rows = 0;
  if (flow_.pipelines()[0].levels.opened_by(stage).valid()) {
    const auto counted = CountRowsOf(reply.outputs, CountsRows(*bound_.models[stage.value()]));
    if (!counted) return Tell(place, counted.error(), kFailed);
    rows = *counted;
  }
  if (!latencies_.empty()) {
    const Duration queue = std::min(Duration{Micros(reply.served.queue_us)}, now_ - run.began);
    latencies_[stage.value()].Add(now_, now_ - run.began - queue);
  }
  call.queue += Micros(reply.served.queue_us);
  call.execution += Micros(reply.served.execution_us);
  call.batch = std::max(call.batch, reply.served.batch);
  call.emulated = call.emulated || reply.served.emulated;
  call.tensors.Store(run.key.run, std::move(reply));
  flow_.Answered(Forget(place), rows, now_);
}

void ServedEnsemble::Tell(std::uint32_t place, const Error& error, DropReason reason) {
  const Run run = runs_[place];
  const RunKey key = Forget(place);
  Call& call = At(key.request);
  // What was cancelled for another's failure is not why the call ends.
  if (!call.answered && !run.cancelled) {
    call.failed = key.run.stage;
    call.failed_due = run.deadline;
    call.error = error;
  }
  flow_.Refused(key, reason, now_);
}

RunKey ServedEnsemble::Forget(std::uint32_t place) {
  Run& run = runs_[place];
  CHECK(!run.told, "a run ends once");
  run.told = true;
  around_->timer.Cancel(run.due);
  std::vector<std::uint32_t>& runs = At(run.key.request).runs;
  // A call may have as many runs as a queue has places.
  runs[run.in_call] = runs.back();
  runs_[runs.back()].in_call = run.in_call;
  runs.pop_back();
  return run.key;
}

void ServedEnsemble::Free(std::uint32_t place) {
  CHECK(runs_[place].told, "a run's end is told before its place is free");
  runs_[place].number = 0;
  free_.push_back(place);
}

void ServedEnsemble::Start(const RunKey& key, TimePoint now, TimePoint deadline) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  std::vector<std::uint32_t>& runs = At(key.request).runs;
  runs_[place] = {.key = key,
                  .deadline = deadline,
                  .began = now,
                  .number = next_number_++,
                  .in_call = runs.size()};
  runs.push_back(place);
  actions_.emplace_back(StartRun{place});
}

void ServedEnsemble::Cancel(const RunKey& key) {
  for (const std::uint32_t place : At(key.request).runs) {
    Run& run = runs_[place];
    if (run.key != key) continue;
    run.cancelled = true;
    actions_.emplace_back(CancelRun{place, run.number});
    return;
  }
  CHECK(false, "only what was started and has not ended is cancelled");
}

void ServedEnsemble::CarryOut() {
  // What is done may make more to do.
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const Action action = actions_[i];
    std::visit([this](const auto& of_its_kind) { Do(of_its_kind); }, action);
  }
  actions_.clear();
}

void ServedEnsemble::Do(const CancelRun& action) {
  const Run& run = runs_[action.run];
  // One that was not sent is not sent any more.
  if (run.number == action.number && run.sent) steps_.Cancel(run.call);
}

void ServedEnsemble::Do(const StartRun& action) {
  if (runs_[action.run].cancelled) {
    Tell(action.run, {ErrorCode::kCancelled, "nobody waits for it"}, DropReason::kCancelled);
    return Free(action.run);
  }
  const Status sent = Send(action.run);
  if (sent) return;
  Tell(action.run, sent.error(), kFailed);
  Free(action.run);
}

Expected<std::shared_ptr<const ModelSpec>> ServedEnsemble::ModelOf(StageId stage) const {
  const StageDeclaration& step = declaration_.pipeline.stages[stage.value()];
  const ModelSpec& known = *bound_.models[stage.value()];
  if (!groups_.empty() && groups_[stage.value()] != nullptr) return bound_.models[stage.value()];
  auto found = steps_.Find(step.model, step.version);
  if (!found) return Fail(found.error().code, WhyNoModel(step, found.error()));
  if (found->get() == &known) return found;
  const ModelSpec& now = **found;
  // One that was found to have no batch takes the same tensors, whole; loaded anew, it may batch
  // again.
  const bool takes_as_many = CountsRows(now) && CountsRows(known) &&
                             (now.max_batch == 0 || now.max_batch >= declaration_.model.max_batch);
  if ((now.max_batch == known.max_batch || takes_as_many) &&
      SameTensors(now.inputs, known.inputs) && SameTensors(now.outputs, known.outputs)) {
    return found;
  }
  return Fail(ErrorCode::kUnavailable,
              fmt::format("model '{}' was replaced by one of other tensors", step.model));
}

// Else it would depend on what a batch answers whether its rows can be told apart.
Status ServedEnsemble::CheckOneRow(StageId stage, std::span<const InputTensor> inputs) const {
  const ModelSpec& model = *bound_.models[stage.value()];
  const bool is_group = !groups_.empty() && groups_[stage.value()] != nullptr;
  const bool opens = flow_.pipelines()[0].levels.opened_by(stage).valid();
  if (is_group || !opens || !CountsRows(model)) return {};
  for (const InputTensor& input : inputs) {
    if (input.absent || input.shape[0] <= 1) continue;
    return InvalidArgument(
        fmt::format("input '{}' of model '{}' has {} rows: a step that other steps run for row by "
                    "row takes one row at a time",
                    input.name, model.name, input.shape[0]));
  }
  return {};
}

Status ServedEnsemble::Send(std::uint32_t place) {
  const Run run = runs_[place];
  const StageId stage = run.key.run.stage;
  Call& call = At(run.key.request);
  auto model = ModelOf(stage);
  if (!model) return std::unexpected(std::move(model.error()));
  auto inputs = call.tensors.InputsOf(run.key.run, flow_.progress(run.key.request));
  if (!inputs) return std::unexpected(std::move(inputs.error()));
  if (Status one = CheckOneRow(stage, inputs->tensors); !one) return one;
  if (inputs->empty) {
    TellAnswer(place, call.tensors.NothingFrom(stage));
    Free(place);
    return {};
  }
  InferCall step;
  runs_[place].model = model->get();
  step.model = *std::move(model);
  step.inputs = std::move(inputs->tensors);
  step.keepalive = std::move(inputs->keepalive);
  step.outputs = bound_.tensors.stages[stage.value()].outputs;
  step.received = around_->clock();
  step.limit.Tighten(run.deadline - around_->At(step.received));
  step.due_by_limit = true;
  step.begun = call.batch > 0 || call.call.begun;
  step.step = StepName{declaration_.pipeline.name, NameOf(stage)};
  if (!groups_.empty()) step.group = groups_[stage.value()];
  step.priority = call.call.priority > 0 ? call.call.priority : PriorityOf(declaration_.model);
  step.reply = [self = shared_from_this(), place](InferReply&& reply) {
    self->Take(Replied{place, std::move(reply)});
  };
  // Rows that are late are left out of the answer, so somebody must look when they are.
  const Pipeline& pipeline = flow_.pipelines()[0];
  if (pipeline.answer == AnswerRule::kEach && pipeline.levels.IsOfRows(stage)) {
    runs_[place].due =
        around_->timer.At(run.deadline, [self = weak_from_this(), place, number = run.number] {
          if (const auto ensemble = self.lock()) ensemble->Take(Due{place, number});
        });
  }
  runs_[place].sent = true;
  // Whatever this replies at once waits in the inbox.
  const CallId id = steps_.Infer(std::move(step));
  runs_[place].call = id;
  return {};
}

void ServedEnsemble::Learn() {
  learn_at_ = now_ + kLearnEvery;
  std::vector<Duration> needs;
  for (std::size_t s = 0; s < latencies_.size(); ++s) {
    needs.push_back(latencies_[s].Update(now_).value_or(flow_.pipelines()[0].stages[s].need));
  }
  flow_.Adopt(0, needs);
}

}  // namespace tactus
