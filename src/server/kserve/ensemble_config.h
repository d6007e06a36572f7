// An ensemble's folder: a config.pbtxt of platform "ensemble" with Triton's ensemble_scheduling,
// whose steps are other models of the repository.
//
// Keys of our own in `parameters`, so that the same folder is valid elsewhere:
//   slo_ms            from arrival to answer, milliseconds; without it the server's default
//   deadlines         how steps share it: spare (default), redivide, persist, latency, equal, whole
//   budget_ms.STEP    the step's part of slo_ms; for all steps, or for none
//   priority          of the calls of its steps, unless the client says one; 1 is the highest
//   demultiply        STEPs, by comma: those behind one run once for each row of its answer
//   demultiply_most   rows beyond these are cut; default 64; for one step: demultiply_most.STEP
//   gather            STEPs, by comma: those that wait for all rows; where several steps
//                     demultiply, gather.STEP: the one for whose rows STEP waits
//   answer            all (default): one row that fails or is late ends the call; each: the answer
//                     does without that row
//   as_step           true: others may have it as one of their steps, as if it were a model; its
//                     own steps are models only
// A step is called as its model; the second of one model NAME is NAME#2, and so on.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "pipeline/ensemble_declaration.h"

namespace tactus {

class DeclaredConfig;

inline constexpr std::string_view kEnsemblePlatform = "ensemble";

// Whether the folder, or `config` (a ModelConfig as JSON) where it is not empty, declares one.
bool HoldsEnsemble(const std::filesystem::path& folder, const std::string& config);

// Whether it declares one that is a step of others (as_step).
bool HoldsStepEnsemble(const std::filesystem::path& folder, const std::string& config);

// The ensemble in all versions that its version policy serves. A mistake is InvalidArgument that
// names file, line, column, step and remedy. Whether models and tensors fit shows when models are
// there. `doubts` as in ModelReading.
Expected<std::vector<EnsembleDeclaration>> ReadEnsemble(const std::filesystem::path& folder,
                                                        const std::string& config,
                                                        std::vector<std::string>* doubts = nullptr);

// One version of it. No file is opened.
Expected<EnsembleDeclaration> EnsembleOf(const DeclaredConfig& config,
                                         const std::filesystem::path& folder, std::int64_t version);

// The models of a served ensemble's steps, by comma.
std::string StepsOf(const ModelSpec& ensemble);

// The keys of ours in an ensemble's parameters; those of a step end in STEP.
std::vector<std::string> EnsembleKeys();

// Whether an ensemble's parameter is read.
bool IsEnsembleKey(std::string_view key);

}  // namespace tactus
