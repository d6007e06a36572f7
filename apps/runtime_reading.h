// What the metrics page shows of the runtime that this process serves with.
#pragma once

#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

// All but what others know: the advice on lanes, and what a planning thread did.
RuntimeReading ReadingOf(const Runtime& runtime);

}  // namespace tactus
