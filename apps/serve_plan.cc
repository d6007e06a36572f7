#include "serve_plan.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "runtime/machine.h"
#include "workload/plan_file.h"

namespace tactus {

Expected<PartitionOptions> ReadPartition(const std::vector<std::string>& on_share,
                                         const std::string& engine, bool allow_other_machine) {
  PartitionOptions partition;
  for (const std::string& text : on_share) {
    auto share = ReadShareProfile(text);
    if (!share)
      return std::unexpected(Error{share.error().code, "--on-share: " + share.error().message});
    partition.shares.push_back(*std::move(share));
  }
  if (partition.shares.empty()) {
    return InvalidArgument(
        "--plan: say what batches take on the shares of the device: --on-share 50=half.json "
        "100=whole.json, measured by `tactus profile --threads`");
  }
  partition.cores = partition.shares.back().profile.machine.threads;
  for (const ShareProfile& each : partition.shares) {
    const int threads = static_cast<int>(std::lround(each.share * partition.cores));
    const Status here =
        CheckMachine(each.profile, ThisMachine(engine, threads), allow_other_machine);
    if (!here) {
      return InvalidArgument(fmt::format("--on-share {:g}: {} % of {} cores is a lane of {}: {}",
                                         100 * each.share, 100 * each.share, partition.cores,
                                         threads, here.error().message));
    }
  }
  return partition;
}

Status TakePlan(const std::string& path, const PartitionOptions& partition,
                const ProfileOptions& options, Runtime& runtime) {
  const auto file = LoadPlan(path);
  if (!file) return std::unexpected(file.error());
  const std::shared_ptr<const Deployment> served = runtime.deployment();
  PlanInput input;
  std::vector<Model> models;
  std::vector<std::string> names;
  for (const Model& model : served->models) {
    if (!model.loaded) continue;
    models.push_back(model);
    names.push_back(model.name);
    input.models.push_back({.name = model.name, .slo = model.slo});
  }
  const auto table = MakeTable(partition.shares, models, options);
  if (!table) return std::unexpected(table.error());
  input.profile = &*table;
  for (const ShareProfile& each : partition.shares) input.shares.push_back(each.share);
  const auto plan = FitPlan(*file, path, input);
  if (!plan) return std::unexpected(plan.error());
  return runtime.Adopt(*plan, names);
}

}  // namespace tactus
