#include "pipeline/tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

std::unexpected<Error> WrongStage(const StageDeclaration& stage, std::string_view why) {
  return InvalidArgument(fmt::format("{}{}step '{}': {}", stage.place,
                                     stage.place.empty() ? "" : ": ", stage.name, why));
}

// The tensor of that name, or -1.
int PlaceIn(std::span<const TensorSpec> tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

// "'a', 'b'", for who mistyped one.
std::string NamesOf(std::span<const TensorSpec> tensors) {
  std::string text;
  for (const TensorSpec& tensor : tensors) {
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", tensor.name);
  }
  return text.empty() ? "none" : text;
}

// Who makes and who reads the tensors of one ensemble.
class Linking {
 public:
  explicit Linking(EnsembleDeclaration& declaration)
      : declaration_(declaration),
        model_(declaration.model),
        stages_(declaration.pipeline.stages) {}

  Status Link() {
    for (const TensorSpec& input : model_.inputs) makers_[input.name] = kRequest;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (Status made = Make(static_cast<int>(s)); !made) return made;
    }
    for (StageDeclaration& stage : stages_) {
      if (Status read = Read(stage); !read) return read;
    }
    for (std::size_t i = 0; i < model_.outputs.size(); ++i) {
      const TensorSpec& output = model_.outputs[i];
      const auto maker = makers_.find(output.name);
      if (maker == makers_.end() || maker->second == kRequest) {
        return WrongEnsemble(declaration_.output_places, i,
                             fmt::format("output '{}' is made by no step; name it in a step's "
                                         "output_map, or leave it out",
                                         output.name));
      }
      read_.insert(output.name);
    }
    return CheckRead();
  }

 private:
  static constexpr int kRequest = -1;

  // Of the tensor that is written at `places[index]`, where that is known.
  std::unexpected<Error> WrongEnsemble(const std::vector<std::string>& places, std::size_t index,
                                       std::string_view why) const {
    std::string place = stages_.empty() ? std::string() : stages_.front().place;
    if (index < places.size()) place = places[index];
    return InvalidArgument(
        fmt::format("{}{}ensemble '{}': {}", place, place.empty() ? "" : ": ", model_.name, why));
  }

  Status Make(int s) {
    const StageDeclaration& stage = stages_[static_cast<std::size_t>(s)];
    for (const TensorLink& link : stage.outputs) {
      const auto [maker, fresh] = makers_.emplace(link.as, s);
      if (fresh) continue;
      if (maker->second == s) {
        return WrongStage(stage, fmt::format("makes '{}' twice; give one of its outputs another "
                                             "name, or leave it out",
                                             link.as));
      }
      const std::string other =
          maker->second == kRequest
              ? "it is an input of the ensemble"
              : fmt::format("step '{}' makes it too",
                            stages_[static_cast<std::size_t>(maker->second)].name);
      return WrongStage(
          stage, fmt::format("makes '{}', and {}; give one of them another name", link.as, other));
    }
    return {};
  }

  Status Read(StageDeclaration& stage) {
    if (stage.inputs.empty()) return WrongStage(stage, "reads nothing; give it an input_map");
    if (stage.outputs.empty()) return WrongStage(stage, "makes nothing; give it an output_map");
    for (const TensorLink& link : stage.inputs) {
      const auto maker = makers_.find(link.as);
      if (maker == makers_.end()) {
        return WrongStage(
            stage, fmt::format("reads '{}', which no step makes and which is no input of the "
                               "ensemble; name it in an output_map, or declare the input",
                               link.as));
      }
      read_.insert(link.as);
      if (maker->second == kRequest) continue;
      const std::string& name = stages_[static_cast<std::size_t>(maker->second)].name;
      if (std::ranges::find(stage.after, name) == stage.after.end()) stage.after.push_back(name);
    }
    return {};
  }

  Status CheckRead() const {
    for (const StageDeclaration& stage : stages_) {
      for (const TensorLink& link : stage.outputs) {
        if (read_.contains(link.as)) continue;
        return WrongStage(stage, fmt::format("makes '{}', which no step reads; leave it out of the "
                                             "output_map, or make it an output of the ensemble",
                                             link.as));
      }
    }
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      const std::string& name = model_.inputs[i].name;
      if (read_.contains(name)) continue;
      return WrongEnsemble(
          declaration_.input_places, i,
          fmt::format(
              "input '{}' is read by no step; name it in a step's input_map, or leave it out",
              name));
    }
    return {};
  }

  const EnsembleDeclaration& declaration_;
  const ModelSpec& model_;
  std::vector<StageDeclaration>& stages_;
  std::map<std::string, int, std::less<>> makers_;
  std::set<std::string, std::less<>> read_;
};

// A tensor as it comes out of where it is made.
struct Made {
  TensorEdge edge;
  const TensorSpec* spec = nullptr;
  bool batched = false;  // dims[0] is the batch
};

class Binding {
 public:
  Binding(const EnsembleDeclaration& declaration, const PipelineGraph& graph,
          const PipelineLevels& levels, std::span<const std::shared_ptr<const ModelSpec>> models)
      : model_(declaration.model),
        stages_(declaration.pipeline.stages),
        graph_(graph),
        levels_(levels),
        models_(models) {
    bound_.stages.resize(stages_.size());
  }

  Expected<PipelineTensors> Bind() && {
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      made_[model_.inputs[i].name] = {{StageId{}, static_cast<int>(i), TensorPassing::kWhole},
                                      &model_.inputs[i],
                                      model_.max_batch > 0};
    }
    for (const StageId stage : graph_.order()) {
      if (Status fit = BindStage(stage); !fit) return std::unexpected(fit.error());
    }
    for (const TensorSpec& output : model_.outputs) {
      auto edge = BindOutput(output);
      if (!edge) return std::unexpected(edge.error());
      bound_.outputs.push_back(*edge);
    }
    return std::move(bound_);
  }

 private:
  Status BindStage(StageId id) {
    const StageDeclaration& stage = stages_[id.value()];
    const ModelSpec& spec = *models_[id.value()];
    if (model_.max_batch > 0 && spec.max_batch < model_.max_batch && !TakesWhole(spec)) {
      return WrongStage(
          stage, spec.max_batch > 0
                     ? fmt::format("takes {} rows at most, but the ensemble's max_batch_size is "
                                   "{}; lower that",
                                   spec.max_batch, model_.max_batch)
                     : fmt::format("model '{}' has no batch, but the ensemble's max_batch_size is "
                                   "{}; state 0 there, and all dimensions in its dims",
                                   spec.name, model_.max_batch));
    }
    for (const TensorLink& link : stage.inputs) {
      if (PlaceIn(spec.inputs, link.tensor) >= 0) continue;
      return WrongStage(stage, fmt::format("model '{}' has no input '{}'; it has {}", spec.name,
                                           link.tensor, NamesOf(spec.inputs)));
    }
    for (const TensorSpec& input : spec.inputs) {
      const auto link = std::ranges::find(stage.inputs, input.name, &TensorLink::tensor);
      if (link == stage.inputs.end() && input.optional) {
        bound_.stages[id.value()].inputs.push_back({StageId{}, TensorEdge::kNone});
        continue;
      }
      if (link == stage.inputs.end()) {
        return WrongStage(stage, fmt::format("nothing is passed to input '{}' of model '{}'; name "
                                             "it in the input_map",
                                             input.name, spec.name));
      }
      auto edge = EdgeTo(id, made_.at(link->as), input, link->as);
      if (!edge) return std::unexpected(edge.error());
      bound_.stages[id.value()].inputs.push_back(*edge);
    }
    return Offer(id, stage, spec);
  }

  // What the stage makes is there for those behind it.
  Status Offer(StageId id, const StageDeclaration& stage, const ModelSpec& spec) {
    std::vector<int>& outputs = bound_.stages[id.value()].outputs;
    for (const TensorLink& link : stage.outputs) {
      const int index = PlaceIn(spec.outputs, link.tensor);
      if (index < 0) {
        return WrongStage(stage, fmt::format("model '{}' has no output '{}'; it has {}", spec.name,
                                             link.tensor, NamesOf(spec.outputs)));
      }
      made_[link.as] = {{id, static_cast<int>(outputs.size()), TensorPassing::kWhole},
                        &spec.outputs[static_cast<std::size_t>(index)],
                        CountsRows(spec)};
      outputs.push_back(index);
    }
    return {};
  }

  TensorPassing PassingTo(StageId reader, StageId maker) const {
    if (!maker.valid()) return TensorPassing::kWhole;
    const LevelId meeting = levels_.Meeting(reader, maker);
    if (levels_.of(maker) != meeting) return TensorPassing::kRows;
    const auto path = levels_.path(levels_.of(reader));
    const std::size_t below = levels_.depth(meeting) + 1;
    if (below >= path.size()) return TensorPassing::kWhole;
    return levels_.opener(path[below]) == maker ? TensorPassing::kRow : TensorPassing::kWhole;
  }

  // What a row of `as` is depends on whether models batch. Where nobody states it, that may change
  // with a reload or a call, and calls would get other answers. `reader`: none, for an output.
  Status RowsAreStated(const TensorEdge& edge, StageId reader, const std::string& as) const {
    if (edge.passing == TensorPassing::kWhole) return {};
    for (const StageId id : {edge.from, reader}) {
      if (!id.valid() || (id == reader && edge.passing == TensorPassing::kRows)) continue;
      const ModelSpec& spec = *models_[id.value()];
      if (!spec.assumed_batch) continue;
      return WrongStage(
          stages_[id.value()],
          fmt::format("what a row of '{}' is depends on whether model '{}' batches, "
                      "and nobody has stated that: write max_batch_size into its "
                      "config.pbtxt, without the parameter `batch` (it is served with {} now)",
                      as, spec.name, spec.max_batch));
    }
    return {};
  }

  // The dims with which the tensor arrives; nothing where it has no rows to take.
  static std::optional<Shape> DimsAs(TensorPassing passing, const Made& made, bool to_batch) {
    Shape dims = made.spec->dims;
    if (passing == TensorPassing::kWhole) return dims;
    if (made.batched && !dims.empty()) dims.erase(dims.begin());
    if (passing == TensorPassing::kRows) {
      dims.insert(dims.begin(), -1);
      return dims;
    }
    if (dims.empty()) return std::nullopt;
    dims.erase(dims.begin());
    if (to_batch) dims.insert(dims.begin(), 1);
    return dims;
  }

  Expected<TensorEdge> EdgeTo(StageId reader, const Made& made, const TensorSpec& input,
                              const std::string& as) const {
    const StageDeclaration& stage = stages_[reader.value()];
    const ModelSpec& spec = *models_[reader.value()];
    TensorEdge edge = made.edge;
    edge.passing = PassingTo(reader, made.edge.from);
    if (Status stated = RowsAreStated(edge, reader, as); !stated) {
      return std::unexpected(std::move(stated.error()));
    }
    const std::optional<Shape> dims = DimsAs(edge.passing, made, CountsRows(spec));
    if (!dims) {
      return WrongStage(stage, fmt::format("'{}' has no rows that a step could run for; let its "
                                           "first dimension count them",
                                           as));
    }
    if (made.spec->type != input.type) {
      return WrongStage(
          stage, fmt::format("'{}' is {}, but input '{}' of model '{}' takes {}", as,
                             Name(made.spec->type), input.name, spec.name, Name(input.type)));
    }
    if (!made.spec->any_shape && !input.any_shape && !Compatible(*dims, input.dims)) {
      return WrongStage(
          stage,
          fmt::format("'{}' comes as {}, which is no {} as input '{}' of model '{}' "
                      "takes it{}",
                      as, ToString(*dims), ToString(input.dims), input.name, spec.name,
                      edge.passing == TensorPassing::kRow && LacksBatch(spec, *dims, input.dims)
                          ? "; the model has no batch: where its first dimension counts "
                            "rows, state max_batch_size in its config.pbtxt"
                          : ""));
    }
    return edge;
  }

  Expected<TensorEdge> BindOutput(const TensorSpec& output) const {
    const Made& made = made_.at(output.name);
    const StageDeclaration& stage = stages_[made.edge.from.value()];
    TensorEdge edge = made.edge;
    if (levels_.of(edge.from) != PipelineLevels::kRoot) edge.passing = TensorPassing::kRows;
    if (Status stated = RowsAreStated(edge, StageId{}, output.name); !stated) {
      return std::unexpected(std::move(stated.error()));
    }
    const std::optional<Shape> dims = DimsAs(edge.passing, made, false);
    if (made.spec->type != output.type) {
      return WrongStage(stage, fmt::format("makes '{}' as {}, but the ensemble's output is {}",
                                           output.name, Name(made.spec->type), Name(output.type)));
    }
    if (!made.spec->any_shape && !output.any_shape && !Compatible(*dims, output.dims)) {
      return WrongStage(
          stage, fmt::format("makes '{}' as {}, but the ensemble's output is {}; correct its dims",
                             output.name, ToString(*dims), ToString(output.dims)));
    }
    return edge;
  }

  // Whether a model without a batch takes any number of rows: those of a call then run together.
  static bool TakesWhole(const ModelSpec& spec) {
    return spec.max_batch == 0 && std::ranges::all_of(spec.inputs, [](const TensorSpec& input) {
             return input.any_shape || (!input.dims.empty() && input.dims[0] < 0);
           });
  }

  // Whether `dims` would fit as a row of a batch. A batch is not found where no trial ran.
  static bool LacksBatch(const ModelSpec& spec, std::span<const std::int64_t> dims,
                         std::span<const std::int64_t> input) {
    return spec.max_batch == 0 && !input.empty() && input[0] < 0 &&
           Compatible(dims, input.subspan(1));
  }

  static bool Compatible(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
    const auto fits = [](std::int64_t x, std::int64_t y) { return x < 0 || y < 0 || x == y; };
    return SameScalar(a, b) || std::ranges::equal(a, b, fits);
  }

  const ModelSpec& model_;
  const std::vector<StageDeclaration>& stages_;
  const PipelineGraph& graph_;
  const PipelineLevels& levels_;
  const std::span<const std::shared_ptr<const ModelSpec>> models_;
  std::map<std::string, Made, std::less<>> made_;
  PipelineTensors bound_;
};

}  // namespace

Status LinkStages(EnsembleDeclaration& declaration) { return Linking(declaration).Link(); }

Expected<PipelineTensors> BindTensors(const EnsembleDeclaration& declaration,
                                      const PipelineGraph& graph, const PipelineLevels& levels,
                                      std::span<const std::shared_ptr<const ModelSpec>> models) {
  return Binding(declaration, graph, levels, models).Bind();
}

}  // namespace tactus
