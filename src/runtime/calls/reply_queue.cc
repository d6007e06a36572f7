#include "runtime/calls/reply_queue.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "platform/cpu_affinity.h"
#include "platform/held_turns.h"
#include "runtime/calls/call_rows.h"

namespace tactus {
namespace {

// " (42.100 ms after it came, of its 50.000; alone it takes 10.200 at best)".
std::string TimesOf(const PendingCall& pending, TimePoint now) {
  std::string text =
      fmt::format(" ({:.3f} ms after it came, of its {:.3f}", ToMillis(now - pending.received),
                  ToMillis(pending.deadline - pending.received));
  const std::vector<Duration>& latency = pending.model->rows.latency;
  if (!latency.empty()) {
    text += fmt::format("; alone it takes {:.3f} at best", ToMillis(latency.front()));
  }
  return text + ")";
}

Error RefusalOf(DropReason reason, const PendingCall& pending, TimePoint now) {
  const ModelSpec& model = pending.model->spec;
  switch (reason) {
    case DropReason::kQueueFull:
      return {ErrorCode::kResourceExhausted,
              fmt::format("the queue of model '{}' is full", model.name)};
    case DropReason::kExpired:
      return {ErrorCode::kDeadlineExceeded,
              fmt::format("the request's deadline could not be met by model '{}'{}", model.name,
                          TimesOf(pending, now))};
    case DropReason::kShed:
      return {ErrorCode::kUnavailable, fmt::format("shed: the policy gave this request up: model "
                                                   "'{}' has more load than it can serve in time{}",
                                                   model.name, TimesOf(pending, now))};
    case DropReason::kCancelled:
      return {ErrorCode::kCancelled, "the request was cancelled"};
    case DropReason::kUnloaded:
      return {ErrorCode::kUnavailable,
              fmt::format("model '{}' is being unloaded or the server is stopping", model.name)};
  }
  return {ErrorCode::kInternal, "the request was dropped"};
}

// How much an outcome weighs when the rows of a call end differently: the call ends as its worst.
int Weight(Outcome outcome) {
  switch (outcome) {
    case Outcome::kMet:
    case Outcome::kLate:
      return 0;
    case Outcome::kShed:
      return 1;
    case Outcome::kExpired:
      return 2;
    case Outcome::kCancelled:
      return 3;
    case Outcome::kError:
      return 4;
  }
  return 4;
}

const CallRow& Worst(const std::vector<CallRow>& rows) {
  return *std::max_element(rows.begin(), rows.end(), [](const CallRow& a, const CallRow& b) {
    return Weight(a.outcome) < Weight(b.outcome);
  });
}

// The row that ran last stands for the call's times.
const CallRow& Last(const std::vector<CallRow>& rows) {
  return *std::max_element(rows.begin(), rows.end(),
                           [](const CallRow& a, const CallRow& b) { return a.ended < b.ended; });
}

ExitId Shallowest(const std::vector<CallRow>& rows) {
  ExitId least = rows[0].exit;
  for (const CallRow& row : rows) least = std::min(least, row.exit);
  return least;
}

InferReply MakeReply(const PendingCall& pending, TimePoint now) {
  const CallRow& worst = Worst(pending.rows);
  InferReply reply;
  if (Weight(worst.outcome) == 0) {
    reply = JoinRows(pending);
    reply.served.outcome = !reply.status             ? Outcome::kError
                           : now <= pending.deadline ? Outcome::kMet
                                                     : Outcome::kLate;
  } else {
    reply.status = std::unexpected(worst.error != nullptr ? *worst.error
                                                          : RefusalOf(worst.reason, pending, now));
    reply.served.outcome = worst.outcome;
  }
  if (const CallRow& last = Last(pending.rows); last.batch > 0) {
    reply.served.exit = pending.model->spec.exits[Shallowest(pending.rows).value()].name;
    reply.served.batch = static_cast<int>(last.batch);
    reply.served.queue_us =
        std::max<std::int64_t>(0, (last.started - pending.received).count() / 1000);
    reply.served.execution_us = (last.ended - last.started).count() / 1000;
  }
  reply.served.emulated = pending.model->traits.emulated;
  reply.model = std::shared_ptr<const ModelSpec>(pending.model, &pending.model->spec);
  return reply;
}

RequestRecord MakeRecord(const PendingCall& pending, Outcome outcome, TimePoint now) {
  const CallRow& last = Last(pending.rows);
  RequestRecord record;
  record.arrival = pending.received;
  record.deadline = pending.deadline;
  record.started = last.batch > 0 ? last.started : pending.received;
  record.ended = now;
  record.model = pending.model->id.value();
  record.exit = static_cast<std::uint16_t>(Shallowest(pending.rows).value());
  record.batch = static_cast<std::uint16_t>(last.batch);
  record.outcome = outcome;
  return record;
}

void Count(const PendingCall& pending, Outcome outcome, TimePoint now) {
  ModelCounters& counters = pending.model->counters;
  const CallRow& last = Last(pending.rows);
  const Duration total = now - pending.received;
  if (Weight(outcome) != 0) return counters.fail.Add(total);
  counters.success.Add(total);
  counters.queue.Add(last.started - pending.received);
  counters.compute_input.Add(last.gather);
  counters.compute_infer.Add(last.infer);
  counters.compute_output.Add(last.scatter);
  counters.last_inference_ms.store(WallClock::UnixMillis(), std::memory_order_relaxed);
}

// Why the call cannot be answered as the rows of batches: a batch was none. Or, where its model was
// only assumed to have them, its rows' answers do not fit together.
std::optional<Error> NotBatched(const PendingCall& pending, const InferReply& reply) {
  if (pending.call.granted || pending.model->spec.max_batch == 0) return std::nullopt;
  for (const CallRow& row : pending.rows) {
    if (row.no_batch) return *row.error;
  }
  if (pending.model->spec.batch_origin != BatchOrigin::kAssumed) return std::nullopt;
  const bool all_answered = Weight(Worst(pending.rows).outcome) == 0;
  return all_answered && !reply.status ? std::optional(reply.status.error()) : std::nullopt;
}

std::map<std::string, Shape> ShapesOf(const InferCall& call) {
  std::map<std::string, Shape> shapes;
  for (const InputTensor& input : call.inputs) {
    if (!input.absent) shapes[std::string(input.name)] = input.shape;
  }
  return shapes;
}

}  // namespace

ReplyQueue::ReplyQueue(Options options, PayloadSlab& slab, const WallClock& clock,
                       Observer* observer, std::atomic<std::int64_t>& calls)
    : options_(std::move(options)),
      slab_(slab),
      clock_(clock),
      observer_(observer),
      calls_(calls),
      answers_(slab.capacity()) {}

ReplyQueue::~ReplyQueue() { Stop(); }

void ReplyQueue::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ReplyQueue::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  bell_.Ring();
  thread_.join();
}

void ReplyQueue::Answer(PendingCall& pending) { answers_.Push(&pending); }

void ReplyQueue::Report(const BatchEvent& event) {
  if (!batches_.TryPush(event)) {
    event.model->running.fetch_sub(1, std::memory_order_release);
  }
}

void ReplyQueue::Wake() {
  if (Idle()) return;
  asked_.store(true, std::memory_order_release);
  bell_.Ring();
}

void ReplyQueue::Run() {
  NameThisThread("reply");
  PinThisThread(options_.cores);
  for (;;) {
    const bool stop = stop_.load(std::memory_order_acquire);
    asked_.store(false, std::memory_order_release);
    Serve([] { return false; });
    if (stop) return;
    AwaitWork(bell_, clock_, options_.spin, kNever, [this] {
      return asked_.load(std::memory_order_acquire) || stop_.load(std::memory_order_acquire);
    });
  }
}

bool ReplyQueue::Drain() {
  bool any = false;
  if (BatchEvent event; batches_.TryPop(event)) {
    any = true;
    if (observer_ != nullptr) observer_->OnBatch(event.model->spec, event.record);
    event.model->running.fetch_sub(1, std::memory_order_release);
  }
  if (PendingCall* pending = nullptr; answers_.TryPop(pending)) {
    any = true;
    AnswerAll(*pending);
  }
  return any;
}

void ReplyQueue::AnswerAll(PendingCall& first) {
  if (first.next_step == nullptr) return AnswerNow(first);
  const HeldTurns together;
  for (PendingCall* each = &first; each != nullptr;) {
    PendingCall* const next = std::exchange(each->next_step, nullptr);
    AnswerNow(*each);
    each = next;
  }
}

void ReplyQueue::AnswerNow(PendingCall& pending) {
  const TimePoint now = clock_.Now();
  InferReply reply = MakeReply(pending, now);
  if (reply.status) overruns_.Note(now - pending.expected_end);
  if (auto why = options_.not_batched ? NotBatched(pending, reply) : std::nullopt) {
    std::shared_ptr<ServedModel> model = pending.model;
    InferCall call = std::move(pending.call);
    slab_.Release(pending);
    model->outstanding.fetch_sub(1, std::memory_order_release);
    return options_.not_batched(std::move(call), std::move(model), *std::move(why));
  }
  if (reply.status && options_.shown && pending.model->untried.exchange(false)) {
    options_.shown(pending.model, ShapesOf(pending.call));
  }
  Count(pending, reply.served.outcome, now);
  if (observer_ != nullptr) {
    const RequestRecord record = MakeRecord(pending, reply.served.outcome, now);
    const auto rows = static_cast<int>(pending.rows.size());
    pending.call.step ? observer_->OnStepAnswered(pending.model->spec, record, rows)
                      : observer_->OnAnswered(pending.model->spec, record, rows);
  }
  const std::shared_ptr<ServedModel> model = pending.model;
  const std::function<void(InferReply &&)> answer = std::move(pending.call.reply);
  slab_.Release(pending);
  answer(std::move(reply));
  model->outstanding.fetch_sub(1, std::memory_order_release);
  calls_.fetch_sub(1, std::memory_order_release);
}

}  // namespace tactus
