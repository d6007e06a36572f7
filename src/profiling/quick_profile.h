// A rough measurement of a model that no profile knows: a few runs for each exit and some batch
// sizes, enough to serve with; `tactus profile` measures properly.
#pragma once

#include "base/expected.h"
#include "core/engine.h"
#include "core/profile_table.h"
#include "platform/wall_clock.h"

namespace tactus {

// Runs a SampleRow through the loaded model on this thread. Batches 1, 2, 4, ... and the largest
// are measured (the worst of a few runs), those between are interpolated, and none is shorter
// than a smaller one. The runs are numbered from `first`, ids that no dispatcher gives.
Expected<ProfileTable::ModelRows> QuickProfile(Engine& engine, ModelHandle handle,
                                               const ModelSpec& spec, int max_batch,
                                               const WallClock& clock, BatchId first);

}  // namespace tactus
