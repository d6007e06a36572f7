// --device of `tactus serve` and `tactus profile`: where ONNX models run.
#pragma once

#include <optional>
#include <string>

#include "base/expected.h"
#include "engines/engine_shelf.h"
#include "engines/registry.h"
#include "serving/serve_options.h"

namespace tactus {

// On devices other than the processor.
bool OnDevices(const ServeOptions& options);

// How many there are to run on; 1: the processor, or one device.
int DeviceCount(const ServeOptions& options);

// As of check/doubts.h, of lanes that are real and no plan's.
std::optional<std::string> CoresDoubt(const ServeOptions& options, int cores);

// The options, with at least one lane on each device.
ServeOptions WithALaneOnEach(ServeOptions options);

// Without the emulated engine's, which are its command's. Reads what priorities the models have,
// for the devices' streams.
EngineOptions EngineOptionsOf(const ServeOptions& options);

// At the start, before any model: an error for an --engine that cannot be had, or for a --device
// that is not there or lacks something; one line says what and what to do.
Status CheckEngine(const ServeOptions& options, EngineShelf& engines);

}  // namespace tactus
