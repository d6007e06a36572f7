// The tensors of one call on its way through an ensemble: what the client sent and what steps have
// answered so far, and of it the inputs of the next step and the outputs of the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/expected.h"
#include "pipeline/item_progress.h"
#include "pipeline/pipeline.h"
#include "pipeline/tensors.h"
#include "service/infer_call.h"

namespace tactus {

// What all calls of one ensemble have in common: a declaration with the models that run its steps.
struct BoundEnsemble {
  PipelineTensors tensors;
  std::vector<std::shared_ptr<const ModelSpec>> models;  // by stage
};

class CallTensors {
 public:
  // Both outlive the call. May be begun again for another.
  void Begin(const BoundEnsemble& bound, const Pipeline& pipeline, const InferCall& call);
  void Clear();

  // What a run answered; outputs in the order of PipelineTensors::Stage::outputs.
  void Store(StageRun run, InferReply&& reply);

  // The inputs of the run's call, in the order of its model's. `keepalive` owns their bytes; where
  // all are of one answer, that is its storage. An error where a shape does not fit after all.
  struct Inputs {
    std::vector<InputTensor> tensors;
    std::shared_ptr<const void> keepalive;
    bool empty = false;  // a batch of no rows: nothing to run
  };
  Expected<Inputs> InputsOf(StageRun run, const ItemProgress& progress) const;
  // Outputs of a run that has nothing to run for: no rows.
  InferReply NothingFrom(StageId stage) const;

  // Outputs of the ensemble, and what owns their bytes. `index`: of its outputs; `name` outlives
  // the reply.
  Expected<OutputTensor> OutputOf(int index, std::string_view name, const ItemProgress& progress,
                                  std::vector<std::shared_ptr<const void>>& owners) const;

 private:
  struct Answer {
    std::vector<OutputTensor> outputs;
    std::shared_ptr<const void> storage;
  };
  using Owners = std::vector<std::shared_ptr<const void>>;

  // Fetches a tensor for a reader in `level`; the ensemble itself reads as item 0 of level 0.
  Expected<OutputTensor> Fetch(const TensorEdge& edge, LevelId level, std::uint32_t item,
                               bool to_batch, const ItemProgress& progress, Owners& owners) const;
  Expected<OutputTensor> FetchRows(const TensorEdge& edge, LevelId level, std::uint32_t item,
                                   const ItemProgress& progress, Owners& owners) const;

  const BoundEnsemble* bound_ = nullptr;
  const Pipeline* pipeline_ = nullptr;
  const InferCall* call_ = nullptr;
  std::vector<std::vector<Answer>> answers_;  // by stage, by item
};

}  // namespace tactus
