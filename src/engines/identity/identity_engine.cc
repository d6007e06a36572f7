#include "engines/identity/identity_engine.h"

#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engines/loaded_models.h"
#include "engines/optional_inputs.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

struct Identity {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  bool batches = false;
};

// As the engine itself has the tensor.
const Shape& Inner(const TensorSpec& tensor) {
  return tensor.reshape ? *tensor.reshape : tensor.dims;
}

// Bytes that an output may point into: a copy of its own, or the requests' owners.
struct Storage {
  std::vector<std::byte> copy;
  std::shared_ptr<const void> owner;
};

Status CheckOutputs(ModelSpec& spec) {
  if (spec.inputs.empty()) {
    return InvalidArgument(
        fmt::format("model '{}': the identity engine needs `input` in config.pbtxt", spec.name));
  }
  if (Status ok = RefuseOptional(spec, "the identity engine has nothing else to answer with");
      !ok) {
    return ok;
  }
  if (spec.outputs.empty()) {
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      spec.outputs.push_back(spec.inputs[i]);
      spec.outputs.back().name = fmt::format("OUTPUT{}", i);
    }
  }
  if (spec.outputs.size() > spec.inputs.size()) {
    return InvalidArgument(
        fmt::format("model '{}': the identity engine answers with its inputs, so it cannot have {} "
                    "outputs of {} "
                    "inputs",
                    spec.name, spec.outputs.size(), spec.inputs.size()));
  }
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const TensorSpec& in = spec.inputs[i];
    const TensorSpec& out = spec.outputs[i];
    if (in.type == out.type && Inner(in) == Inner(out)) continue;
    return InvalidArgument(
        fmt::format("model '{}': output '{}' is {} {}, but input '{}', which the identity engine "
                    "answers with, is {} {}",
                    spec.name, out.name, Name(out.type), ToString(Inner(out)), in.name,
                    Name(in.type), ToString(Inner(in))));
  }
  if (spec.exits.empty()) spec.exits.push_back({"1", {}, 0});
  return {};
}

class IdentityEngine final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = "identity", .max_slots = 64}; }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    if (Status ok = CheckOutputs(spec); !ok) return std::unexpected(ok.error());
    return models_.Add({spec.inputs, spec.outputs, spec.max_batch > 0});
  }

  void Unload(ModelHandle handle) override { models_.Remove(handle); }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    RunAtOnce(models_, handle, job, done, Run);
  }

 private:
  static BatchResult Run(const Identity& model, const BatchJob& job) {
    const auto begin = Clock::now();
    auto output = std::make_shared<BatchOutput>();
    auto storage = std::make_shared<std::vector<Storage>>(model.outputs.size());
    for (std::size_t i = 0; i < model.outputs.size(); ++i) {
      output->tensors.push_back(Answer(model, job, i, (*storage)[i]));
    }
    output->storage = std::move(storage);
    return {.output = std::move(output), .gather = Clock::now() - begin};
  }

  static Shape AnswerShape(const Identity& model, std::span<const std::int64_t> sent,
                           std::size_t i) {
    const TensorSpec& in = model.inputs[i];
    const TensorSpec& out = model.outputs[i];
    const bool reshapes = in.reshape || out.reshape;
    if (!reshapes || !FitsDims(sent, in.dims)) return Shape(sent.begin(), sent.end());
    return Reshaped(Reshaped(sent, in.dims, Inner(in)), Inner(out), out.dims);
  }

  static BatchOutput::Tensor Answer(const Identity& model, const BatchJob& job, std::size_t i,
                                    Storage& storage) {
    const TensorView& first = job.rows[0].inputs[i];
    BatchOutput::Tensor tensor{.shape = AnswerShape(model, first.shape, i)};
    if (model.batches) tensor.shape[0] = static_cast<std::int64_t>(job.rows.size());
    const bool strings = model.inputs[i].type == DataType::kBytes;
    if (job.rows.size() == 1 && job.rows[0].owner != nullptr) {
      storage.owner = job.rows[0].owner;
      tensor.data = {first.data, first.bytes};
      if (strings) tensor.rows = {tensor.data};
      return tensor;
    }
    std::size_t total = 0;
    for (const RowInputs& row : job.rows) total += row.inputs[i].bytes;
    storage.copy.reserve(total);  // so that the rows' spans stay good
    for (const RowInputs& row : job.rows) {
      const TensorView& part = row.inputs[i];
      const std::size_t at = storage.copy.size();
      storage.copy.insert(storage.copy.end(), part.data, part.data + part.bytes);
      if (strings) tensor.rows.push_back({storage.copy.data() + at, part.bytes});
    }
    tensor.data = storage.copy;
    return tensor;
  }

  LoadedModels<Identity> models_;
};

}  // namespace

std::unique_ptr<Engine> MakeIdentityEngine() { return std::make_unique<IdentityEngine>(); }

}  // namespace tactus
