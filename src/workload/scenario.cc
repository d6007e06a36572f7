#include "workload/scenario.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/nearest.h"
#include "base/whole_file.h"
#include "workload/csv.h"
#include "workload/pipelines.h"
#include "workload/scenario_fields.h"

namespace tactus {
namespace {

std::optional<ScenarioValue> ValueOf(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return ScenarioValue{whole->get()};
  if (const auto* real = node.as_floating_point()) return ScenarioValue{real->get()};
  if (const auto* text = node.as_string()) return ScenarioValue{text->get()};
  const auto* array = node.as_array();
  if (array == nullptr) return {};
  std::vector<ScenarioValue> items;
  for (const toml::node& item : *array) {
    auto value = ValueOf(item);
    if (!value) return {};
    items.push_back(std::move(*value));
  }
  return ScenarioValue{std::move(items)};
}

std::string_view TypeName(const toml::node& node) {
  if (node.is_boolean()) return "boolean";
  if (node.is_table()) return "table";
  return node.is_array() ? "list of such things" : "date or time";
}

template <class Owner>
std::string KeysOf(std::span<const ScenarioField<Owner>> fields, std::string_view section) {
  std::string keys;
  for (const auto& field : fields) {
    if (field.section != section) continue;
    keys += (keys.empty() ? "" : ", ") + std::string(field.key);
  }
  return keys;
}

// The name that a key has now; nothing for one that never was.
std::optional<std::string_view> RenamedTo(std::string_view key) {
  if (key == "use_of") return "utilization_base";  // RENAMED
  if (key == "rate_fps") return "rate_rps";        // RENAMED
  return std::nullopt;
}

// Reads tables into a scenario; the first mistake, with its place, ends the reading.
class Reader {
 public:
  Reader(const std::filesystem::path& where, Scenario& scenario)
      : where_(where), folder_(where.parent_path()), scenario_(scenario) {}

  Status Read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      Status read;
      if (key.str() == "models") {
        read = ReadEach(node, "models", ModelFields(), scenario_.models);
      } else if (key.str() == "lane_kinds") {
        read = ReadEach(node, "lane_kinds", LaneKindFields(), scenario_.lane_kinds);
      } else if (key.str() == "lane_faults") {
        read = ReadEach(node, "lane_faults", LaneFaultFields(), scenario_.lane_faults);
      } else if (key.str() == "pipelines") {
        read = ReadEach(node, "pipelines", PipelineFields(), scenario_.pipelines);
      } else if (!KeysOf(ScenarioFields(), key.str()).empty()) {
        read = ReadTable(node, key.str(), ScenarioFields(), scenario_);
      } else {
        read =
            Fail(node,
                 fmt::format(
                     "[{}]: unknown; there are [scenario], [lanes], "
                     "[[lane_kinds]], [[lane_faults]], [contention], [drift], [autoscale], [plan], "
                     "[arrivals], [[models]] and [[pipelines]]",
                     key.str()));
      }
      if (!read) return read;
    }
    for (ScenarioModel& model : scenario_.models) {
      if (model.profile_as.empty()) model.profile_as = model.name;
    }
    if (auto pins = CheckPins(root); !pins) return pins;
    return CheckPipelines(root);
  }

 private:
  // The models of [[lane_kinds]], which may stand before the models themselves.
  Status CheckPins(const toml::table& root) const {
    const auto* kinds = root["lane_kinds"].as_array();
    for (std::size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
      const auto* names = kinds->get(i)->as_table()->get_as<toml::array>("models");
      for (std::size_t n = 0; names != nullptr && n < names->size(); ++n) {
        const std::string& name = scenario_.lane_kinds[i].models[n];
        if (HasModel(scenario_, name)) continue;
        std::string known;
        for (const ScenarioModel& model : scenario_.models) {
          known += (known.empty() ? "" : ", ") + model.name;
        }
        return Fail(*names->get(n),
                    fmt::format("models: the scenario has no model '{}'; it has {}", name, known));
      }
    }
    return {};
  }

  // What is wrong with [[pipelines]] by the models, which may stand behind them.
  Status CheckPipelines(const toml::table& root) const {
    const auto mistake = FindPipelineMistake(scenario_);
    if (!mistake) return {};
    auto at = root[mistake->model ? "models" : "pipelines"]
                  [mistake->model ? *mistake->model : *mistake->pipeline];
    if (mistake->stage) at = at["stages"][*mistake->stage];
    return Fail(*at.node(), mistake->what);
  }

  // [[section]], as often as there are things of it; each has a name.
  template <class Owner>
  Status ReadEach(const toml::node& node, std::string_view section,
                  std::span<const ScenarioField<Owner>> fields, std::vector<Owner>& owners) {
    const auto* array = node.as_array();
    if (array == nullptr) {
      return Fail(node, fmt::format("{0}: write each as [[{0}]]", section));
    }
    for (const toml::node& element : *array) {
      Owner& owner = owners.emplace_back();
      if (auto read = ReadTable(element, section, fields, owner); !read) return read;
      if constexpr (std::is_same_v<Owner, ScenarioStage>) {
        if (owner.model.empty())
          return Fail(element, fmt::format("[[{}]]: needs a model", section));
        if (owner.name.empty()) owner.name = owner.model;
      }
      if constexpr (!std::is_same_v<Owner, LaneFault>) {
        if (owner.name.empty()) return Fail(element, fmt::format("[[{}]]: needs a name", section));
      }
    }
    return {};
  }

  template <class Owner>
  Status ReadTable(const toml::node& node, std::string_view section,
                   std::span<const ScenarioField<Owner>> fields, Owner& owner) {
    const auto* table = node.as_table();
    const std::string name =
        fmt::format(std::is_same_v<Owner, Scenario> ? "[{}]" : "[[{}]]", section);
    if (table == nullptr) return Fail(node, fmt::format("{}: must be a table", name));
    for (const auto& [key, value] : *table) {
      if constexpr (std::is_same_v<Owner, ScenarioPipeline>) {
        if (key.str() == "stages") {
          auto read = ReadEach(value, "pipelines.stages", StageFields(), owner.stages);
          if (!read) return read;
          continue;
        }
      }
      const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) {
        return f.section == section && f.key == key.str();
      });
      if (field == fields.end()) {
        if (const auto now = RenamedTo(key.str())) {
          return Fail(value, fmt::format("{}: is called {} now", key.str(), *now));
        }
        std::vector<std::string> names;
        for (const auto& f : fields) {
          if (f.section == section) names.emplace_back(f.key);
        }
        return Fail(value, fmt::format("{}: unknown in {}{}; it may hold {}", key.str(), name,
                                       DidYouMean(key.str(), names), KeysOf(fields, section)));
      }
      const auto written = ValueOf(value);
      if (!written) {
        return Fail(value, fmt::format("{}: no key takes a {}", key.str(), TypeName(value)));
      }
      const auto read = Assign(*field, owner, *written, folder_);
      if (!read) return Fail(value, fmt::format("{}: {}", key.str(), read.error().message));
    }
    return {};
  }

  Status Fail(const toml::node& node, std::string_view what) const {
    const toml::source_position& at = node.source().begin;
    return InvalidArgument(fmt::format("{}:{}:{}: {}", where_.string(), at.line, at.column, what));
  }

  const std::filesystem::path& where_;
  const std::filesystem::path folder_;
  Scenario& scenario_;
};

// Of the `rank`-th that shares in the total rate, from 0.
double Weight(const Scenario& scenario, double ratio, std::size_t rank) {
  switch (scenario.popularity) {
    case Popularity::kEqual:
      return 1;
    case Popularity::kRatio:
      return ratio;
    case Popularity::kZipf:
      return std::pow(static_cast<double>(rank + 1), -scenario.zipf);
  }
  return 0;
}

}  // namespace

Expected<Scenario> ParseScenario(std::string_view text, const std::filesystem::path& where) {
  Scenario scenario;
  try {
    const toml::table root = toml::parse(text);
    if (root.contains("devices") && !root.contains("models")) {
      return InvalidArgument(fmt::format(
          "{}: is a fleet ([[devices]]), and a scenario ([scenario], [[models]]) is wanted here; "
          "`tactus simulate`, `plan fleet`, `controller` and `cluster up` take fleets",
          where.string()));
    }
    if (auto read = Reader(where, scenario).Read(root); !read) return std::unexpected(read.error());
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    return InvalidArgument(fmt::format("{}:{}:{}: not valid TOML: {}", where.string(), at.line,
                                       at.column, error.description()));
  }
  if (scenario.name.empty()) scenario.name = where.stem().string();
  if (auto valid = Validate(scenario); !valid) {
    return InvalidArgument(fmt::format("{}: {}", where.string(), valid.error().message));
  }
  return scenario;
}

Expected<Scenario> LoadScenario(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "scenario", "; scenarios/three-resnets.toml is an example");
  if (!text) return std::unexpected(text.error());
  return ParseScenario(*text, path);
}

std::vector<double> Shares(const Scenario& scenario) {
  std::vector<double> shares;
  for (const double percent : scenario.plan_shares) shares.push_back(percent / 100);
  shares.push_back(1);
  return shares;
}

std::vector<LaneKind> LaneKinds(const Scenario& scenario) {
  std::vector<LaneKind> kinds = scenario.lane_kinds;
  int plain = scenario.lanes;
  for (const LaneKind& kind : kinds) plain -= kind.count;
  kinds.push_back({.name = std::string(kPlainLanes), .count = plain});
  std::erase_if(kinds, [](const LaneKind& kind) { return kind.count <= 0; });
  std::ranges::stable_sort(kinds, std::ranges::greater{}, &LaneKind::speed);
  return kinds;
}

bool MayRun(const LaneKind& kind, std::string_view model) {
  return kind.models.empty() || std::ranges::find(kind.models, model) != kind.models.end();
}

bool HasModel(const Scenario& scenario, std::string_view name) {
  const auto& models = scenario.models;
  return std::ranges::find(models, name, &ScenarioModel::name) != models.end();
}

std::vector<double> ArrivalRates(const Scenario& scenario) {
  struct Source {
    double weight = 0;
    std::optional<double> own = {};
    double each = 1;  // requests that it brings
  };
  std::vector<Source> sources;
  std::size_t rank = 0;
  for (const ScenarioModel& model : scenario.models) {
    Source& source = sources.emplace_back();
    if (IsStage(scenario, model.name)) continue;
    source = {Weight(scenario, model.ratio, rank++), model.rate_rps};
  }
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    sources.push_back(
        {Weight(scenario, pipeline.ratio, rank++), pipeline.rate_rps, RunsOfARequest(pipeline)});
  }
  double total = 0;
  for (const Source& source : sources) total += source.weight;
  std::vector<double> rates;
  for (const Source& source : sources) {
    const double share = total > 0 ? source.weight / total : 0;
    rates.push_back(source.own.value_or(scenario.rate_rps * share / source.each));
  }
  return rates;
}

std::vector<double> Rates(const Scenario& scenario) {
  std::vector<double> rates = ArrivalRates(scenario);
  const std::size_t models = scenario.models.size();
  for (std::size_t p = 0; p < scenario.pipelines.size(); ++p) {
    const auto& stages = scenario.pipelines[p].stages;
    const std::vector<double> runs = RunsOfStages(scenario.pipelines[p]);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (std::size_t m = 0; m < models; ++m) {
        if (scenario.models[m].name == stages[s].model) rates[m] += rates[models + p] * runs[s];
      }
    }
  }
  rates.resize(models);
  return rates;
}

const std::string& ArrivalName(const Scenario& scenario, std::size_t i) {
  const std::size_t models = scenario.models.size();
  return i < models ? scenario.models[i].name : scenario.pipelines[i - models].name;
}

Expected<ProfileFile> SelectProfile(const Scenario& scenario, const ProfileFile& profile) {
  ProfileFile selected = profile;
  selected.models.clear();
  for (const ScenarioModel& wanted : scenario.models) {
    const ProfiledModel* found = profile.Find(wanted.profile_as);
    if (found == nullptr) {
      return NotFound(
          fmt::format("model '{}': the profile has no model '{}'; measure it with "
                      "`tactus profile`, or say profile_as",
                      wanted.name, wanted.profile_as));
    }
    ProfiledModel& model = selected.models.emplace_back(*found);
    model.name = wanted.name;
    if (wanted.max_batch > found->max_batch) {
      return NotFound(fmt::format("model '{}': max_batch is {}, the profile knows batches 1 to {}",
                                  wanted.name, wanted.max_batch, found->max_batch));
    }
    if (wanted.max_batch > 0) model.max_batch = wanted.max_batch;
    if (!wanted.exits.empty()) {
      model.exits.clear();
      for (const ProfiledExit& exit : found->exits) {  // the profile's order is the depth
        if (std::count(wanted.exits.begin(), wanted.exits.end(), exit.name) == 1) {
          model.exits.push_back(exit);
        }
      }
      if (model.exits.size() != wanted.exits.size()) {
        return NotFound(
            fmt::format("model '{}': an exit of exits = {{...}} is not in the profile, or "
                        "is named twice",
                        wanted.name));
      }
    }
    if (!wanted.accuracy.empty() && wanted.accuracy.size() != model.exits.size()) {
      return InvalidArgument(fmt::format("model '{}': {} accuracies for {} exits", wanted.name,
                                         wanted.accuracy.size(), model.exits.size()));
    }
    for (std::size_t e = 0; e < model.exits.size(); ++e) {
      if (!wanted.accuracy.empty()) model.exits[e].accuracy = wanted.accuracy[e];
      model.exits[e].cells.resize(model.max_batch);
    }
  }
  return selected;
}

Expected<std::vector<Model>> MakeModels(const Scenario& scenario, const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  std::vector<Model> models;
  for (std::size_t i = 0; i < scenario.models.size(); ++i) {
    Model& model = models.emplace_back();
    model.name = scenario.models[i].name;
    model.slo = FromMillis(scenario.models[i].slo_ms);
    model.max_batch = selected->models[i].max_batch;
    model.priority = scenario.models[i].priority;
    for (const ProfiledExit& exit : selected->models[i].exits) {
      model.exits.push_back({exit.name, exit.accuracy});
    }
  }
  if (scenario.pipelines.empty()) return models;
  const auto pipelines = MakePipelines(scenario, *selected);
  if (!pipelines) return std::unexpected(pipelines.error());
  for (Model& model : models) {
    if (IsStage(scenario, model.name)) model.slo = Duration::max();
  }
  for (const Pipeline& pipeline : *pipelines) {
    for (const PipelineStage& stage : pipeline.stages) {
      Duration& slo = models[stage.model.value()].slo;
      slo = std::min(slo, stage.budget);
    }
  }
  return models;
}

}  // namespace tactus
