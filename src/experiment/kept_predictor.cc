#include "experiment/kept_predictor.h"

#include <fmt/format.h>

#include "core/learner.h"

namespace tactus {

PredictorFile PredictorOf(const std::string& policy, const Machine& machine,
                          const std::vector<Model>& models) {
  return {.policy = policy.substr(0, policy.find(':')),
          .device = DeviceName(machine),
          .models = ServedPartsOf(models),
          .learned = {}};
}

Expected<PredictorFile> ResumePredictor(const std::string& path, Policy& policy) {
  if (!LearnedBy(policy)) {
    return InvalidArgument(fmt::format(
        "--predictor: policy '{}' learns nothing; leave it out, or take --policy strait",
        policy.name()));
  }
  auto predictor = LoadPredictor(path);
  if (!predictor) return predictor;
  const auto resumed = ResumePolicy(policy, predictor->learned);
  if (resumed) return predictor;
  return std::unexpected(
      Error{resumed.error().code,
            fmt::format("{}: {}; write a new one with --save-predictor, or start without", path,
                        resumed.error().message)});
}

Status CheckPredictorFiles(const std::string& save, const std::string& resume,
                           const std::string& journal, const Policy& policy) {
  if (!save.empty() && !LearnedBy(policy)) {
    return InvalidArgument(fmt::format(
        "--save-predictor: policy '{}' learns nothing; leave it out, or take --policy strait",
        policy.name()));
  }
  if (resume.empty() || journal.empty()) return {};
  return InvalidArgument(
      "--journal: a journal does not contain the state of --predictor, so it could not be "
      "replayed; leave one of them out");
}

Status KeepPredictor(PredictorFile of, const Policy& policy, const std::string& path) {
  of.learned = LearnedBy(policy).value_or(LearnedState{});
  return SavePredictor(of, path);
}

}  // namespace tactus
