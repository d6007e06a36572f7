#include "runtime/calls/call_rows.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

std::unexpected<Error> BadInput(const ModelSpec& spec, std::size_t input, std::string_view what) {
  return InvalidArgument(
      fmt::format("model '{}': input '{}': {}", spec.name, spec.inputs[input].name, what));
}

Expected<std::int64_t> CountRows(const InferCall& call, const ModelSpec& spec) {
  if (call.inputs.size() != spec.inputs.size()) {
    return InvalidArgument(fmt::format("model '{}' takes {} inputs, not {}", spec.name,
                                       spec.inputs.size(), call.inputs.size()));
  }
  if (spec.inputs.empty() && spec.max_batch > 0) {
    return InvalidArgument(
        fmt::format("model '{}' has no input that says how many rows a call has; its "
                    "configuration needs max_batch_size 0",
                    spec.name));
  }
  std::optional<std::int64_t> rows;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].absent) {
      if (!spec.inputs[i].optional) return BadInput(spec, i, "is required, and the call has none");
      continue;
    }
    if (spec.max_batch == 0) continue;
    const Shape& shape = call.inputs[i].shape;
    if (shape.empty() || shape[0] < 1) return BadInput(spec, i, "has no rows");
    if (shape[0] != rows.value_or(shape[0])) {
      return BadInput(spec, i, "has another number of rows than the inputs before it");
    }
    rows = shape[0];
  }
  return rows.value_or(1);
}

// In place of a row's shape: no tensor has it, so rows with and without the input are of different
// classes and share no batch.
constexpr std::int64_t kAbsent = -1;

// Splits input `i` into its rows' views.
Status FillInput(PendingCall& pending, std::size_t i) {
  const ModelSpec& spec = pending.model->spec;
  const InputTensor& input = pending.call.inputs[i];
  const std::size_t inputs = pending.call.inputs.size();
  const auto rows = static_cast<std::int64_t>(pending.rows.size());
  if (input.absent) {
    pending.row_shapes[i] = {kAbsent};
    for (std::size_t r = 0; r < pending.rows.size(); ++r) {
      pending.views[r * inputs + i] = {.absent = true};
    }
    return {};
  }
  const auto elements = ElementCount(input.shape);
  if (!elements) return BadInput(spec, i, "its shape is negative or too large");
  Shape& row_shape = pending.row_shapes[i];
  row_shape = input.shape;
  if (spec.max_batch > 0) row_shape[0] = 1;
  const std::int64_t row_elements = *elements / rows;
  const std::size_t size = ElementSize(input.type);
  if (size > 0) {
    const auto row_bytes = static_cast<std::size_t>(row_elements) * size;
    if (input.data.size() != row_bytes * pending.rows.size()) {
      return BadInput(
          spec, i,
          fmt::format("{} bytes do not fill shape {}", input.data.size(), ToString(input.shape)));
    }
    for (std::size_t r = 0; r < pending.rows.size(); ++r) {
      pending.views[r * inputs + i] = {input.data.data() + r * row_bytes, row_bytes, row_shape};
    }
    return {};
  }
  std::span<const std::byte> rest = input.data;
  for (std::size_t r = 0; r < pending.rows.size(); ++r) {
    const auto bytes = BytesPrefix(rest, row_elements);
    if (!bytes) return BadInput(spec, i, "its elements run past the end of its bytes");
    pending.views[r * inputs + i] = {rest.data(), *bytes, row_shape};
    rest = rest.subspan(*bytes);
  }
  if (!rest.empty()) return BadInput(spec, i, "has more bytes than elements");
  return {};
}

Expected<OutputTensor> JoinOutput(const PendingCall& pending, std::size_t index) {
  const ModelSpec& spec = pending.model->spec;
  const bool batched = spec.max_batch > 0;
  OutputTensor out{spec.outputs[index].name, spec.outputs[index].type, {}, {}};
  for (const CallRow& row : pending.rows) {
    const BatchOutput& batch = *row.output;
    if (index >= batch.tensors.size()) {
      return Internal(
          fmt::format("model '{}': the engine gave no output '{}'", spec.name, out.name));
    }
    const BatchOutput::Tensor& tensor = batch.tensors[index];
    Shape shape = tensor.shape;
    if (batched && !shape.empty()) shape[0] = static_cast<std::int64_t>(pending.rows.size());
    if (!out.shape.empty() && out.shape != shape) {
      return Internal(
          fmt::format("model '{}': rows of one call have answers of different shapes "
                      "in output '{}'; send them one by one",
                      spec.name, out.name));
    }
    out.shape = std::move(shape);
    AppendPart(out, batched ? tensor.Row(row.position, row.batch) : tensor.data);
  }
  return out;
}

// Keeps every batch's output alive; usually there is one.
std::shared_ptr<const void> Storage(const PendingCall& pending) {
  bool one = true;
  for (const CallRow& row : pending.rows) one = one && row.output == pending.rows[0].output;
  if (one) return pending.rows[0].output;
  auto all = std::make_shared<std::vector<std::shared_ptr<const BatchOutput>>>();
  for (const CallRow& row : pending.rows) {
    if (all->empty() || all->back() != row.output) all->push_back(row.output);
  }
  return all;
}

}  // namespace

Status FillRows(PendingCall& pending) {
  const ModelSpec& spec = pending.model->spec;
  const Expected<std::int64_t> rows = CountRows(pending.call, spec);
  if (!rows) return std::unexpected(rows.error());
  const std::size_t inputs = pending.call.inputs.size();
  pending.rows.assign(static_cast<std::size_t>(*rows), CallRow{});
  pending.views.assign(pending.rows.size() * inputs, TensorView{});
  pending.row_shapes.assign(inputs, Shape{});
  for (std::size_t i = 0; i < inputs; ++i) {
    if (Status filled = FillInput(pending, i); !filled) return filled;
  }
  pending.shape_class =
      pending.model->fixed_shapes ? 0 : pending.model->shapes.Find(pending.row_shapes);
  return {};
}

InferReply JoinRows(const PendingCall& pending) {
  const ModelSpec& spec = pending.model->spec;
  InferReply reply;
  const std::size_t wanted =
      pending.call.outputs.empty() ? spec.outputs.size() : pending.call.outputs.size();
  reply.outputs.reserve(wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::size_t index =
        pending.call.outputs.empty() ? i : static_cast<std::size_t>(pending.call.outputs[i]);
    if (index >= spec.outputs.size()) {
      reply.outputs.clear();
      reply.status = InvalidArgument(fmt::format("model '{}' has no output {}", spec.name, index));
      return reply;
    }
    Expected<OutputTensor> tensor = JoinOutput(pending, index);
    if (!tensor) {
      reply.outputs.clear();
      reply.status = std::unexpected(tensor.error());
      return reply;
    }
    reply.outputs.push_back(*std::move(tensor));
  }
  reply.storage = Storage(pending);
  return reply;
}

}  // namespace tactus
