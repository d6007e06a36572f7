// Which tensor of a pipeline goes where: from names, as they are declared, to places in answers and
// calls. Here it is checked that every tensor is made once and read, and that types and shapes fit;
// who carries bytes is not known here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "pipeline/ensemble_declaration.h"
#include "pipeline/graph.h"
#include "pipeline/levels.h"

namespace tactus {

enum class TensorPassing : std::uint8_t {
  kWhole,  // as it is: of the same item, or of the one around that all its items share
  kRow,    // the reader's row of what the stage that opened its level has answered
  kRows,   // what the runs of all rows have answered, one after the other
};

struct TensorEdge {
  StageId from;  // invalid: the request
  // In PipelineTensors::Stage::outputs of `from`, or of the request's inputs. kNone: nothing goes
  // to this optional input, and the step's model takes its default.
  int index = 0;
  TensorPassing passing = TensorPassing::kWhole;

  static constexpr int kNone = -1;
};

struct PipelineTensors {
  struct Stage {
    std::vector<TensorEdge> inputs;  // in the order of its model's inputs
    std::vector<int> outputs;        // of its model's, those that somebody reads
  };
  std::vector<Stage> stages;        // by StageId
  std::vector<TensorEdge> outputs;  // in the order of the ensemble's
};

// Whether the first dimension of a model's tensors counts rows: as its batch, or as what was taken
// for one until serving disproved it.
inline bool CountsRows(const ModelSpec& model) {
  return model.max_batch > 0 || model.batch_origin == BatchOrigin::kDisproved;
}

// Sets `after` of each stage: those that make what it reads. kInvalidArgument with the place and
// the remedy: a tensor that is made twice, read and not made, or made and read by nobody.
Status LinkStages(EnsembleDeclaration& declaration);

// `models` by stage. kInvalidArgument with the place and the remedy: a tensor that a model does not
// have, an input that nothing is passed to, another type, a shape that cannot fit.
Expected<PipelineTensors> BindTensors(const EnsembleDeclaration& declaration,
                                      const PipelineGraph& graph, const PipelineLevels& levels,
                                      std::span<const std::shared_ptr<const ModelSpec>> models);

}  // namespace tactus
