// Bodies of the REST calls other than inference.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/model_control.h"
#include "server/kserve/trace_settings.h"
#include "server/kserve/validation.h"
#include "service/inference_service.h"

namespace tactus {

std::string ErrorJson(std::string_view text);
std::string ServerMetadataJson(bool strict_triton, SettingsServed settings);
// `versions`: all that are ready.
std::string ModelMetadataJson(const ModelSpec& model, std::span<const std::int64_t> versions);
std::string ModelReadyJson(std::string_view model, bool ready);
std::string StatisticsJson(std::span<const ModelStatistics> statistics);
std::string IndexJson(std::span<const ModelState> models, bool ready_only);

// The body of an index request, {"ready": true} or nothing: whether only ready models are wanted.
Expected<bool> ParseIndexRequest(std::string_view body);
// The body of a load request, {"parameters": {"config": "...", "file:1/model.onnx": "BASE64"}} or
// nothing.
Expected<LoadOverride> ParseLoadRequest(std::string_view body);
// The body of an unload request: its "unload_dependents", false where it is not there.
Expected<bool> ParseUnloadRequest(std::string_view body);
// The body of a change of log settings, {"log_info": false}; an empty one changes nothing.
Expected<LogValues> ParseLogSettings(std::string_view body);
std::string LogSettingsJson(const LogValues& values);
// The body of a change of trace settings, {"trace_level": ["TIMESTAMPS"], "trace_rate": "10"}: null
// and an empty list clear a setting; a whole number stands for its text.
Expected<TraceValues> ParseTraceSettings(std::string_view body);
std::string TraceSettingsJson(const TraceValues& values);

}  // namespace tactus
