// What a policy has learnt, kept on disk as JSON, of which models and on which device: `tactus
// simulate` and `tactus serve` write one for --save-predictor and start from it for --predictor.
// What was learnt of one set of models, or on one device, says little of another, so a file names
// them and is refused for others.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/learned_state.h"
#include "core/model.h"
#include "workload/profile_file.h"

namespace tactus {

struct PredictorFile {
  struct Served {
    std::string name;
    int priority = 1;

    bool operator==(const Served&) const = default;
  };

  std::string policy;  // without its options
  std::string device;  // DeviceName
  std::vector<Served> models;
  LearnedState learned;

  bool operator==(const PredictorFile&) const = default;
};

// `where` stands in messages for the file's name. Every number of it is finite afterwards; whether
// the parameters are those of the policy is the policy's to say.
Expected<PredictorFile> ParsePredictor(std::string_view text, std::string_view where);
std::string PredictorText(const PredictorFile& predictor);

Expected<PredictorFile> LoadPredictor(const std::filesystem::path& path);
// The file is whole or as it was before.
Status SavePredictor(const PredictorFile& predictor, const std::filesystem::path& path);

// Its name for people and its fingerprint.
std::string DeviceName(const Machine& machine);
// The models whose slots are not free.
std::vector<PredictorFile::Served> ServedPartsOf(const std::vector<Model>& models);

// An error that names what differs, unless both are of one policy, one device, and the same models
// with the same priorities, in whatever order. What was learnt is not compared.
Status CheckPredictor(const PredictorFile& predictor, std::string_view where,
                      const PredictorFile& here);

}  // namespace tactus
