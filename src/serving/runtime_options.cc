#include "serving/runtime_options.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/logger.h>

#include "cluster/models/manifest.h"
#include "engines/registry.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/model_config.h"
#include "serving/device.h"
#include "serving/ensembles.h"
#include "serving/host_lanes.h"

namespace tactus {
namespace {

Expiry ExpiryOf(const std::string& name) {
  if (name == "never") return Expiry::kNever;
  return name == "passed" ? Expiry::kPassed : Expiry::kUnmeetable;
}

// Reads a model's folder, and says what in its configuration changes nothing. A site's workers say
// by its digest which bytes they serve.
auto ModelReader(const ServeOptions& o, const Log& log) {
  return [platforms = PlatformsOf(o), log, digests = !o.schedulers.empty()](
             const std::filesystem::path& folder, std::int64_t version, const std::string& config) {
    std::vector<std::string> doubts;  // and what is to be known of it
    auto spec = ReadModelSpec(folder, version, config, {platforms, &doubts, &doubts});
    for (const std::string& doubt : doubts) log->warn(doubt);
    if (!spec || !digests || !config.empty()) return spec;
    const auto digest = DigestOfModel(folder);
    if (!digest) log->warn("{}", digest.error().message);
    spec->digest = digest.value_or("");
    return spec;
  };
}

}  // namespace

std::vector<std::string> PlatformsOf(const ServeOptions& o) {
  std::vector<std::string> platforms;
  if (!o.engine.empty()) return platforms;
  for (const EngineInfo& engine : Engines()) platforms.push_back(engine.platform);
  return platforms;
}

RuntimeOptions RuntimeOptionsOf(const ServeOptions& o) {
  RuntimeOptions r;
  r.lanes = o.lanes;
  r.devices = DeviceCount(o);
  r.slots = o.slots;
  r.threads = o.threads;
  r.queue_capacity = o.queue_capacity;
  r.expiry = ExpiryOf(o.expiry);
  r.follow = {.on = o.follow != "no",
              .percentile = o.percentile,
              .stalls = o.follow == "stalls",
              .margin = FromMillis(o.jitter_ms)};
  r.watch = {.multiple = o.watchdog_multiple, .least = FromSeconds(o.watchdog_s)};
  r.call_capacity = o.call_capacity;
  r.strict_readiness = o.strict_readiness;
  r.pending_bytes = o.pending_mb << 20;
  r.default_slo = FromMillis(o.default_slo_ms);
  r.pin = o.pin && !OnDevices(o);  // a lane on a device keeps no core busy
  r.spin = Micros(o.spin_us);
  return r;
}

Expected<std::string> DigestOfModel(const std::filesystem::path& folder) {
  const auto manifest = ReadManifest(folder);
  if (!manifest) return std::unexpected(manifest.error());
  return DigestOf(TextOf(*manifest)).text();
}

ServeOptions WithFolders(ServeOptions o) {
  o.folders = std::make_shared<ModelFolders>(
      std::vector<std::filesystem::path>(o.models.begin(), o.models.end()));
  return o;
}

Status CheckModels(const ServeOptions& o) {
  for (const std::string& each : o.models) {
    if (std::string why = WhyNoRepository(each); !why.empty()) {
      return InvalidArgument(std::move(why));
    }
  }
  if (o.load_models.empty() || o.model_control == "explicit") return {};
  return InvalidArgument("--load-model " + o.load_models.front() +
                         ": all models are loaded anyway; add --model-control-mode explicit to "
                         "load only those that are named");
}

RepositoryOptions RepositoryOptionsOf(const ServeOptions& o, const Log& log) {
  RepositoryOptions r;
  r.folders = o.folders;
  r.control = o.model_control == "poll"       ? ModelControl::kPoll
              : o.model_control == "explicit" ? ModelControl::kExplicit
                                              : ModelControl::kNone;
  r.poll_interval = FromSeconds(o.poll_s);
  r.load = OnlyEnsembles(o, o.load_models, false);
  r.read = ModelReader(o, log);
  r.versions = ListVersions;
  // With one engine for all models, theirs is the host's too.
  r.skips = [host = o.engine.empty()](const std::filesystem::path& folder) {
    return HoldsEnsemble(folder, "") || (host && RunsOnHost(folder, ""));
  };
  return r;
}

}  // namespace tactus
