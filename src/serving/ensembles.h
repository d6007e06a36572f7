// Ensembles of `tactus serve`: where they are declared, and over which runtime they run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/steps/routed_steps.h"
#include "ensemble/ensemble_service.h"
#include "runtime/runtime.h"
#include "service/observer.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// Those of `models` that are ensembles, or those that are not.
std::vector<std::string> OnlyEnsembles(const ServeOptions& options,
                                       const std::vector<std::string>& models, bool ensembles);

// What a model costs as a step, by the profile that it is served with; nothing where none knows.
using CostOfStep = std::function<std::optional<StageCost>(const ModelSpec&)>;
// Of the first of the runtimes, which outlive it, that serves the model.
CostOfStep CostIn(std::vector<const Runtime*> runtimes);

// Those that are steps of others (as_step), opened, over all models; null: there are none, nor will
// there be. Their steps run here.
std::unique_ptr<EnsembleService> ServeStepEnsembles(const ServeOptions& options,
                                                    InferenceService& models, CostOfStep cost_of,
                                                    Observer& observer, const Log& log);

// The others, opened: what can serve does. `models` serves all that is not among them, and the
// steps of ensembles unless `routed` does, which is over it and may be null. They, `observer` and
// `journal`, which may be null, outlive it.
std::unique_ptr<EnsembleService> ServeEnsembles(const ServeOptions& options,
                                                InferenceService& models, RoutedSteps* routed,
                                                CostOfStep cost_of, Observer& observer,
                                                PipelineJournal* journal, const Log& log);

}  // namespace tactus
