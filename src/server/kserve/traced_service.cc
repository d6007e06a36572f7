#include "server/kserve/traced_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/kserve/ensemble_config.h"
#include "server/kserve/json_text.h"

namespace tactus {
namespace {

// Of a client's name for its call; the rest is left out.
constexpr std::size_t kMostOfId = 256;

// The times of a service are whole microseconds from the arrival on, rounded down: a run does not
// begin before its call was queued, nor end after its answer was there.
std::optional<Trace::Compute> ComputeIn(const ServedBy& served, const Trace& trace) {
  const auto start = trace.received + std::chrono::microseconds(served.queue_us);
  const auto end = start + std::chrono::microseconds(served.execution_us);
  const auto between = [&](Trace::Instant at) {
    return std::min(std::max(at, trace.queued), trace.answered);
  };
  return Trace::Compute{between(start), between(end)};
}

}  // namespace

CallId TracedService::Infer(InferCall&& call) {
  const bool of_client = !call.granted && !call.step && call.group == nullptr;
  if (!settings_.on() || call.model == nullptr || !of_client) {
    return next().Infer(std::move(call));
  }
  const auto sample = settings_.Sample(call.model->name, call.trace_parent);
  if (!sample) return next().Infer(std::move(call));

  auto trace = std::make_shared<Trace>();
  trace->id = sample->id;
  trace->log_frequency = sample->log_frequency;
  trace->model = call.model->name;
  trace->version = call.model->version;
  trace->request_id = call.id.substr(0, Utf8Prefix(call.id.substr(0, kMostOfId)));
  trace->parent = call.trace_parent;
  trace->received = call.received;
  trace->queued = clock_();
  const bool one_run = call.model->platform != kEnsemblePlatform;
  if (!one_run) call.step_runs = std::make_shared<std::vector<StepRun>>();
  call.reply = [this, trace = std::move(trace), one_run, steps = call.step_runs,
                reply = std::move(call.reply)](InferReply&& answer) {
    trace->answered = clock_();
    trace->outcome = answer.served.outcome;
    trace->batch = answer.served.batch;
    trace->exit = answer.served.exit;
    trace->emulated = answer.served.emulated;
    if (one_run && answer.served.batch > 0) trace->compute = ComputeIn(answer.served, *trace);
    if (steps != nullptr) trace->steps = std::move(*steps);
    sink_.Add(std::move(*trace));
    reply(std::move(answer));
  };
  return next().Infer(std::move(call));
}

}  // namespace tactus
