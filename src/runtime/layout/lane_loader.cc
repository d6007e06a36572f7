#include "runtime/layout/lane_loader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "profiling/limited_runs.h"
#include "profiling/model_trial.h"
#include "profiling/sample_row.h"

namespace tactus {
namespace {

// No dispatcher gives this id.
constexpr BatchId kWarmUp{~std::uint64_t{0}};

// Batches of one row, through every exit: what the first one allocates is there when it serves.
Status WarmUp(const ServedModel& model, ModelHandle handle) {
  const Expected<SampleRow> row = SampleRow::Make(model.spec, 1);
  if (!row) return std::unexpected(row.error());
  const RowInputs inputs = row->inputs();
  LimitedRuns limited;
  for (std::size_t e = 0; e < model.spec.exits.size(); ++e) {
    const ExitId exit{static_cast<ExitId::rep>(e)};
    const BatchResult result =
        limited.Run(model.engine, handle, {kWarmUp, model.id, exit, {&inputs, 1}}, kLongestRun);
    if (!result.status) return std::unexpected(result.status.error());
  }
  return {};
}

}  // namespace

LaneLoader::LaneLoader(std::size_t count, std::function<void(const std::string&)> log)
    : log_(std::move(log)), lanes_(count) {}

Status LaneLoader::Load(LaneId lane, ServedModel& model) const {
  const LoadedLane& loaded_lane = lanes_[lane.value()];
  ModelHandle& handle = model.handles[lane.value()];
  if (!loaded_lane.spec || handle.value != 0) return {};
  if (std::ranges::find(loaded_lane.models, model.spec.name) == loaded_lane.models.end()) return {};
  ModelSpec spec = model.spec;
  const Expected<ModelHandle> loaded = LoadOnLane(spec, model.engine, *loaded_lane.spec);
  Status ready = loaded ? WarmUp(model, *loaded) : std::unexpected(loaded.error());
  if (ready) {
    handle = *loaded;
    return {};
  }
  if (loaded) model.engine.Unload(*loaded);
  return Fail(ready.error().code,
              fmt::format("model '{}' cannot be had on a lane of {:g} %: {}", model.spec.name,
                          100 * loaded_lane.spec->fraction, ready.error().message));
}

Status LaneLoader::Furnish(LaneId lane, const LaneSpec& spec, std::vector<std::string> models) {
  const std::lock_guard lock(mutex_);
  LoadedLane& loaded_lane = lanes_[lane.value()];
  loaded_lane.spec = spec;
  loaded_lane.models = std::move(models);
  for (const auto& model : models_) {
    if (Status loaded = Load(lane, *model); !loaded) return loaded;
  }
  return {};
}

void LaneLoader::Keep(LaneId lane, std::vector<std::string> models) {
  const std::lock_guard lock(mutex_);
  LoadedLane& loaded_lane = lanes_[lane.value()];
  loaded_lane.models = std::move(models);
  for (const auto& model : models_) {
    if (std::ranges::find(loaded_lane.models, model->spec.name) != loaded_lane.models.end())
      continue;
    const ModelHandle handle = std::exchange(model->handles[lane.value()], {});
    if (handle.value != 0) model->engine.Unload(handle);
  }
}

void LaneLoader::Clear(LaneId lane) {
  Keep(lane, {});
  const std::lock_guard lock(mutex_);
  lanes_[lane.value()].spec.reset();
}

void LaneLoader::Add(const std::shared_ptr<ServedModel>& model) {
  const std::lock_guard lock(mutex_);
  models_.push_back(model);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Status loaded = Load(LaneId{static_cast<LaneId::rep>(i)}, *model);
    if (!loaded && log_) log_(loaded.error().message + "; the plan goes on without it there");
  }
}

void LaneLoader::Remove(const ServedModel& model) {
  const std::lock_guard lock(mutex_);
  std::erase_if(models_, [&](const auto& each) { return each.get() == &model; });
  for (const ModelHandle handle : model.handles) {
    if (handle.value != 0) model.engine.Unload(handle);
  }
}

bool LaneLoader::Has(LaneId lane, const ServedModel& model) const {
  const std::lock_guard lock(mutex_);
  return model.handles[lane.value()].value != 0;
}

}  // namespace tactus
