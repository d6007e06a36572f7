// Runs models that are chains of host operators (chain.h): decoding, resizing, what comes before
// and behind a network. Platform "tactus_op". One call is one batch.
#pragma once

#include <memory>

#include "core/engine.h"

namespace tactus {

std::unique_ptr<Engine> MakeOpEngine();

}  // namespace tactus
