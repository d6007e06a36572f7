#include "engines/op/op_engine.h"

#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "engines/loaded_models.h"
#include "engines/op/chain.h"
#include "engines/optional_inputs.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

struct OpModel {
  std::string name;
  std::vector<TensorSpec> inputs;
  bool batches = false;  // each tensor is one item, and says so first
  op::Chain chain;
};

// The request's bytes where they lie at an element's boundary, else a copy.
op::Tensor Aligned(const TensorSpec& spec, const TensorView& view) {
  op::Tensor tensor{
      spec.type, Shape(view.shape.begin(), view.shape.end()), {view.data, view.bytes}, nullptr};
  const std::size_t size = ElementSize(spec.type);
  if (size <= 1 || reinterpret_cast<std::uintptr_t>(view.data) % size == 0) return tensor;
  std::vector<std::byte> copy(view.data, view.data + view.bytes);
  return op::Own(spec.type, std::move(tensor.shape), std::move(copy));
}

struct OpStorage {
  std::vector<op::Tensor> tensors;
};

std::shared_ptr<const BatchOutput> OutputOf(std::vector<op::Tensor> tensors,
                                            std::uint32_t cut_jpegs) {
  auto output = std::make_shared<BatchOutput>();
  output->cut_jpegs = cut_jpegs;
  for (const op::Tensor& tensor : tensors) {
    BatchOutput::Tensor& out = output->tensors.emplace_back();
    out.shape = tensor.shape;
    out.data = tensor.bytes;
    if (tensor.type == DataType::kBytes) out.rows = {tensor.bytes};
  }
  output->storage = std::make_shared<OpStorage>(OpStorage{std::move(tensors)});
  return output;
}

class OpEngine final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = "op", .max_slots = 64}; }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    if (Status ok = RefuseOptional(spec, "operators need all inputs"); !ok) {
      return std::unexpected(ok.error());
    }
    auto chain = op::Chain::Make(spec);
    if (!chain) return std::unexpected(std::move(chain.error()));
    if (spec.exits.empty()) spec.exits.push_back({"1", {}, 0});
    if (spec.exits.size() > 1) {
      return InvalidArgument(
          fmt::format("model '{}': a chain of operators has no early exits", spec.name));
    }
    return models_.Add({spec.name, spec.inputs, spec.max_batch > 0, *std::move(chain)});
  }

  void Unload(ModelHandle handle) override { models_.Remove(handle); }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    RunAtOnce(models_, handle, job, done,
              [this](auto& model, const BatchJob& batch) { return Run(model, batch); });
  }

  std::vector<SampleTensor> Sample(ModelHandle handle) const override {
    const auto model = models_.Use(handle);
    std::vector<SampleTensor> samples;
    if (!model) return samples;
    for (const op::Tensor& tensor : model->chain.Sample()) {
      samples.push_back({tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}});
    }
    return samples;
  }

 private:
  static BatchResult Run(const OpModel& model, const BatchJob& job) {
    if (job.rows.size() != 1) {
      return {.status = Internal(fmt::format("model '{}': operators run one call at a time, not {}",
                                             model.name, job.rows.size()))};
    }
    BatchResult result;
    const auto begin = Clock::now();
    std::vector<op::Tensor> inputs;
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      inputs.push_back(Aligned(model.inputs[i], job.rows[0].inputs[i]));
    }
    const auto gathered = Clock::now();
    result.gather = gathered - begin;
    std::uint32_t cut_jpegs = 0;
    auto outputs = model.chain.Run(inputs, &cut_jpegs);
    result.infer = Clock::now() - gathered;
    if (!outputs) {
      result.status = Fail(outputs.error().code,
                           fmt::format("model '{}': {}", model.name, outputs.error().message));
      return result;
    }
    for (const op::Tensor& tensor : *outputs) {
      if (!model.batches || (!tensor.shape.empty() && tensor.shape[0] == 1)) continue;
      result.status = InvalidArgument(
          fmt::format("model '{}': its operators made {} of one row; set max_batch_size to 0",
                      model.name, ToString(tensor.shape)));
      return result;
    }
    result.output = OutputOf(*std::move(outputs), cut_jpegs);
    return result;
  }

  mutable LoadedModels<OpModel> models_;
};

}  // namespace

std::unique_ptr<Engine> MakeOpEngine() { return std::make_unique<OpEngine>(); }

}  // namespace tactus
