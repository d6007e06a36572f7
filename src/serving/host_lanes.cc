#include "serving/host_lanes.h"

#include <utility>

#include "engines/registry.h"
#include "experiment/experiment.h"
#include "server/kserve/model_config.h"

namespace tactus {
namespace {

constexpr const char* kHostPolicy = "early-exit-edf:batch=1";

}  // namespace

bool RunsOnHost(const std::filesystem::path& model_folder, const std::string& config) {
  const auto platform = ReadPlatform(model_folder, config);
  return platform && *platform == kHostPlatform;
}

HostLanes::HostLanes(RuntimeOptions options, RuntimeParts parts,
                     std::shared_ptr<const ModelFolders> folders, InferenceService& device)
    : runtime_(std::move(options), std::move(parts)),
      service_(
          device, runtime_,
          {.calls = [](const ModelSpec& spec) { return spec.platform == kHostPlatform; },
           .loads =
               [folders = std::move(folders)](const std::string& model, const std::string& config) {
                 return RunsOnHost(folders->Of(model), config);
               }}) {}

Expected<std::unique_ptr<HostLanes>> HostLanes::Start(const ServeOptions& options,
                                                      RuntimeOptions runtime,
                                                      RepositoryOptions repository,
                                                      InferenceService& device,
                                                      RuntimeParts parts) {
  auto policy = MakeRealTimePolicy(kHostPolicy);
  if (!policy) return std::unexpected(std::move(policy.error()));
  parts.policy = *std::move(policy);
  runtime.cores = CoresFor(runtime).others;
  runtime.lanes = options.host_lanes;
  runtime.revivers = options.isolate ? options.host_lanes : 1;
  runtime.slots = 1;
  runtime.threads = 1;
  runtime.split.reset();
  runtime.pin = false;
  repository.skips = [](const std::filesystem::path& folder) { return !RunsOnHost(folder, ""); };
  std::unique_ptr<HostLanes> host(
      new HostLanes(std::move(runtime), std::move(parts), repository.folders, device));
  if (Status started = host->runtime_.Start(std::move(repository)); !started) {
    return std::unexpected(std::move(started.error()));
  }
  return host;
}

void HostLanes::AddTo(RuntimeReading& reading) const {
  reading.pending += runtime_.pending();
  reading.calls += runtime_.calls();
  reading.input_bytes += runtime_.input_bytes();
  reading.answer_bytes += runtime_.answer_bytes();
  const std::vector<LaneLoad> lanes = runtime_.lane_loads();
  reading.lanes.insert(reading.lanes.end(), lanes.begin(), lanes.end());
}

}  // namespace tactus
