#include "ensemble/call_tensors.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ensemble/step_tensors.h"

namespace tactus {

void CallTensors::Begin(const BoundEnsemble& bound, const Pipeline& pipeline,
                        const InferCall& call) {
  bound_ = &bound;
  pipeline_ = &pipeline;
  call_ = &call;
  answers_.resize(bound.models.size());
}

void CallTensors::Clear() {
  for (auto& of_stage : answers_) of_stage.clear();
}

void CallTensors::Store(StageRun run, InferReply&& reply) {
  auto& of_stage = answers_[run.stage.value()];
  if (of_stage.size() <= run.item) of_stage.resize(run.item + 1);
  of_stage[run.item] = {std::move(reply.outputs), std::move(reply.storage)};
}

Expected<OutputTensor> CallTensors::FetchRows(const TensorEdge& edge, LevelId level,
                                              std::uint32_t item, const ItemProgress& progress,
                                              Owners& owners) const {
  const PipelineLevels& levels = pipeline_->levels;
  // As deep as both lie in the same level.
  const auto reader = levels.path(level);
  const auto maker = levels.path(levels.of(edge.from));
  std::size_t depth = 0;
  while (depth + 1 < std::min(reader.size(), maker.size()) &&
         reader[depth + 1] == maker[depth + 1]) {
    ++depth;
  }
  std::vector<StageRun> runs;
  progress.AnsweredWithin(edge.from, depth, progress.Around(level, item, depth), runs);
  std::vector<const OutputTensor*> rows;
  for (const StageRun run : runs) {
    const Answer& answer = answers_[run.stage.value()][run.item];
    rows.push_back(&answer.outputs[static_cast<std::size_t>(edge.index)]);
    owners.push_back(answer.storage);
  }
  const ModelSpec& model = *bound_->models[edge.from.value()];
  const int output =
      bound_->tensors.stages[edge.from.value()].outputs[static_cast<std::size_t>(edge.index)];
  return PutTogether(rows, CountsRows(model), model.outputs[static_cast<std::size_t>(output)]);
}

Expected<OutputTensor> CallTensors::Fetch(const TensorEdge& edge, LevelId level, std::uint32_t item,
                                          bool to_batch, const ItemProgress& progress,
                                          Owners& owners) const {
  if (!edge.from.valid()) {
    const InputTensor& input = call_->inputs[static_cast<std::size_t>(edge.index)];
    owners.push_back(call_->keepalive);
    return OutputTensor{input.name, input.type, input.shape, {input.data}};
  }
  if (edge.passing == TensorPassing::kRows) return FetchRows(edge, level, item, progress, owners);
  const PipelineLevels& levels = pipeline_->levels;
  const std::size_t depth = levels.depth(levels.of(edge.from));
  const Answer& answer = answers_[edge.from.value()][progress.Around(level, item, depth)];
  owners.push_back(answer.storage);
  const OutputTensor& whole = answer.outputs[static_cast<std::size_t>(edge.index)];
  if (edge.passing == TensorPassing::kWhole) return whole;
  const LevelId opened = levels.path(level)[depth + 1];
  const std::uint32_t row = progress.RowOf(opened, progress.Around(level, item, depth + 1));
  return TakeRow(whole, row, CountsRows(*bound_->models[edge.from.value()]), to_batch);
}

Expected<CallTensors::Inputs> CallTensors::InputsOf(StageRun run,
                                                    const ItemProgress& progress) const {
  const ModelSpec& model = *bound_->models[run.stage.value()];
  const LevelId level = pipeline_->levels.of(run.stage);
  Inputs inputs;
  Owners owners;
  const auto& edges = bound_->tensors.stages[run.stage.value()].inputs;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const TensorSpec& spec = model.inputs[i];
    if (edges[i].index == TensorEdge::kNone) {
      inputs.tensors.push_back({.name = spec.name, .type = spec.type, .absent = true});
      continue;
    }
    auto tensor = Fetch(edges[i], level, run.item, CountsRows(model), progress, owners);
    if (!tensor) return std::unexpected(std::move(tensor.error()));
    if (SameScalar(tensor->shape, spec.dims)) tensor->shape = spec.dims;
    if (!spec.Takes(tensor->shape)) {
      return InvalidArgument(fmt::format("input '{}' of model '{}' takes {}, but the call has {}",
                                         spec.name, model.name, ToString(spec.dims),
                                         ToString(tensor->shape)));
    }
    if (CountsRows(model) && tensor->shape[0] == 0) inputs.empty = true;
    const std::span<const std::byte> bytes = InOnePiece(*tensor, owners);
    inputs.tensors.push_back({spec.name, spec.type, std::move(tensor->shape), bytes});
  }
  std::ranges::sort(owners);
  const auto again = std::ranges::unique(owners);
  owners.erase(again.begin(), again.end());
  inputs.keepalive =
      owners.size() == 1 ? owners.front() : std::make_shared<const Owners>(std::move(owners));
  return inputs;
}

InferReply CallTensors::NothingFrom(StageId stage) const {
  const ModelSpec& model = *bound_->models[stage.value()];
  InferReply reply;
  for (const int index : bound_->tensors.stages[stage.value()].outputs) {
    const TensorSpec& spec = model.outputs[static_cast<std::size_t>(index)];
    OutputTensor output{spec.name, spec.type, spec.dims, {}};
    std::ranges::replace_if(
        output.shape, [](std::int64_t dim) { return dim < 0; }, 0);
    if (!output.shape.empty()) output.shape.front() = 0;
    reply.outputs.push_back(std::move(output));
  }
  return reply;
}

Expected<OutputTensor> CallTensors::OutputOf(int index, std::string_view name,
                                             const ItemProgress& progress, Owners& owners) const {
  const TensorEdge& edge = bound_->tensors.outputs[static_cast<std::size_t>(index)];
  auto tensor = Fetch(edge, PipelineLevels::kRoot, 0, false, progress, owners);
  if (tensor) tensor->name = name;
  return tensor;
}

}  // namespace tactus
