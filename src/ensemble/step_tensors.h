// Tensors on their way from step to step: rows taken out of an answer, rows of several answers put
// one after the other. All are views into the answers; bytes move only where a step must have in
// one piece what lies in several.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.h"
#include "service/infer_call.h"

namespace tactus {

// How many rows an answer has, for whom later steps run: the first dimension, behind that of the
// batch where `batched`, which must be of one. An error where outputs differ or have none.
Expected<int> CountRowsOf(std::span<const OutputTensor> answer, bool batched);

// Row `row` of such an output; `batched`: of a model that batches, `to_batch`: for one, as a batch
// of one.
Expected<OutputTensor> TakeRow(const OutputTensor& whole, std::size_t row, bool batched,
                               bool to_batch);

// What several runs answered as rows of one tensor. `batched`: their first dimension is a batch. An
// error where their shapes differ. Without any rows it has `dims`, of which what is open is 0.
Expected<OutputTensor> PutTogether(std::span<const OutputTensor* const> rows, bool batched,
                                   const TensorSpec& made);

// The tensor's bytes: where they lie together a view, else a copy, which joins `owners`.
std::span<const std::byte> InOnePiece(const OutputTensor& tensor,
                                      std::vector<std::shared_ptr<const void>>& owners);

}  // namespace tactus
