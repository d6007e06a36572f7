#include "serving/server_ports.h"

#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "base/host_port.h"
#include "platform/ready_thread.h"
#include "server/access/admin_socket.h"
#include "server/access/paced_refusals.h"
#include "server/autoscale/load_sampler.h"
#include "server/grpc/grpc_server.h"
#include "server/http/http_server.h"
#include "server/kserve/body_admission.h"
#include "server/kserve/otlp_export.h"
#include "server/kserve/trace_file.h"
#include "server/kserve/trace_settings.h"
#include "server/kserve/traced_service.h"
#include "server/live/live_feed.h"
#include "server/net/listening_socket.h"
#include "serving/device.h"
#include "serving/log_queue.h"
#include "serving/runtime_options.h"
#include "serving/server_access.h"
#include "serving/what_if.h"
#include "stream/stream_set.h"

namespace tactus {

Expected<HttpUrl> CollectorOf(const ServeOptions& o) {
  auto to = ParseOtlpUrl(o.otlp);
  if (!to) to.error().message = "--otlp: " + to.error().message;
  return to;
}

// What is traced, and where; without --trace-file and --otlp nothing, and calls take no detour.
struct ServedTraces {
  std::shared_ptr<TraceSettings> settings;
  std::unique_ptr<TraceSink> sink;         // or null
  std::unique_ptr<TracedService> service;  // or null

  static Expected<ServedTraces> Make(const ServeOptions& o, const ServerPorts::Parts& parts) {
    using Mode = TraceSettings::Mode;
    ServedTraces traces{.settings = std::make_shared<TraceSettings>(o.trace_file)};
    if (o.trace_file.empty() && o.otlp.empty()) return traces;
    const auto say = [log = parts.logs.log()](const std::string& line) { log->warn(line); };
    if (o.otlp.empty()) {
      auto file = TraceFile::Create(o.trace_file, say);
      if (!file) return std::unexpected(std::move(file.error()));
      traces.sink = *std::move(file);
    } else {
      auto to = CollectorOf(o);
      if (!to) return std::unexpected(std::move(to.error()));
      traces.settings = std::make_shared<TraceSettings>(o.otlp, Mode::kOpenTelemetry);
      traces.sink = std::make_unique<OtlpExporter>(*std::move(to), say, parts.spans_lost);
    }
    traces.service = std::make_unique<TracedService>(parts.service, *traces.settings, *traces.sink);
    return traces;
  }
};

struct ServerPorts::Body {
  const InferenceService& service;
  std::string address;
  bool tls = false;
  bool ui = false;
  ServedTraces traces;
  std::shared_ptr<PacedRefusals> refusals;
  HttpServer http;
  GrpcServer grpc;
  HttpServer page;
  std::unique_ptr<GrpcServer> admin;  // or null
  std::uint16_t http_port = 0;
  std::uint16_t grpc_port = 0;
  std::uint16_t metrics_port = 0;
  // There may be no room for a thread when the ports stop.
  std::array<std::unique_ptr<ReadyThread>, 4> stops{};
  std::jthread announces{};  // that the service is ready, once it is

  // The line that programs wait for.
  std::string Line(std::string_view how, std::uint16_t peers, const std::string& not_ready) const {
    return fmt::format("{} http={} grpc={} metrics={}{}{}\n", how, http_port, grpc_port,
                       metrics_port, peers == 0 ? "" : fmt::format(" peers={}", peers),
                       not_ready.empty() ? "" : " not_ready=" + not_ready);
  }
};

namespace {

constexpr std::chrono::milliseconds kLookPeriod{100};

// "a,b": the models that keep the service from being ready.
std::string NotReadyIn(const InferenceService& service) {
  std::string names;
  for (const ModelState& state : service.Index()) {
    const bool unwanted = state.reason == "not loaded" || state.reason == "unloaded";
    if (state.state == "READY" || unwanted) continue;
    std::string name = state.name;
    for (char& c : name) {  // the line that it goes into is read by words
      if (c == ',' || c == '=' || std::isspace(static_cast<unsigned char>(c)) != 0) c = '?';
    }
    names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

// Whether lanes run on the cores of the I/O threads, for want of others.
bool SharesCores(const ServeOptions& o) {
  return !OnDevices(o) && CoresFor(RuntimeOptionsOf(o)).lanes.empty();
}

HttpOptions HttpOptionsOf(const ServeOptions& o, const ServerPorts::Parts& parts,
                          const ServedTraces& traces) {
  HttpOptions http{.address = o.address, .port = o.http_port, .threads = o.http_threads};
  http.shares_cores = SharesCores(o);
  http.max_body = o.max_body_mb << 20;
  http.strict_triton = o.strict_triton;
  http.access = parts.access.access;
  http.limits = parts.access.limits;
  http.lag = parts.lag;
  http.refused = parts.refused;
  http.objectives = parts.access.objectives;
  http.log_settings = parts.logs.settings();
  http.trace_settings = traces.settings;
  http.folders = parts.folders;
  if (parts.live != nullptr)
    http.watch_live = [live = parts.live](auto client) { return live->Watch(client); };
  if (parts.what_if != nullptr) {
    http.what_if = [what_if = parts.what_if](std::string question, auto reply) {
      what_if->Ask(std::move(question), std::move(reply));
    };
  }
  http.max_connections = parts.access.connections;
  http.warn = [log = parts.logs.log()](const std::string& line) { log->warn(line); };
  return http;
}

GrpcOptions GrpcOptionsOf(const ServeOptions& o, const ServerPorts::Parts& parts,
                          const ServedTraces& traces) {
  return {.threads = o.http_threads,
          .shares_cores = SharesCores(o),
          .address = o.address,
          .port = o.grpc_port,
          .strict_triton = o.strict_triton,
          .access = parts.access.access,
          // Without certificates other nodes come here.
          .takes_entered = !o.routes.empty() && o.peer_tls.empty(),
          .limits = parts.access.limits,
          .refused = parts.refused,
          .objectives = parts.access.objectives,
          .log_settings = parts.logs.settings(),
          .trace_settings = traces.settings,
          .folders = parts.folders,
          .max_body = o.max_body_mb << 20,
          .max_pending_bytes = o.pending_mb << 20,
          .max_connections = parts.access.connections,
          .warn = [log = parts.logs.log()](const std::string& line) { log->warn(line); },
          .least_ping_interval = std::chrono::milliseconds(std::llround(1e3 * o.grpc_ping_s))};
}

// Whoever opens the socket may do everything, without limits of a client.
GrpcOptions AdminOptionsOf(const ServeOptions& o, const ServerPorts::Parts& parts,
                           const ServedTraces& traces) {
  GrpcOptions admin = GrpcOptionsOf(o, parts, traces);
  admin.address = GrpcAddressOf(o.admin_socket);
  admin.access = nullptr;
  admin.limits = nullptr;
  admin.takes_entered = false;
  return admin;
}

HttpOptions PageOptionsOf(const ServeOptions& o, const ServerPorts::Parts& parts) {
  return {.address = o.address,
          .port = o.metrics_port,
          .max_connections = kPageConnections,
          .warn = [log = parts.logs.log()](const std::string& line) { log->warn(line); },
          .strict_triton = o.strict_triton,
          .access = parts.access.access};
}

// Of a port that cannot be had: which option names another.
std::unexpected<Error> NotToBeHad(const Error& error, const char* option) {
  const bool taken = error.message.contains("cannot listen");
  return Fail(error.code,
              error.message + (taken ? fmt::format("; name another port with {} (0: any free one), "
                                                   "or another --address",
                                                   option)
                                     : ""));
}

}  // namespace

Status ServerPorts::CheckFree(const ServeOptions& o, const std::optional<HostPort>& peers) {
  std::array<ListeningSocket, 4> sockets;  // all at once: two options may name one port
  const std::array<std::pair<std::uint16_t, const char*>, 3> ports{
      {{o.http_port, "--http-port"},
       {o.grpc_port, "--grpc-port"},
       {o.metrics_port, "--metrics-port"}}};
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& [port, option] = ports[i];
    if (port == 0) continue;
    if (const auto open = sockets[i].Open(o.address, port); !open) {
      return NotToBeHad(open.error(), option);
    }
  }
  if (peers) {
    if (const auto open = sockets.back().Open(peers->host, peers->port); !open) {
      return Fail(open.error().code, fmt::format("--peer-listen {}: {}; name another port there",
                                                 o.peer_listen, open.error().message));
    }
  }
  if (!o.otlp.empty()) {
    if (const auto to = CollectorOf(o); !to) return std::unexpected(to.error());
  }
  return o.trace_file.empty() ? Status() : TraceFile::CheckFree(o.trace_file);
}

ServerPorts::ServerPorts(std::unique_ptr<Body> body) : body_(std::move(body)) {}
ServerPorts::~ServerPorts() = default;

Expected<std::unique_ptr<ServerPorts>> ServerPorts::Start(const ServeOptions& o, Parts parts) {
  auto made = ServedTraces::Make(o, parts);
  if (!made) return std::unexpected(std::move(made.error()));
  ServedTraces traces = *std::move(made);
  InferenceService& traced = traces.service ? *traces.service : parts.service;
  HttpOptions http = HttpOptionsOf(o, parts, traces);
  GrpcOptions grpc = GrpcOptionsOf(o, parts, traces);
  auto refusals = std::make_shared<PacedRefusals>();
  http.refusals = refusals;
  http.bodies = std::make_shared<BodyAdmission>(
      [refused = parts.refused] { refused(RefusalReason::kUnread); }, parts.late);
  // Another node that waits for a refusal keeps its client waiting: those of a cluster call nodes
  // with routes, and the front ends of sites.
  if (o.routes.empty() && o.schedulers.empty()) {
    grpc.refusals = refusals;
    grpc.bodies = http.bodies;
  }
  std::unique_ptr<GrpcServer> admin;
  if (!o.admin_socket.empty()) {
    admin = std::make_unique<GrpcServer>(AdminOptionsOf(o, parts, traces), traced);
  }
  std::unique_ptr<Body> body(
      new Body{.service = parts.service,
               .address = o.address,
               .tls = parts.access.access->has_tls(),
               .ui = parts.live != nullptr,
               .traces = std::move(traces),
               .refusals = std::move(refusals),
               .http = HttpServer(std::move(http), traced, parts.streams),
               .grpc = GrpcServer(std::move(grpc), traced, parts.sampler),
               .page = HttpServer(PageOptionsOf(o, parts), parts.metrics, &parts.service),
               .admin = std::move(admin)});
  for (auto& each : body->stops) each = std::make_unique<ReadyThread>();
  const auto start = [](auto& server, std::uint16_t& port, const char* option) -> Status {
    const auto started = server.Start();
    if (!started) return NotToBeHad(started.error(), option);
    port = *started;
    return {};
  };
  for (const Status& started : {start(body->http, body->http_port, "--http-port"),
                                start(body->grpc, body->grpc_port, "--grpc-port"),
                                start(body->page, body->metrics_port, "--metrics-port")}) {
    if (!started) return std::unexpected(started.error());
  }
  if (body->admin) {
    if (const auto started = body->admin->Start(); !started) {
      return std::unexpected(
          Error{started.error().code, "--admin-socket: " + started.error().message});
    }
  }
  return std::unique_ptr<ServerPorts>(new ServerPorts(std::move(body)));
}

void ServerPorts::Announce(std::uint16_t peers, Print print) const {
  Body& b = *body_;
  const std::string host = Bracketed(b.address);
  const char* const scheme = b.tls ? "https" : "http";
  print(fmt::format(
      "\nHTTP     {4}://{0}:{1}\ngRPC     {0}:{2}\nmetrics  {4}://{0}:{3}/metrics\n{5}\n", host,
      b.http_port, b.grpc_port, b.metrics_port, scheme,
      b.ui ? fmt::format("watch    {}://{}:{}/ui\n", scheme, host, b.http_port) : ""));
  if (b.service.Ready()) return print(b.Line("ready", peers, ""));
  print(b.Line("started", peers, NotReadyIn(b.service)));
  b.announces = std::jthread([&b, peers, print = std::move(print)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kLookPeriod, [] { return false; })) {
      if (stop.stop_requested()) return;
      if (b.service.Ready()) return print(b.Line("ready", peers, ""));
    }
  });
}

void ServerPorts::Stop(std::chrono::milliseconds grace, const std::function<void()>& beside,
                       const std::function<void()>& at_end) {
  std::promise<void> stopped;
  body_->announces = {};
  body_->refusals->Stop();
  body_->stops[0]->Start([&] { body_->http.Stop(grace); });
  body_->stops[1]->Start([&] {
    if (body_->admin) body_->admin->Stop(grace);
  });
  body_->stops[2]->Start([&] {
    if (beside) beside();
  });
  // Ports wait for loads, and for calls that an engine holds, whatever the grace.
  body_->stops[3]->Start([&, all = stopped.get_future().share()] {
    all.wait_for(grace);
    if (at_end) at_end();
  });
  body_->grpc.Stop(grace);
  for (std::size_t i = 0; i < 3; ++i) body_->stops[i].reset();
  stopped.set_value();
  for (auto& each : body_->stops) each.reset();
}

void ServerPorts::StopMetrics() { body_->page.Stop(std::chrono::milliseconds(0)); }

}  // namespace tactus
