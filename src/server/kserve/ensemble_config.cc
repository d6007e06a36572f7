#include "server/kserve/ensemble_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/build.h"
#include "pipeline/tensors.h"
#include "server/kserve/config_fields.h"
#include "server/kserve/declared_config.h"
#include "server/kserve/labels.h"
#include "server/kserve/model_config.h"
#include "service/deadline.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kKeys{"slo_ms",     "priority",        "deadlines",
                                                "demultiply", "demultiply_most", "gather",
                                                "answer",     "as_step"};
constexpr std::string_view kBudgetKey = "budget_ms.";
constexpr std::string_view kGatherKey = "gather.";
constexpr std::string_view kMostKey = "demultiply_most.";
// A day, as of slo_ms.
constexpr double kLongestBudgetMs = 86'400'000;

constexpr std::array<std::pair<std::string_view, DeadlineRule>, 6> kRules{{
    {"redivide", DeadlineRule::kRedivide},
    {"persist", DeadlineRule::kPersist},
    {"spare", DeadlineRule::kSpare},
    {"latency", DeadlineRule::kLatency},
    {"equal", DeadlineRule::kEqual},
    {"whole", DeadlineRule::kWhole},
}};

template <class Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> NamesIn(std::string_view list) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    names.emplace_back(name);
    if (comma == list.npos) return names;
    list.remove_prefix(comma + 1);
  }
}

// One map of a step, in an order that does not change.
std::vector<TensorLink> LinksOf(const google::protobuf::Map<std::string, std::string>& map) {
  std::vector<TensorLink> links;
  for (const auto& [tensor, as] : map) links.push_back({tensor, as});
  std::ranges::sort(links, {}, &TensorLink::tensor);
  return links;
}

class EnsembleReader {
 public:
  EnsembleReader(const DeclaredConfig& config, ModelSpec model) : config_(config) {
    made_.model = std::move(model);
  }

  Expected<EnsembleDeclaration> Read() && {
    PipelineDeclaration& pipeline = made_.pipeline;
    pipeline.name = made_.model.name;
    pipeline.noun = "ensemble";
    pipeline.deadlines = DeadlineRule::kSpare;
    pipeline.slo = made_.model.slo;
    for (const auto read :
         {&EnsembleReader::ReadSteps, &EnsembleReader::ReadRules, &EnsembleReader::ReadRows,
          &EnsembleReader::ReadBudgets, &EnsembleReader::ReadAsStep, &EnsembleReader::Check}) {
      if (Status fine = (this->*read)(); !fine) return std::unexpected(std::move(fine.error()));
    }
    return std::move(made_);
  }

 private:
  const inference::ModelConfig& message() const { return config_.message(); }

  const std::string* Parameter(const std::string& key) const {
    const auto found = message().parameters().find(key);
    return found == message().parameters().end() ? nullptr : &found->second.string_value();
  }

  StageDeclaration* StepNamed(std::string_view name) {
    const auto found = std::ranges::find(made_.pipeline.stages, name, &StageDeclaration::name);
    return found == made_.pipeline.stages.end() ? nullptr : &*found;
  }

  std::unexpected<Error> NoSuchStep(std::string_view key, std::string_view name) const {
    return config_.WrongParameter(key, NoSuchStage(made_.pipeline.stages, name));
  }

  Status ReadSteps() {
    const auto& scheduling = message().ensemble_scheduling();
    if (!message().has_ensemble_scheduling() || scheduling.step().empty()) {
      return config_.Wrong("ensemble_scheduling", "an ensemble needs steps; name their models");
    }
    if (message().input().empty() || message().output().empty()) {
      return config_.Wrong("platform", "an ensemble needs inputs and outputs: declare them");
    }
    std::map<std::string, int> times;
    for (int i = 0; i < scheduling.step_size(); ++i) {
      const auto& from = scheduling.step(i);
      const std::string place = config_.PlaceOfStep(i);
      if (from.model_name().empty()) {
        return InvalidArgument(fmt::format("{}: step {}: model_name is missing", place, i + 1));
      }
      const int time = ++times[from.model_name()];
      StageDeclaration step;
      step.name = time == 1 ? from.model_name() : fmt::format("{}#{}", from.model_name(), time);
      step.model = from.model_name();
      step.noun = "step";
      // Triton's configurations say 0 or -1 for the latest.
      step.version = from.model_version() > 0 ? from.model_version() : -1;
      step.inputs = LinksOf(from.input_map());
      step.outputs = LinksOf(from.output_map());
      step.place = place;
      if (const auto& twice = config_.doubled(); twice && twice->step == i) {
        return InvalidArgument(
            fmt::format("{}: step '{}': {} names '{}' twice; leave one of the two out",
                        twice->place, step.name, twice->map, twice->tensor));
      }
      made_.pipeline.stages.push_back(std::move(step));
    }
    for (int i = 0; i < message().input_size(); ++i) {
      made_.input_places.push_back(config_.PlaceOfTensor("input", i));
    }
    for (int i = 0; i < message().output_size(); ++i) {
      made_.output_places.push_back(config_.PlaceOfTensor("output", i));
    }
    return LinkStages(made_);
  }

  Status ReadRules() {
    if (const std::string* text = Parameter("deadlines")) {
      const auto rule = std::ranges::find(kRules, *text, [](const auto& r) { return r.first; });
      if (rule == kRules.end()) {
        return config_.WrongParameter(
            "deadlines",
            fmt::format("'{}' is none of spare, redivide, persist, latency, equal, whole", *text));
      }
      made_.pipeline.deadlines = rule->second;
    }
    if (const std::string* text = Parameter("answer")) {
      if (*text != "all" && *text != "each") {
        return config_.WrongParameter("answer", fmt::format("'{}' is neither all nor each", *text));
      }
      made_.pipeline.answer = *text == "all" ? AnswerRule::kAll : AnswerRule::kEach;
    }
    return {};
  }

  Status ReadMost(const std::string& key, StageDeclaration& step) {
    const std::string* text = Parameter(key);
    if (text == nullptr) return {};
    const auto most = NumberIn<int>(*text);
    if (!most || *most < 1 || *most > PipelineLevels::kMostItems) {
      return config_.WrongParameter(key, fmt::format("'{}' is not a whole number from 1 to {}",
                                                     *text, PipelineLevels::kMostItems));
    }
    step.demultiply_most = static_cast<int>(*most);
    return {};
  }

  Status ReadRows() {
    if (const std::string* text = Parameter("demultiply")) {
      if (message().max_batch_size() > 0) {
        return config_.WrongParameter("demultiply",
                                      "steps run for rows of one request; say max_batch_size: 0");
      }
      for (const std::string& name : NamesIn(*text)) {
        StageDeclaration* step = StepNamed(name);
        if (step == nullptr) return NoSuchStep("demultiply", name);
        step->demultiply = true;
        if (Status read = ReadMost("demultiply_most", *step); !read) return read;
        if (Status read = ReadMost(std::string(kMostKey) + name, *step); !read) return read;
      }
    }
    for (const std::string& key : KeysWith(kMostKey)) {
      const StageDeclaration* step = StepNamed(key.substr(kMostKey.size()));
      if (step == nullptr) return NoSuchStep(key, key.substr(kMostKey.size()));
      if (!step->demultiply) {
        return config_.WrongParameter(key, "the step does not demultiply; name one that does");
      }
    }
    if (Status read = ReadGather(); !read) return read;
    for (const std::string& key : KeysWith(kGatherKey)) {
      const std::string name = key.substr(kGatherKey.size());
      StageDeclaration* step = StepNamed(name);
      if (step == nullptr) return NoSuchStep(key, name);
      const std::string& of = *Parameter(key);
      const StageDeclaration* opener = StepNamed(of);
      if (opener == nullptr) return NoSuchStep(key, of);
      if (!opener->demultiply) {
        return config_.WrongParameter(
            key, fmt::format("step '{}' does not demultiply; name one that does", of));
      }
      step->gather = of;
    }
    return {};
  }

  // Where one step demultiplies, whose rows are gathered need not be said.
  Status ReadGather() {
    const std::string* text = Parameter("gather");
    if (text == nullptr) return {};
    const auto& steps = made_.pipeline.stages;
    const auto opener = std::ranges::find_if(steps, &StageDeclaration::demultiply);
    if (std::ranges::count_if(steps, &StageDeclaration::demultiply) != 1) {
      return config_.WrongParameter(
          "gather", opener == steps.end()
                        ? "no step demultiplies, so there are no rows to gather; name those that "
                          "find rows in `demultiply`"
                        : "several steps demultiply, so say gather.STEP = the one whose rows it "
                          "needs");
    }
    for (const std::string& name : NamesIn(*text)) {
      StageDeclaration* step = StepNamed(name);
      if (step == nullptr) return NoSuchStep("gather", name);
      step->gather = opener->name;
    }
    return {};
  }

  Status ReadBudgets() {
    for (const std::string& key : KeysWith(kBudgetKey)) {
      const std::string name = key.substr(kBudgetKey.size());
      StageDeclaration* step = StepNamed(name);
      if (step == nullptr) return NoSuchStep(key, name);
      const auto budget = NumberIn<double>(*Parameter(key));
      if (!budget || !(*budget > 0) || !(*budget <= kLongestBudgetMs)) {
        return config_.WrongParameter(
            key, fmt::format("'{}' is not a number of milliseconds above 0, up to a day",
                             *Parameter(key)));
      }
      step->budget = std::max(Nanos(1), FromMillis(*budget));
    }
    return {};
  }

  // Who serves it depends on it (HoldsStepEnsemble).
  Status ReadAsStep() {
    const std::string* text = Parameter("as_step");
    if (text == nullptr || *text == "true" || *text == "false") return {};
    return config_.WrongParameter("as_step", fmt::format("'{}' is neither true nor false", *text));
  }

  // What is wrong with the pipeline by itself. Its SLO may be the server's.
  Status Check() {
    PipelineDeclaration checked = made_.pipeline;
    if (checked.slo <= Duration{}) checked.slo = TimeLimit::kLongest;
    if (Status valid = Validate(checked); !valid) {
      return config_.Wrong("ensemble_scheduling", valid.error().message);
    }
    return {};
  }

  std::vector<std::string> KeysWith(std::string_view prefix) const {
    std::set<std::string> keys;
    for (const auto& [key, value] : message().parameters()) {
      if (key.starts_with(prefix)) keys.insert(key);
    }
    return {keys.begin(), keys.end()};
  }

  const DeclaredConfig& config_;
  EnsembleDeclaration made_;
};

}  // namespace

std::string StepsOf(const ModelSpec& ensemble) {
  inference::ModelConfig config;
  std::string text;
  if (!config.ParseFromString(ensemble.config)) return text;
  for (const auto& step : config.ensemble_scheduling().step()) {
    text += (text.empty() ? "" : ", ") + step.model_name();
  }
  return text;
}

std::vector<std::string> EnsembleKeys() {
  std::vector<std::string> keys(kKeys.begin(), kKeys.end());
  for (const auto of_step : {kBudgetKey, kGatherKey, kMostKey}) {
    keys.push_back(std::string(of_step) + "STEP");
  }
  return keys;
}

bool IsEnsembleKey(std::string_view key) {
  return std::ranges::find(kKeys, key) != kKeys.end() || key.starts_with(kBudgetKey) ||
         key.starts_with(kGatherKey) || key.starts_with(kMostKey);
}

Expected<EnsembleDeclaration> EnsembleOf(const DeclaredConfig& config, const fs::path& folder,
                                         std::int64_t version) {
  auto spec = SpecOf(config, folder, version);
  if (!spec) return std::unexpected(std::move(spec.error()));
  return EnsembleReader(config, *std::move(spec)).Read();
}

bool HoldsEnsemble(const fs::path& folder, const std::string& config) {
  const auto declared = DeclaredConfig::FromFolder(folder, config);
  return declared && IsEnsemble(declared->message());
}

bool HoldsStepEnsemble(const fs::path& folder, const std::string& config) {
  const auto declared = DeclaredConfig::FromFolder(folder, config);
  if (!declared || !IsEnsemble(declared->message())) return false;
  const auto found = declared->message().parameters().find("as_step");
  return found != declared->message().parameters().end() && found->second.string_value() == "true";
}

Expected<std::vector<EnsembleDeclaration>> ReadEnsemble(const fs::path& folder,
                                                        const std::string& config,
                                                        std::vector<std::string>* doubts) {
  const auto declared = DeclaredConfig::FromFolder(folder, config);
  if (!declared) return std::unexpected(declared.error());
  const auto versions = ListVersions(folder, config);
  if (!versions) return std::unexpected(versions.error());
  std::vector<EnsembleDeclaration> ensembles;
  for (const std::int64_t version : *versions) {
    auto ensemble = EnsembleOf(*declared, folder, version);
    if (!ensemble) return std::unexpected(std::move(ensemble.error()));
    const bool last = version == versions->back();  // all have the same labels
    ReadLabels(*declared, folder, ensemble->model, last ? doubts : nullptr);
    ensembles.push_back(*std::move(ensemble));
  }
  if (doubts != nullptr) {
    for (std::string& doubt : Doubts(*declared)) doubts->push_back(std::move(doubt));
  }
  return ensembles;
}

}  // namespace tactus
