// What the dispatcher asks of its driver. Called on the dispatcher's thread, inside Step, Finish,
// Arrive, Cancel or Configure; an implementation must not call back into the dispatcher.
#pragma once

#include "core/batch.h"

namespace tactus {

class Outbox {
 public:
  virtual ~Outbox() = default;

  // Start this batch. `batch.requests` is good during the call only.
  virtual void Launch(const Batch& batch) = 0;
  // Stop this batch if that is still possible; it must report through Finish either way.
  virtual void Abort(LaneId lane, BatchId batch) = 0;
  // This request ends here, without an answer from a model.
  virtual void Reject(ModelId model, const Request& request, DropReason reason) = 0;
  // These requests end here with the batch's report; those cancelled on the way are not among them.
  virtual void Complete(const Batch& batch, const BatchReport& report) = 0;
  // From here on batches of the model are counted on to take `ratio` times what was profiled, on
  // lanes of this class.
  virtual void Followed(ModelId /*model*/, LaneClass, double /*ratio*/) {}
};

}  // namespace tactus
