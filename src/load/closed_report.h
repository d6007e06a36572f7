// What a closed loop came to, for people and for files.
#pragma once

#include <string>

#include "load/load_run.h"
#include "metrics/report.h"

namespace tactus {

// Whole lines: one for each model, a second where it lost any, and the first error.
std::string ToText(const ClosedLoopResult& result, int concurrency);
// All models together; of several, times are the first one's.
RunReport ReportOf(const ClosedLoopResult& result, int concurrency);
// What a report does not have, for its "generator": a JSON object.
std::string GeneratorJson(const ClosedLoopResult& result);

}  // namespace tactus
