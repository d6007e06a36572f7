// Taking a call apart into rows, and putting the rows' answers together again. Pure functions on
// bytes: no copies are made.
#pragma once

#include "base/expected.h"
#include "core/engine.h"
#include "runtime/payload_slab.h"
#include "service/inference_service.h"

namespace tactus {

// Fills slot.row_shapes, slot.views, slot.rows and slot.shape_class from slot.call and slot.model.
// Errors say which input is wrong; front ends have checked the call, so this is the last defence.
Status FillRows(CallSlot& slot);

// The reply of a call all of whose rows have an answer.
InferReply JoinRows(const CallSlot& slot);

}  // namespace tactus
