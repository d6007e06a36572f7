#include "runtime/device_layout.h"

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

Expected<PartitionQuestion> MakePartitionQuestion(const std::vector<ModelToPlace>& models,
                                                  const PartitionOptions& partition,
                                                  const ProfileOptions& options) {
  PartitionQuestion question;
  std::vector<Model> described;
  for (const ModelToPlace& each : models) {
    described.push_back(each.model);
    question.names.push_back(each.model.name);
    question.input.models.push_back({.name = each.model.name,
                                     .slo = each.model.slo,
                                     .memory_mb = MemoryOf(each.spec, partition.shares)});
  }
  auto table = MakeTable(partition.shares, described, options);
  if (!table) return std::unexpected(table.error());
  question.table = std::make_unique<const ProfileTable>(*std::move(table));
  question.input.profile = question.table.get();
  for (const ShareProfile& each : partition.shares) question.input.shares.push_back(each.share);
  question.input.device_memory_mb = partition.memory_mb;
  return question;
}

}  // namespace tactus
