// The part of a server that runs chains of host operators (src/engines/op): a runtime of its own,
// with host lanes and a dispatcher that serves the earliest deadline first, and one service of
// both.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"
#include "service/routed_service.h"
#include "serving/log_queue.h"
#include "serving/serve_options.h"

namespace tactus {

// Whether the model of a folder runs on host lanes. A folder that cannot be read does not.
bool RunsOnHost(const std::filesystem::path& model_folder, const std::string& config);

class HostLanes {
 public:
  // `device`, which outlives this, serves all other models. `runtime` and `repository` are its
  // options, of which this one takes what is not the lanes'; `parts` lack a policy.
  static Expected<std::unique_ptr<HostLanes>> Start(const ServeOptions& options,
                                                    RuntimeOptions runtime,
                                                    RepositoryOptions repository,
                                                    InferenceService& device, RuntimeParts parts);

  // Of the device's models and the operators.
  InferenceService& service() { return service_; }
  // Adds the load of the host's runtime to a reading that has all models; its lanes come behind the
  // device's.
  void AddTo(RuntimeReading& reading) const;
  Runtime& runtime() { return runtime_; }
  const Runtime& runtime() const { return runtime_; }
  void Abandon() { runtime_.Abandon(); }
  void Stop(Duration grace) { runtime_.Stop(grace); }

 private:
  HostLanes(RuntimeOptions options, RuntimeParts parts, std::shared_ptr<const ModelFolders> folders,
            InferenceService& device);

  Runtime runtime_;
  RoutedService service_;
};

}  // namespace tactus
