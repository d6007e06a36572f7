#include "runtime/layout/device_layout.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace tactus {

double MemoryOf(const ModelSpec& spec, const std::vector<ShareProfile>& shares) {
  double memory_mb = 0;
  for (const ShareProfile& share : shares) {
    const ProfiledModel* profiled = share.profile.Find(spec.name);
    if (profiled != nullptr) memory_mb = std::max(memory_mb, MemoryOf(*profiled));
  }
  if (memory_mb > 0) return memory_mb;
  std::uint64_t bytes = 0;
  std::set<std::filesystem::path> graphs;  // exits may lie in one
  for (const ExitSpec& exit : spec.exits) graphs.insert(exit.graph);
  for (const std::filesystem::path& graph : graphs) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(graph, unknown);
    if (!unknown) bytes += size;
  }
  return static_cast<double>(bytes) / 1e6;
}

Duration LongestBatch(const std::vector<ShareProfile>& shares) {
  Duration longest{};
  for (const ShareProfile& share : shares) {
    for (const ProfiledModel& model : share.profile.models) {
      for (const ProfiledExit& exit : model.exits) {
        for (const ProfileCell& cell : exit.cells) {
          longest = std::max(longest, FromMillis(std::max(cell.mean_ms, cell.p99_ms)));
        }
      }
    }
  }
  return longest;
}

Expected<PlanQuestion> MakePlanQuestion(const std::vector<LoadedModel>& models,
                                        const SplitOptions& split, const ProfileOptions& options) {
  std::vector<Model> described;
  std::vector<ModelToPlace> placed;
  for (const LoadedModel& each : models) {
    described.push_back(each.model);
    placed.push_back({.model = each.model, .memory_mb = MemoryOf(each.spec, split.shares)});
  }
  auto table = MakeTable(split.shares, described, options);
  if (!table) return std::unexpected(table.error());
  DevicesToSplit device{.shares = {}, .memory_mb = split.memory_mb};
  for (const ShareProfile& each : split.shares) device.shares.push_back(each.share);
  return MakePlanQuestion(std::make_shared<const ProfileTable>(*std::move(table)), placed,
                          std::move(device));
}

}  // namespace tactus
