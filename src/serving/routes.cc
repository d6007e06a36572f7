#include "serving/routes.h"

#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "base/whole_file.h"
#include "cluster/control/state_file.h"
#include "server/kserve/ensemble_config.h"
#include "service/model_folders.h"

namespace tactus {
namespace {

// A roll-out waits two seconds at least before what served before goes.
constexpr std::chrono::milliseconds kReadRoutesEvery{50};
constexpr std::chrono::milliseconds kMeasureEvery{1000};

// Follows one file's routes, by whoever calls Look.
class RoutesReader {
 public:
  RoutesReader(const ServeOptions& o, RoutedSteps& steps, EnsembleService& service, Log log)
      : file_(o.routes),
        folders_(o.folders),
        opens_(o.model_control == "explicit"),
        steps_(steps),
        service_(service),
        log_(std::move(log)) {}

  void Look() {
    std::error_code code;
    if (!std::filesystem::exists(file_, code)) return;  // there is no plan yet
    auto text = ReadWhole(file_, "worker's routes");
    if (!text) return Complain(text.error().message);
    if (*text == text_) return;
    text_ = *std::move(text);
    const auto routes = ParseState<control::RoutesFile>(text_, file_.string());
    if (!routes) return Complain(routes.error().message + "; the routes before hold");
    said_.clear();
    steps_.Follow(*routes);
    if (opens_) Serve(*routes);
    log_->info("routes of plan {}.{}: {} steps", routes->plan.term, routes->plan.epoch,
               routes->routes.size());
  }

 private:
  // Those pipelines that the repository has as ensembles, and no longer those that have left.
  void Serve(const WorkerRoutes& routes) {
    std::set<std::string> pipelines;
    for (const WorkerRoute& each : routes.routes) pipelines.insert(each.pipeline);
    for (const std::string& each : served_) {
      if (!pipelines.contains(each)) (void)service_.Unload(each);
    }
    std::set<std::string> served;
    for (const std::string& each : pipelines) {
      if (!HoldsEnsemble(folders_->Of(each), "")) continue;
      if (const Status declared = service_.Declare(each); !declared) {
        log_->warn("{}", declared.error().message);
      }
      served.insert(each);
    }
    served_ = std::move(served);
  }
  void Complain(const std::string& what) {
    if (std::exchange(said_, what) != what) log_->warn("{}", what);
  }

  const std::filesystem::path file_;
  const std::shared_ptr<const ModelFolders> folders_;
  const bool opens_;
  RoutedSteps& steps_;
  EnsembleService& service_;
  const Log log_;
  std::string text_;
  std::string said_;
  std::set<std::string> served_;
};

}  // namespace

std::unique_ptr<RepeatedTask> FollowRoutes(const ServeOptions& options, RoutedSteps& steps,
                                           EnsembleService& service, Log log) {
  return std::make_unique<RepeatedTask>(
      "routes", Every(kReadRoutesEvery,
                      [reader = RoutesReader(options, steps, service, std::move(log))]() mutable {
                        reader.Look();
                      }));
}

std::unique_ptr<RepeatedTask> MeasureLinks(const ServeOptions& options, RoutedSteps& steps,
                                           Log log) {
  const auto measure = [folder = std::filesystem::path(options.routes).parent_path(), &steps,
                        log = std::move(log), told = std::vector<MeasuredLink>()]() mutable {
    std::vector<MeasuredLink> links = steps.MeasureLinks();
    if (links == told) return;
    if (const Status written = Write(links, folder); !written) {
      log->warn("{}", written.error().message);
    }
    told = std::move(links);
  };
  return std::make_unique<RepeatedTask>("links", Every(kMeasureEvery, measure), kMeasureEvery);
}

}  // namespace tactus
