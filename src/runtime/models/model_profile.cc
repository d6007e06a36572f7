#include "runtime/models/model_profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/models/served_model.h"

namespace tactus {
namespace {

Expected<ProfiledModel> ReadOwn(const ModelSpec& spec) {
  const int most = std::clamp(spec.max_batch, 1, kMaxBatch);
  auto file = ReadAnyProfile(spec.profile, most);
  if (!file) return std::unexpected(std::move(file.error()));
  if (const ProfiledModel* found = file->Find(spec.name)) return *found;
  if (file->models.size() == 1) return std::move(file->models[0]);
  return NotFound(fmt::format("{}: holds {} models, but not '{}'", spec.profile.string(),
                              file->models.size(), spec.name));
}

Model ModelOf(const ModelSpec& spec, const std::string& name, int max_batch) {
  Model model;
  model.name = name;
  model.max_batch = max_batch;
  for (const ExitSpec& exit : spec.exits) model.exits.push_back({exit.name, exit.accuracy});
  return model;
}

// Of the table's only model, for all lane classes.
ProfileTable::ModelRows RowsOf(const ProfileTable& table, const Model& model) {
  const ModelId m{0};
  ProfileTable::ModelRows rows{model.exit_count(), model.max_batch, {}};
  rows.margin = table.margin(m);
  for (LaneClass::rep c = 0; c < static_cast<LaneClass::rep>(table.lane_classes()); ++c) {
    for (ExitId::rep e = 0; e < static_cast<ExitId::rep>(rows.exits); ++e) {
      for (int b = 1; b <= rows.max_batch; ++b) {
        rows.latency.push_back(table.Latency(m, ExitId{e}, b, LaneClass{c}));
        if (table.knows_use(m)) rows.use.push_back(table.Use(m, ExitId{e}, b, LaneClass{c}));
      }
    }
  }
  return rows;
}

}  // namespace

Expected<std::optional<ProfiledModel>> FindProfile(const ModelSpec& spec,
                                                   const std::optional<ProfileFile>& common) {
  std::optional<ProfiledModel> found;
  if (!spec.profile.empty()) {
    auto own = ReadOwn(spec);
    if (!own) return std::unexpected(std::move(own.error()));
    found = *std::move(own);
  } else if (const ProfiledModel* known = common ? common->Find(spec.name) : nullptr) {
    found = *known;
  }
  if (!found || found->max_batch < 1) return std::nullopt;
  found->name = spec.name;
  if (found->exits.size() == 1 && spec.exits.size() == 1) found->exits[0].name = spec.exits[0].name;
  return found;
}

ProfileFile ProfileOf(const ProfiledModel& known, const ModelSpec& spec,
                      const std::optional<ProfileFile>& common) {
  ProfileFile alone{.models = {known}};
  if (!spec.profile.empty() || !common) return alone;
  alone.launch_overhead_ms = common->launch_overhead_ms;
  alone.finish_overhead_ms = common->finish_overhead_ms;
  alone.answer_overhead_ms = common->answer_overhead_ms;
  return alone;
}

Model DescribeModel(const ModelSpec& spec, Duration default_slo, int max_batch) {
  Model model;
  model.name = spec.name;
  model.slo = spec.slo > Duration{} ? spec.slo : default_slo;
  model.max_batch = max_batch;
  model.priority = spec.priority;
  for (const ExitSpec& exit : spec.exits) model.exits.push_back({exit.name, exit.accuracy});
  return model;
}

Expected<ProfileTable::ModelRows> RowsOf(const ProfiledModel& profile, const ModelSpec& spec,
                                         int max_batch, const ProfileOptions& options) {
  ProfileFile file;
  file.models.push_back(profile);
  const Model model = ModelOf(spec, profile.name, std::min(max_batch, profile.max_batch));
  const auto table = MakeTable(file, {&model, 1}, options);
  if (!table) return std::unexpected(table.error());
  return RowsOf(*table, model);
}

Expected<ProfileTable::ModelRows> RowsOf(std::span<const ShareProfile> shares,
                                         const ModelSpec& spec, int max_batch,
                                         const ProfileOptions& options) {
  for (const ShareProfile& each : shares) {
    const ProfiledModel* known = each.profile.Find(spec.name);
    if (known != nullptr) max_batch = std::min(max_batch, known->max_batch);
  }
  const Model model = ModelOf(spec, spec.name, max_batch);
  const auto table = MakeTable(shares, {&model, 1}, options);
  if (!table) return std::unexpected(table.error());
  return RowsOf(*table, model);
}

}  // namespace tactus
