// --predictor and --save-predictor: a policy goes on from what another of its kind has learnt.
#pragma once

#include <string>

#include "base/expected.h"
#include "core/policy.h"
#include "workload/predictor_file.h"

namespace tactus {

// What a predictor of this run is of. `policy` may have options: what one has learnt, another with
// other options may go on with.
PredictorFile PredictorOf(const std::string& policy, const Machine& machine,
                          const std::vector<Model>& models);

// Before the policy's first question. Returns what was loaded, for CheckPredictor, which may have
// to wait until the models are known. An error names the file, or says that the policy learns
// nothing; then the policy is as it was.
Expected<PredictorFile> ResumePredictor(const std::string& path, Policy& policy);

// Before anything runs: that what --save-predictor, --predictor and --journal name (empty: nothing)
// goes together, and that there is something to save.
Status CheckPredictorFiles(const std::string& save, const std::string& resume,
                           const std::string& journal, const Policy& policy);

// Writes what `policy` has learnt beside what it is of.
Status KeepPredictor(PredictorFile of, const Policy& policy, const std::string& path);

}  // namespace tactus
