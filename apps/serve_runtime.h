// The options of `tactus serve` as the runtime has them.
#pragma once

#include "runtime/runtime.h"
#include "serve_options.h"

namespace tactus {

RuntimeOptions RuntimeOptionsOf(const ServeOptions& options);

}  // namespace tactus
