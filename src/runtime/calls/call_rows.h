// Taking a call apart into rows, and putting the rows' answers together again. Pure functions on
// bytes: no copies are made.
#pragma once

#include "base/expected.h"
#include "core/engine.h"
#include "runtime/calls/payload_slab.h"
#include "service/inference_service.h"

namespace tactus {

// Fills pending.row_shapes, pending.views, pending.rows and pending.shape_class from pending.call
// and pending.model. Errors say which input is wrong; front ends have checked the call, so this is
// the last defence.
Status FillRows(PendingCall& pending);

// The reply of a call all of whose rows have an answer.
InferReply JoinRows(const PendingCall& pending);

}  // namespace tactus
