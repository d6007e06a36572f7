#include "server/kserve/step_group_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "model_config.pb.h"
#include "pipeline/graph.h"
#include "server/kserve/config_fields.h"
#include "server/kserve/declared_config.h"
#include "server/kserve/ensemble_config.h"

namespace tactus {
namespace {

// Steps are read with names of their models; where the whole pipeline says NAME#2, so does this.
constexpr const char* kNamesKey = "tactus_names";

std::string_view WordOf(DeadlineRule rule) {
  switch (rule) {
    case DeadlineRule::kLatency:
      return "latency";
    case DeadlineRule::kEqual:
      return "equal";
    case DeadlineRule::kWhole:
      return "whole";
    case DeadlineRule::kRedivide:
      return "redivide";
    case DeadlineRule::kPersist:
      return "persist";
    case DeadlineRule::kSpare:
      break;
  }
  return "spare";
}

template <class Tensor>
void AddTensors(const std::vector<TensorSpec>& specs,
                google::protobuf::RepeatedPtrField<Tensor>& out) {
  for (const TensorSpec& spec : specs) {
    Tensor& tensor = *out.Add();
    tensor.set_name(spec.name);
    tensor.set_data_type(ToWire(spec.type));
    for (const std::int64_t dim : spec.dims) tensor.add_dims(dim);
  }
}

// What its reader will call each step.
std::map<std::string, std::string> ReadNames(const PipelineDeclaration& pipeline) {
  std::map<std::string, std::string> names;
  std::map<std::string, int> times;
  for (const StageDeclaration& step : pipeline.stages) {
    const int time = ++times[step.model];
    names[step.name] = time == 1 ? step.model : fmt::format("{}#{}", step.model, time);
  }
  return names;
}

void AddSteps(const PipelineDeclaration& pipeline, inference::ModelConfig& config) {
  auto& parameters = *config.mutable_parameters();
  const auto set = [&](const std::string& key, const std::string& value) {
    parameters[key].set_string_value(value);
  };
  auto names = ReadNames(pipeline);
  std::string openers;
  std::string own_names;
  for (const StageDeclaration& stage : pipeline.stages) {
    auto& step = *config.mutable_ensemble_scheduling()->add_step();
    step.set_model_name(stage.model);
    step.set_model_version(stage.version);
    for (const TensorLink& link : stage.inputs) (*step.mutable_input_map())[link.tensor] = link.as;
    for (const TensorLink& link : stage.outputs) {
      (*step.mutable_output_map())[link.tensor] = link.as;
    }
    const std::string& name = names[stage.name];
    own_names += (own_names.empty() ? "" : ",") + stage.name;
    if (stage.demultiply) {
      openers += (openers.empty() ? "" : ",") + name;
      set("demultiply_most." + name, std::to_string(stage.demultiply_most));
    }
    if (!stage.gather.empty()) set("gather." + name, names[stage.gather]);
    if (stage.budget > Duration{}) {
      set("budget_ms." + name, fmt::format("{}", ToMillis(stage.budget)));
    }
  }
  if (!openers.empty()) set("demultiply", openers);
  set(kNamesKey, own_names);
}

std::unexpected<Error> Wrong(std::string_view why) {
  return InvalidArgument(fmt::format("steps of a pipeline, as described: {}", why));
}

// As its sender calls them, so that errors speak of the steps that users know.
Status Rename(EnsembleDeclaration& steps) {
  const auto own = steps.model.parameters.find(kNamesKey);
  if (own == steps.model.parameters.end()) return {};
  std::string_view list = own->second;
  std::map<std::string, std::string> names;
  for (StageDeclaration& step : steps.pipeline.stages) {
    if (list.empty()) return Wrong("fewer names than steps");
    const std::size_t comma = std::min(list.find(','), list.size());
    names[step.name] = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (!list.empty()) return Wrong("more names than steps");
  for (StageDeclaration& step : steps.pipeline.stages) {
    step.name = names[step.name];
    if (!step.gather.empty()) step.gather = names[step.gather];
    for (std::string& each : step.after) each = names[each];
  }
  return {};
}

bool Same(const PipelineDeclaration& a, const PipelineDeclaration& b) {
  return a.deadlines == b.deadlines && a.answer == b.answer &&
         std::ranges::equal(a.stages, b.stages,
                            [](const StageDeclaration& x, const StageDeclaration& y) {
                              return x.name == y.name && x.model == y.model &&
                                     x.gather == y.gather && x.demultiply == y.demultiply;
                            });
}

}  // namespace

Expected<std::string> DescribeSteps(const EnsembleDeclaration& steps) {
  inference::ModelConfig config;
  config.set_name(steps.model.name);
  config.set_platform(std::string(kEnsemblePlatform));
  AddTensors(steps.model.inputs, *config.mutable_input());
  AddTensors(steps.model.outputs, *config.mutable_output());
  AddSteps(steps.pipeline, config);
  auto& parameters = *config.mutable_parameters();
  parameters["slo_ms"].set_string_value(fmt::format("{}", ToMillis(steps.pipeline.slo)));
  parameters["deadlines"].set_string_value(std::string(WordOf(steps.pipeline.deadlines)));
  parameters["answer"].set_string_value(steps.pipeline.answer == AnswerRule::kEach ? "each"
                                                                                   : "all");
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(config, &json).ok()) {
    return Wrong("a name is no UTF-8");
  }
  const auto read = ReadSteps(json);
  if (!read) return std::unexpected(read.error());
  if (!Same(read->pipeline, steps.pipeline)) return Wrong("a name that cannot stand in a list");
  return json;
}

Expected<EnsembleDeclaration> ReadSteps(std::string_view described) {
  if (described.size() > kMostDescription) return Wrong("too long");
  const auto config = DeclaredConfig::FromJson(described);
  if (!config) return std::unexpected(config.error());
  if (config->message().platform() != kEnsemblePlatform) return Wrong("no ensemble");
  if (config->message().max_batch_size() != 0) return Wrong("its max_batch_size must be 0");
  auto steps = EnsembleOf(*config, config->message().name(), 1);
  if (!steps) return steps;
  if (Status renamed = Rename(*steps); !renamed) return std::unexpected(renamed.error());
  if (const auto graph = PipelineGraph::Make(steps->pipeline.stages); !graph) {
    return std::unexpected(graph.error());  // a name is there twice
  }
  return steps;
}

}  // namespace tactus
