#include "runtime/model_profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/served_model.h"

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

Expected<ProfileTable::ModelRows> RowsOf(const ProfiledModel& profile, const ModelSpec& spec,
                                         int max_batch, const ProfileOptions& options) {
  Model model;
  model.name = profile.name;
  model.max_batch = std::min(max_batch, profile.max_batch);
  for (const ExitSpec& exit : spec.exits) model.exits.push_back({exit.name, exit.accuracy});
  ProfileFile file;
  file.models.push_back(profile);
  const auto table = MakeTable(file, {&model, 1}, options);
  if (!table) return std::unexpected(table.error());
  ProfileTable::ModelRows rows{model.exit_count(), model.max_batch, {}};
  for (int e = 0; e < rows.exits; ++e) {
    for (int b = 1; b <= rows.max_batch; ++b) {
      const ExitId exit{static_cast<ExitId::rep>(e)};
      rows.latency.push_back(table->Latency(ModelId{0}, exit, b, LaneClass{0}));
      if (!table->knows_use(ModelId{0})) continue;
      rows.use.push_back(table->Use(ModelId{0}, exit, b, LaneClass{0}));
    }
  }
  return rows;
}

}  // namespace tactus
