// How a ServedEnsemble answers: what a call ends as, its outputs, or why it has none.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "ensemble/served_ensemble.h"

namespace tactus {
namespace {

std::chrono::milliseconds Since1970() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

Outcome OutcomeOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kDeadlineExceeded:
      return Outcome::kExpired;
    case ErrorCode::kCancelled:
      return Outcome::kCancelled;
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
      return Outcome::kShed;
    default:
      return Outcome::kError;
  }
}

int RowsOf(const ModelSpec& model, const InferCall& call) {
  if (model.max_batch == 0 || call.inputs.empty() || call.inputs[0].shape.empty()) return 1;
  return static_cast<int>(call.inputs[0].shape[0]);
}

}  // namespace

Expected<InferReply> ServedEnsemble::Outputs(Call& call, const ItemProgress& progress) const {
  InferReply reply;
  std::vector<std::shared_ptr<const void>> owners;
  const ModelSpec& model = declaration_.model;
  const std::size_t wanted =
      call.call.outputs.empty() ? model.outputs.size() : call.call.outputs.size();
  for (std::size_t i = 0; i < wanted; ++i) {
    const int index = call.call.outputs.empty() ? static_cast<int>(i) : call.call.outputs[i];
    const TensorSpec& spec = model.outputs[static_cast<std::size_t>(index)];
    auto output = call.tensors.OutputOf(index, spec.name, progress, owners);
    if (!output) {
      return Fail(output.error().code, fmt::format("ensemble '{}', output '{}': {}", model.name,
                                                   spec.name, output.error().message));
    }
    if (SameScalar(output->shape, spec.dims)) output->shape = spec.dims;
    if (!spec.Takes(output->shape)) {
      return Internal(fmt::format("ensemble '{}': output '{}' came as {}, which is no {}",
                                  model.name, spec.name, ToString(output->shape),
                                  ToString(spec.dims)));
    }
    reply.outputs.push_back(*std::move(output));
  }
  reply.storage =
      std::make_shared<const std::vector<std::shared_ptr<const void>>>(std::move(owners));
  return reply;
}

Error ServedEnsemble::WhyDropped(const Call& call, const PipelineEnd& end) const {
  const std::string& step = NameOf(end.stage);
  if (end.not_admitted) {
    return {ErrorCode::kResourceExhausted,
            fmt::format("ensemble '{}': refused as it came, since its calls under way are as many "
                        "as it answers in time; call again later, or with a longer slo_ms",
                        declaration_.model.name)};
  }
  const std::string place = fmt::format("ensemble '{}', step '{}'", declaration_.model.name, step);
  if (call.failed == end.stage) {
    std::string why = fmt::format("{}: {}", place, call.error.message);
    if (call.error.code == ErrorCode::kDeadlineExceeded) {
      why += fmt::format(
          " ({:.3f} ms after the call came, which had {:.3f} ms: the step had its first {:.3f}, "
          "and "
          "with those behind it takes {:.3f} at best)",
          ToMillis(end.ended - call.received), ToMillis(call.deadline - call.received),
          ToMillis(call.failed_due - call.received), ToMillis(flow_.LeastFrom(0, end.stage)));
    }
    return {call.error.code, std::move(why)};
  }
  return {ErrorCode::kDeadlineExceeded,
          fmt::format("{}: given up {:.3f} ms after the call came: of its {:.3f} ms {:.3f} are "
                      "left, and the step and those behind it take {:.3f} ms at best",
                      place, ToMillis(end.ended - call.received),
                      ToMillis(call.deadline - call.received), ToMillis(call.deadline - end.ended),
                      ToMillis(flow_.LeastFrom(0, end.stage)))};
}

void ServedEnsemble::Do(const PipelineEnd& end) {
  Call& call = At(end.request);
  InferReply reply;
  if (end.outcome == PipelineOutcome::kOnTime || end.outcome == PipelineOutcome::kLate) {
    auto outputs = Outputs(call, flow_.progress(end.request));
    if (outputs) {
      reply = *std::move(outputs);
      reply.served.outcome =
          end.outcome == PipelineOutcome::kOnTime ? Outcome::kMet : Outcome::kLate;
    } else {
      reply.status = std::unexpected(std::move(outputs.error()));
      reply.served.outcome = Outcome::kError;
    }
  } else {
    const Error error = end.outcome == PipelineOutcome::kCancelled
                            ? Error{ErrorCode::kCancelled, "the request was cancelled"}
                            : WhyDropped(call, end);
    reply.status = std::unexpected(error);
    reply.served.outcome = OutcomeOf(error);
  }
  Answer(call, std::move(reply));
}

void ServedEnsemble::Answer(Call& call, InferReply&& reply) {
  underway_.erase(call.id);
  call.answered = true;
  const TimePoint ended = around_->Now();
  const Duration total = ended - call.received;
  const int rows = RowsOf(declaration_.model, call.call);
  reply.served.batch = call.batch;
  reply.served.queue_us = call.queue / Micros(1);
  reply.served.execution_us = call.execution / Micros(1);
  if (is_part_) {
    // As of one step: what was there from its coming to its answer, however many ran side by side.
    reply.served.queue_us = std::min(call.queue, total) / Micros(1);
    reply.served.execution_us = total / Micros(1) - reply.served.queue_us;
  }
  reply.served.emulated = call.emulated;
  reply.model = std::shared_ptr<const ModelSpec>(shared_from_this(), &declaration_.model);
  if (reply.status) {
    counters_->Answered(rows, total, call.queue, call.execution, Since1970());
  } else {
    counters_->Failed(total);
  }
  if (around_->observer != nullptr && !is_part_) {
    RequestRecord record;
    record.arrival = call.received;
    record.deadline = call.deadline;
    record.started = std::min(call.received + call.queue, ended);
    record.ended = ended;
    record.batch = static_cast<std::uint16_t>(call.batch);
    record.outcome = reply.served.outcome;
    call.call.step ? around_->observer->OnStepAnswered(declaration_.model, record, rows)
                   : around_->observer->OnAnswered(declaration_.model, record, rows);
  }
  // What it held is let go before the client goes on.
  const std::function<void(InferReply &&)> answer = std::move(call.call.reply);
  call.tensors.Clear();
  call.call = InferCall{};
  around_->calls.fetch_sub(1, std::memory_order_relaxed);
  answer(std::move(reply));
}

}  // namespace tactus
