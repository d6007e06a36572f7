#include "serve_routes.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "cluster/control/state_file.h"
#include "cluster/control/tls.h"
#include "cluster/steps/grpc_peer.h"
#include "serve_access.h"
#include "server/kserve/ensemble_config.h"

namespace tactus {
namespace {

// A roll-out waits two seconds at least before what served before goes.
constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::milliseconds kMeasureEvery{1000};

// Follows one file's routes, by whoever calls Look.
class RoutesReader {
 public:
  RoutesReader(const ServeOptions& o, RoutedSteps& steps, EnsembleService& service, Log log)
      : file_(o.routes),
        models_(o.models),
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
    const auto routes = ParseRoutesFile(text_, file_.string());
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
      const bool plain = !each.starts_with('.') && each.find('/') == each.npos;
      if (!plain || !HoldsEnsemble(models_ / each, "")) continue;
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
  const std::filesystem::path models_;
  const bool opens_;
  RoutedSteps& steps_;
  EnsembleService& service_;
  const Log log_;
  std::string text_;
  std::string said_;
  std::set<std::string> served_;
};

}  // namespace

Expected<std::unique_ptr<RoutedSteps>> MakeRoutedSteps(const ServeOptions& o,
                                                       InferenceService& models, const Log& log) {
  if (o.routes.empty()) return nullptr;
  auto tls = ReadControlTls(o.peer_tls);
  if (!tls) return std::unexpected(std::move(tls.error()));
  PeerTls peers{std::move(tls->authority), std::move(tls->certificate), std::move(tls->key)};
  return std::make_unique<RoutedSteps>(
      models,
      RoutedSteps::Options{.connect = GrpcPeers(std::move(peers)),
                           .log = [log](const std::string& line) { log->warn("{}", line); }});
}

RoutesWatch::RoutesWatch(const ServeOptions& options, RoutedSteps& steps, EnsembleService& service,
                         Log log)
    : thread_([reader = RoutesReader(options, steps, service, std::move(log))](
                  const std::stop_token& stop) mutable {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        do {
          reader.Look();
        } while (!ended.wait_for(lock, stop, kLookEvery, [&] { return stop.stop_requested(); }));
      }) {}

LinksWatch::LinksWatch(const ServeOptions& options, RoutedSteps& steps, Log log)
    : thread_([folder = std::filesystem::path(options.routes).parent_path(), &steps,
               log = std::move(log)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        std::vector<MeasuredLink> told;
        while (!ended.wait_for(lock, stop, kMeasureEvery, [&] { return stop.stop_requested(); })) {
          std::vector<MeasuredLink> links = steps.MeasureLinks();
          if (links == told) continue;
          if (const Status written = Write(links, folder); !written) {
            log->warn("{}", written.error().message);
          }
          told = std::move(links);
        }
      }) {}

// What other nodes may do with this one's models.
class PeerPort::RunsOnly final : public InferenceService {
 public:
  explicit RunsOnly(InferenceService& models) : models_(models) {}

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    return models_.Find(model, version);
  }
  CallId Infer(InferCall&& call) override { return models_.Infer(std::move(call)); }
  void Cancel(CallId call) override { models_.Cancel(call); }
  bool Live() const override { return models_.Live(); }
  bool Ready() const override { return models_.Ready(); }
  std::vector<ModelState> Index() const override { return models_.Index(); }
  Status Load(const std::string&, const std::string&) override { return Refused(); }
  Status Unload(const std::string&) override { return Refused(); }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    return models_.Statistics(model, version);
  }

 private:
  static Status Refused() {
    return Fail(ErrorCode::kUnimplemented,
                "other nodes run this node's models; its agent loads and unloads them");
  }
  InferenceService& models_;
};

PeerPort::PeerPort(std::shared_ptr<Access> access, GrpcOptions options, InferenceService& models)
    : access_(std::move(access)),
      service_(std::make_unique<RunsOnly>(models)),
      server_(std::move(options), *service_) {}

PeerPort::~PeerPort() = default;

Expected<std::unique_ptr<PeerPort>> PeerPort::Start(const ServeOptions& o, InferenceService& models,
                                                    const Log& log) {
  if (o.peer_tls.empty()) return nullptr;
  const std::filesystem::path folder = o.peer_tls;
  ServeOptions peers;
  peers.tls_cert = (folder / "node.pem").string();
  peers.tls_key = (folder / "node.key").string();
  peers.tls_client_ca = (folder / "authority.pem").string();
  peers.address = o.peer_address;
  peers.insecure = true;  // without tokens: certificates say who may
  auto access = AccessOf(peers, [log](const std::string& line) { log->warn("{}", line); });
  if (!access) return std::unexpected(std::move(access.error()));
  GrpcOptions options{.address = o.peer_address,
                      .port = o.peer_port,
                      .reflection = false,
                      .access = *access,
                      .max_body = o.max_body_mb << 20,
                      .memory = (o.pending_mb << 20) + (std::size_t{64} << 20)};
  std::unique_ptr<PeerPort> port(new PeerPort(*access, std::move(options), models));
  const auto started = port->server_.Start();
  if (!started) return std::unexpected(started.error());
  port->port_ = *started;
  port->refresh_ = FollowAccess(*std::move(access));
  return port;
}

void PeerPort::Stop(std::chrono::milliseconds grace) { server_.Stop(grace); }

}  // namespace tactus
