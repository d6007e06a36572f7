// What a batch may hold, so that both databases take it or refuse it alike.
#pragma once

#include "base/expected.h"
#include "knowledge/store.h"

namespace tactus::knowledge {

// kInvalidArgument names the record's table and column: a text that is not UTF-8 or holds NUL, a
// number that is not finite or too large, a sample before the year 2000 or after 2200.
Status CheckBatch(const Batch& batch);

// Each list of the batch in turn, in the order in which they are written.
template <class Batch, class Visit>
void ForEachList(Batch& batch, Visit&& visit) {
  visit(batch.arrivals);
  visit(batch.network);
  visit(batch.plans);
  visit(batch.verdicts);
  visit(batch.events);
}

}  // namespace tactus::knowledge
