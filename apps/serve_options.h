// The command line of `tactus serve` and `tactus front-end`.
#pragma once

#include <CLI/CLI.hpp>

#include "serving/serve_options.h"

namespace tactus {

// Accepts what ParseDevices does (engines/device_name.h).
CLI::Validator DeviceName();

// Of a server that only passes calls on: where it listens, what it holds.
void DeclareFrontEnd(ServeOptions& options, CLI::App& command);
// Declares every option with its help and default on `command`.
void Declare(ServeOptions& options, CLI::App& command);

}  // namespace tactus
