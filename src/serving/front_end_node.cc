#include "serving/front_end_node.h"

#include <filesystem>
#include <utility>

#include <spdlog/logger.h>

#include "runtime/runtime.h"
#include "serving/device.h"
#include "serving/runtime_options.h"

namespace tactus {
namespace {

// How long a model that is to be loaded may be missing: after a start, or while a worker restarts.
constexpr Duration kAwaitWorker = Seconds(10);

// As the parts of `tactus serve` see them: nobody grants batches to a front end, and it has no
// lanes whose cores others must keep off.
ServeOptions OwnParts(ServeOptions o) {
  o.schedulers.clear();
  o.pin = false;
  return WithFolders(std::move(o));
}

SiteModels::Options SiteModelsOf(const ServeOptions& o, SiteFrontEnd& site) {
  return {
      .await = [&site](const std::string& model) { return site.AwaitModel(model, kAwaitWorker); },
      .digest_of = [folders = o.folders](
                       const std::string& model) { return DigestOfModel(folders->Of(model)); }};
}

}  // namespace

Status CheckFrontEndNode(const ServeOptions& o) {
  if (!o.models.empty()) return CheckLoadedModels(o);
  const char* const without = !o.routes.empty()           ? "--routes"
                              : o.model_control != "none" ? "--model-control-mode"
                              : !o.load_models.empty()    ? "--load-model"
                                                          : nullptr;
  if (without == nullptr) return {};
  return InvalidArgument(std::string(without) +
                         " needs --models: a repository with the pipelines that run here");
}

FrontEndNode::FrontEndNode(ServeOptions options, PeerTls tls, const Log& log)
    : o_(OwnParts(std::move(options))),
      tls_(std::move(tls)),
      log_(log),
      engines_("", EngineOptionsOf(o_)) {}

Status FrontEndNode::StartHost(InferenceService& models, ServingMetrics& metrics) {
  auto host = HostLanes::Start(
      o_, RuntimeOptionsOf(o_), RepositoryOptionsOf(o_, log_), models,
      {.policy = nullptr,
       .engine_for = [this](std::string_view platform) { return engines_.For(platform); },
       .observer = &metrics,
       .log = [log = log_](const std::string& line) { log->warn(line); }});
  if (!host) return std::unexpected(std::move(host.error()));
  host_ = *std::move(host);
  return {};
}

Expected<std::unique_ptr<FrontEndNode>> FrontEndNode::Make(const ServeOptions& options,
                                                           const PeerTls& tls, SiteFrontEnd& site,
                                                           ServingMetrics& metrics,
                                                           const Log& log) {
  std::unique_ptr<FrontEndNode> node(new FrontEndNode(options, tls, log));
  const ServeOptions& o = node->o_;
  if (o.model_control == "explicit") {
    node->models_ = std::make_unique<SiteModels>(site.service(), SiteModelsOf(o, site));
  }
  InferenceService& models =
      node->models_ ? static_cast<InferenceService&>(*node->models_) : site.service();
  if (Status host = node->StartHost(models, metrics); !host) return std::unexpected(host.error());
  const std::vector<const Runtime*> runtimes = {&site.runtime(), &node->host_->runtime()};
  node->composed_ = ServeStepEnsembles(o, node->Models(), CostIn(runtimes), metrics, log);
  auto routed = MakeRoutedSteps(o, tls, node->Models(), log);
  if (!routed) return std::unexpected(std::move(routed.error()));
  node->routed_ = *std::move(routed);
  node->service_ = ServeEnsembles(o, node->Models(), node->routed_.get(), CostIn(runtimes), metrics,
                                  nullptr, log);
  return node;
}

Status FrontEndNode::Open() {
  auto peers = PeerPort::Start(o_, tls_, Models(), *service_,
                               [log = log_](const std::string& line) { log->warn(line); });
  if (!peers) return std::unexpected(std::move(peers.error()));
  peers_ = *std::move(peers);
  if (routed_ == nullptr) return {};
  routes_ = FollowRoutes(o_, *routed_, *service_, log_);
  links_ = MeasureLinks(o_, *routed_, log_);
  return {};
}

void FrontEndNode::AddTo(RuntimeReading& reading) const {
  host_->AddTo(reading);
  if (routed_) reading.remote = routed_->Remote();
}

void FrontEndNode::StopPeers(std::chrono::milliseconds grace) {
  routes_.reset();
  links_.reset();
  if (peers_) peers_->Stop(grace);
}

void FrontEndNode::Stop() { host_->Stop(Duration{}); }

}  // namespace tactus
