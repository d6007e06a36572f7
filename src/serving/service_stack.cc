#include "serving/service_stack.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "cluster/steps/grpc_peer.h"
#include "serving/ensembles.h"
#include "serving/routes.h"

namespace tactus {

ServiceStack::ServiceStack(const ServeOptions& options, Parts parts)
    : o_(options),
      host_(parts.host),
      tls_(parts.tls),
      log_(std::move(parts.log)),
      models_(host_ ? host_->service() : parts.models) {
  std::vector<const Runtime*> runtimes = {&parts.runtime};
  if (host_ != nullptr) runtimes.push_back(&host_->runtime());
  const CostOfStep cost = CostIn(std::move(runtimes));
  composed_ = ServeStepEnsembles(o_, models_, cost, parts.observer, log_);
  if (!o_.routes.empty()) {
    const auto warn = [log = log_](const std::string& line) { log->warn("{}", line); };
    routed_ = std::make_unique<RoutedSteps>(
        Models(), RoutedSteps::Options{.connect = GrpcPeers(tls_), .log = warn});
  }
  service_ = ServeEnsembles(o_, Models(), routed_.get(), cost, parts.observer, parts.journal, log_);
}

Status ServiceStack::CheckRoutes(const ServeOptions& o) {
  std::error_code ignored;
  if (!std::filesystem::exists(o.routes, ignored) ||
      std::filesystem::is_regular_file(o.routes, ignored)) {
    return {};
  }
  return InvalidArgument(fmt::format(
      "--routes {}: is no regular file; name the one that `tactus agent` writes", o.routes));
}

Status ServiceStack::Open() {
  auto peers = PeerPort::Start(o_, tls_, Models(), *service_,
                               [log = log_](const std::string& line) { log->warn(line); });
  if (!peers) return std::unexpected(std::move(peers.error()));
  peers_ = *std::move(peers);
  if (routed_ == nullptr) return {};
  routes_ = FollowRoutes(o_, *routed_, *service_, log_);
  links_ = MeasureLinks(o_, *routed_, log_);
  return {};
}

void ServiceStack::AddTo(RuntimeReading& reading) const {
  if (host_ != nullptr) host_->AddTo(reading);
  if (routed_ != nullptr) reading.remote = routed_->Remote();
}

void ServiceStack::StopPeers(std::chrono::milliseconds grace) {
  routes_.reset();
  links_.reset();
  if (peers_ != nullptr) peers_->Stop(grace);
}

}  // namespace tactus
