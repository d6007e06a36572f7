#include "workload/predictor_file.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/whole_file.h"
#include "core/request.h"
#include "workload/json_reader.h"
#include "workload/model_names.h"

namespace tactus {
namespace {

using json = nlohmann::json;

constexpr const char* kLearnAnew = "; write a new one with --save-predictor, or start without";
constexpr double kLeast = -1e12;  // as far as JsonReader goes to the other side

PredictorFile ReadPredictor(const JsonReader& root) {
  PredictorFile predictor;
  root.Integer("tactus_predictor", 1, 1);
  root.Only({"tactus_predictor", "policy", "device", "steps", "models", "parameters"});
  predictor.policy = root.Text("policy");
  predictor.device = root.Text("device", true);
  std::set<std::string> names;
  root.Each("models", [&](const JsonReader& model) {
    model.Only({"name", "priority"});
    predictor.models.push_back(
        {model.Text("name"), static_cast<int>(model.Integer("priority", 1, kLowestPriority))});
    if (!names.insert(predictor.models.back().name).second) {
      model.Complain("name", "is there twice");
    }
  });
  predictor.learned.steps = root.Integer("steps", 0, std::int64_t{1} << 53);
  root.Each("parameters", [&](const JsonReader& parameter) {
    parameter.Only({"name", "value", "mean", "square"});
    predictor.learned.parameters.push_back({.name = parameter.Text("name"),
                                            .value = parameter.Number("value", kLeast),
                                            .mean = parameter.Number("mean", kLeast),
                                            .square = parameter.Number("square", 0)});
  });
  return predictor;
}

std::vector<std::string> NamesOf(const std::vector<PredictorFile::Served>& models) {
  std::vector<std::string> names;
  for (const PredictorFile::Served& model : models) names.push_back(model.name);
  return names;
}

}  // namespace

Expected<PredictorFile> ParsePredictor(std::string_view text, std::string_view where) {
  return ReadJson(text, where, kLearnAnew, ReadPredictor);
}

std::string PredictorText(const PredictorFile& predictor) {
  nlohmann::ordered_json document = {{"tactus_predictor", 1},
                                     {"policy", predictor.policy},
                                     {"device", predictor.device},
                                     {"steps", predictor.learned.steps}};
  document["models"] = json::array();
  for (const PredictorFile::Served& model : predictor.models) {
    document["models"].push_back({{"name", model.name}, {"priority", model.priority}});
  }
  document["parameters"] = json::array();
  for (const LearnedParameter& p : predictor.learned.parameters) {
    document["parameters"].push_back(
        {{"name", p.name}, {"value", p.value}, {"mean", p.mean}, {"square", p.square}});
  }
  // A model's name may hold bytes that are no UTF-8.
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Expected<PredictorFile> LoadPredictor(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "predictor", kLearnAnew);
  if (!text) return std::unexpected(text.error());
  return ParsePredictor(*text, path.string());
}

Status SavePredictor(const PredictorFile& predictor, const std::filesystem::path& path) {
  return WriteWhole(PredictorText(predictor), path, "predictor");
}

std::string DeviceName(const Machine& machine) {
  if (machine.cpu.empty()) return machine.fingerprint;
  return fmt::format("{}, {}", machine.cpu, machine.fingerprint);
}

std::vector<PredictorFile::Served> ServedPartsOf(const std::vector<Model>& models) {
  std::vector<PredictorFile::Served> served;
  for (const Model& model : models) {
    if (model.loaded) served.push_back({model.name, model.priority});
  }
  return served;
}

Status CheckPredictor(const PredictorFile& predictor, std::string_view where,
                      const PredictorFile& here) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument(fmt::format("{}: {}{}", where, why, kLearnAnew));
  };
  const std::vector<PredictorFile::Served>& models = here.models;
  if (predictor.policy != here.policy) {
    return refuse(fmt::format("learnt by policy '{}', not by '{}'", predictor.policy, here.policy));
  }
  const std::string other = HowNamesDiffer(NamesOf(predictor.models), NamesOf(models));
  if (!other.empty()) return refuse("learnt of other models: " + other);
  for (const PredictorFile::Served& model : models) {
    for (const PredictorFile::Served& known : predictor.models) {
      if (known.name != model.name || known.priority == model.priority) continue;
      return refuse(fmt::format("model '{}' had priority {} there and has {} here", model.name,
                                known.priority, model.priority));
    }
  }
  if (predictor.device != here.device) {
    return refuse(
        fmt::format("learnt on another device: '{}', not '{}'", predictor.device, here.device));
  }
  return {};
}

}  // namespace tactus
