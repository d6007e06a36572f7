// What a model's graph is: whether its first dimension is a batch, and which sizes its open
// dimensions take. One place decides, for all who load models: those that serve, measure, check or
// write configurations.
//
// Where nobody declares a batch, an open dimension in front may be one, or the time, or the
// candidates of one query. It is believed to be a batch once unlike rows have together given what
// each gives alone. The same holds for one that a configuration calls assumed
// (BatchOrigin::kAssumed). A declared batch is tried too, and what speaks against it is said.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"

namespace tactus {

// kResourceExhausted where there is no memory for it. kFilesChanged where spec.contents was set and
// the files are others now.
Expected<ModelHandle> LoadOnLane(ModelSpec& spec, Engine& engine, const LaneSpec& lane);
// On all of `lanes` or on none; the handles by lane.
Expected<std::vector<ModelHandle>> LoadOnLanes(ModelSpec& spec, Engine& engine,
                                               std::span<const LaneSpec> lanes);

struct TriedModel {
  ModelSpec spec;                    // max_batch, batch_origin and found_shapes as they were found
  std::vector<ModelHandle> handles;  // by lane
  std::vector<std::string> said;     // lines for people: what was decided that nobody declared
  // Which sizes were made up for open dimensions, as a line for people; empty: none were.
  std::string sizes;
  bool ran = true;  // a made-up row did, or the engine tries none
  // How many rows were tried together, as a line for people; empty: as many as will be.
  std::string rows;
  // No made-up row ran: whether the batch holds, real calls may tell.
  bool untried = false;
  // The batch was not declared, and it runs without one, though nothing was shown against it.
  bool undecided = false;
  // The shapes that a row gave, by output; empty: none has run.
  std::vector<Shape> gave;
};

// Loads the model on all of `lanes` or on none, and tries it on the first where its engine says so
// (EngineTraits::tries): a second for most models; one whose batches take long gets a few runs. The
// trial's batches are numbered from `first` on, a million at most. An error where it cannot be
// loaded, or declares a batch that no values could satisfy.
Expected<TriedModel> LoadTried(ModelSpec spec, Engine& engine, std::span<const LaneSpec> lanes,
                               BatchId first);

}  // namespace tactus
