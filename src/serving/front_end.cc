#include "serving/front_end.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>

#include "server/kserve/validation.h"
#include "serving/device.h"
#include "serving/idle_memory.h"
#include "serving/overload_news.h"
#include "serving/peer_port.h"
#include "serving/runtime_options.h"
#include "serving/runtime_reading.h"

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

SiteFrontEnd::Options SiteOptionsOf(const ServeOptions& o, const PeerTls& tls, Observer& observer,
                                    const Log& log) {
  return {.schedulers = o.schedulers,
          .tls = tls,
          .workers = o.most_workers,
          .queue_capacity = o.queue_capacity,
          .call_capacity = o.call_capacity,
          .pending_bytes = o.pending_mb << 20,
          .observer = &observer,
          .say = [log](const std::string& line) { log->warn(line); }};
}

SiteModels::Options SiteModelsOf(const ServeOptions& o, SiteFrontEnd& site) {
  return {
      .await = [&site](const std::string& model) { return site.AwaitModel(model, kAwaitWorker); },
      .digest_of = [folders = o.folders](
                       const std::string& model) { return DigestOfModel(folders->Of(model)); }};
}

// Says when calls stop reaching workers, of all models or of some, and when they do again.
class SiteFollower {
 public:
  SiteFollower(const SiteFrontEnd& site, Log log) : site_(site), log_(std::move(log)) {}

  void Look() {
    std::optional<std::string> why = site_.WhyNotReady();
    if (why != why_ && why) log_->warn("not ready: {}; calls wait until their deadlines", *why);
    if (why != why_ && !why) log_->info("ready again: a worker serves");
    why_ = std::move(why);
    if (why_) return;  // that is all that there is to say
    std::vector<std::string> unserved = site_.Unserved();
    for (const std::string& each : unserved) {
      if (std::ranges::binary_search(unserved_, each)) continue;
      log_->warn(
          "model '{}' is not ready: no worker of the site serves it; its calls wait until "
          "their deadlines",
          each);
    }
    for (const std::string& each : unserved_) {
      if (std::ranges::binary_search(unserved, each)) continue;
      log_->info("model '{}' is ready again: a worker serves it", each);
    }
    unserved_ = std::move(unserved);
  }

 private:
  const SiteFrontEnd& site_;
  const Log log_;
  std::optional<std::string> why_;
  std::vector<std::string> unserved_;  // in order
};

void AwaitWorker(SiteFrontEnd& site, const ServeOptions& o, const Log& log) {
  log->info("waiting up to 10 s for a scheduler with a worker at {}; not ready meanwhile",
            fmt::join(o.schedulers, ", "));
  if (!site.AwaitModels(Seconds(10))) {
    log->warn("no scheduler with a worker answers at {}: it serves once one does",
              fmt::join(o.schedulers, ", "));
  }
}

}  // namespace

Status CheckFrontEndNode(const ServeOptions& o) {
  if (!o.models.empty()) return CheckModels(o);
  const char* const without = !o.routes.empty()           ? "--routes"
                              : o.model_control != "none" ? "--model-control-mode"
                              : !o.load_models.empty()    ? "--load-model"
                                                          : nullptr;
  if (without == nullptr) return {};
  return InvalidArgument(std::string(without) +
                         " needs --models: a repository with the pipelines that run here");
}

FrontEnd::FrontEnd(const ServeOptions& options, const LogQueue& logs)
    : o_(options),
      own_(OwnParts(options)),
      logs_(logs),
      log_(logs.log()),
      metrics_(MetricsOptionsOf(o_, "granted", false)),
      moments_(metrics_),
      door_("no scheduler with a worker has answered yet"),
      engines_("", EngineOptionsOf(own_)) {}

Expected<std::unique_ptr<FrontEnd>> FrontEnd::Make(const ServeOptions& options,
                                                   const LogQueue& logs) {
  std::unique_ptr<FrontEnd> front_end(new FrontEnd(options, logs));
  if (Status fine = front_end->Start(); !fine) return std::unexpected(std::move(fine.error()));
  return front_end;
}

Status FrontEnd::Start() {
  auto access = ServerAccess::Of(o_, [log = log_](const std::string& line) { log->warn(line); });
  if (!access) return std::unexpected(std::move(access.error()));
  access_ = *std::move(access);
  const bool safe = o_.insecure || access_.tls.on();
  if (Status fine = CheckSchedulers("--schedulers", o_.schedulers, safe); !fine) return fine;
  if (Status fine = CheckFrontEndNode(o_); !fine) return fine;
  const auto peers = PeerPort::PlaceFor(own_, access_.tls);
  if (!peers) return std::unexpected(peers.error());
  if (Status free = ServerPorts::CheckFree(o_, *peers); !free) return free;
  if (Status routes = ServiceStack::CheckRoutes(o_); !routes) return routes;

  site_ = std::make_unique<SiteFrontEnd>(SiteOptionsOf(o_, access_.tls, moments_, log_));
  site_->Start();
  live_ = std::make_unique<LiveFeed>(LiveParts());
  auto ports =
      ServerPorts::Start(o_, {.service = door_,
                              .access = access_,
                              .logs = logs_,
                              .live = o_.ui ? live_.get() : nullptr,
                              .metrics = [this] { return metrics_.Text(); },
                              .refused = [this](auto why) { metrics_.OnTurnedAway(why); },
                              .late = [this] { metrics_.OnLateAnswer(); },
                              .spans_lost = [this](auto spans) { metrics_.OnSpansLost(spans); }});
  if (!ports) return std::unexpected(std::move(ports.error()));
  ports_ = *std::move(ports);
  AwaitWorker(*site_, o_, log_);
  if (Status host = o_.models.empty() ? Status() : StartHost(); !host) return host;
  metrics_.Watch([this] {
    RuntimeReading reading = ReadingOf(site_->runtime(), service());
    if (stack_ != nullptr) stack_->AddTo(reading);
    return reading;
  });
  return {};
}

LiveFeed::Parts FrontEnd::LiveParts() {
  return {.policy = "granted",
          .lane = "server",
          .elsewhere = true,
          .moments = moments_,
          .metrics = metrics_,
          .read =
              [this] {
                if (!open_) return RuntimeReading{};
                RuntimeReading reading = ReadingOf(site_->runtime(), service());
                // There is a lane for each server that the site may have.
                const auto ran = [](const LaneLoad& lane) { return lane.batches > 0; };
                while (!reading.lanes.empty() && !ran(reading.lanes.back())) {
                  reading.lanes.pop_back();
                }
                for (std::uint32_t lane = 0; lane < reading.lanes.size(); ++lane) {
                  reading.lanes[lane].held = !site_->HasWorker(LaneId{lane});
                }
                return reading;
              },
          .find = [this](const std::string& model,
                         std::int64_t version) -> std::shared_ptr<const ModelSpec> {
            auto found = service().Find(model, version);
            return found ? *std::move(found) : nullptr;
          }};
}

// The repository's host operators, and its pipelines.
Status FrontEnd::StartHost() {
  if (own_.model_control == "explicit") {
    models_ = std::make_unique<SiteModels>(site_->service(), SiteModelsOf(own_, *site_));
  }
  InferenceService& models = models_ ? static_cast<InferenceService&>(*models_) : site_->service();
  auto host = HostLanes::Start(
      own_, RuntimeOptionsOf(own_), RepositoryOptionsOf(own_, log_), models,
      {.policy = nullptr,
       .engine_for = [this](std::string_view platform) { return engines_.For(platform); },
       .observer = &metrics_,
       .log = [log = log_](const std::string& line) { log->warn(line); }});
  if (!host) return std::unexpected(std::move(host.error()));
  host_ = *std::move(host);
  stack_ = std::make_unique<ServiceStack>(own_, ServiceStack::Parts{.models = models,
                                                                    .runtime = site_->runtime(),
                                                                    .host = host_.get(),
                                                                    .tls = access_.tls,
                                                                    .observer = moments_,
                                                                    .log = log_});
  return {};
}

Status FrontEnd::Open() {
  door_.Open(service());
  open_ = true;
  if (Status opened = stack_ ? stack_->Open() : Status(); !opened) return opened;
  access_refresh_ = FollowAccess(access_.access);
  follow_ = std::make_unique<RepeatedTask>(
      "follow site",
      Every(Millis(250), [follower = SiteFollower(*site_, log_)]() mutable { follower.Look(); }));
  idle_memory_ = GiveBackKeptMemory(metrics_, site_->runtime(), engines_);
  overloads_ = LogOverloads(metrics_, log_);
  return {};
}

std::string FrontEnd::Text() const {
  std::string text = fmt::format("tactus {} is a front end of the site of {}\n\n", kServerVersion,
                                 fmt::join(o_.schedulers, ", "));
  for (const ModelState& state : service().Index()) {
    text += fmt::format("{:<16} {:>7}  {}\n", state.name, state.version, state.state);
  }
  return text;
}

// All ports at once, so that calls of clients and of other nodes have the same time.
void FrontEnd::Stop() {
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(o_.grace_s * 1000));
  live_->Stop();
  ports_->Stop(grace, [&] {
    if (stack_ != nullptr) stack_->StopPeers(grace);
  });
  if (host_ != nullptr) host_->Stop(Duration{});
  site_->Stop();
  ports_->StopMetrics();
  metrics_.Watch({});
}

}  // namespace tactus
