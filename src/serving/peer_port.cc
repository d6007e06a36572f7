#include "serving/peer_port.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "server/access/access.h"
#include "server/net/listening_socket.h"
#include "service/forwarding_service.h"
#include "serving/server_access.h"

namespace tactus {

// What other nodes may do with this one's models.
class PeerPort::RunsOnly final : public ForwardingService {
 public:
  RunsOnly(InferenceService& models, InferenceService& pipelines)
      : ForwardingService(models), pipelines_(pipelines) {}

  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    return pipelines_.Enter(described);
  }
  CallId Infer(InferCall&& call) override { return pipelines_.Infer(std::move(call)); }
  void Cancel(CallId call) override { pipelines_.Cancel(call); }
  Status Load(const std::string&, const std::string&) override { return Refused(); }
  Status Unload(const std::string&) override { return Refused(); }
  Status UnloadWithSteps(const std::string&) override { return Refused(); }

 private:
  static Status Refused() {
    return Fail(ErrorCode::kUnimplemented,
                "other nodes run this node's models; its agent loads and unloads them");
  }
  InferenceService& pipelines_;
};

PeerPort::PeerPort(GrpcOptions options, InferenceService& models, InferenceService& pipelines)
    : service_(std::make_unique<RunsOnly>(models, pipelines)),
      server_(std::move(options), *service_) {}

PeerPort::~PeerPort() = default;

Expected<std::optional<HostPort>> PeerPort::PlaceFor(const ServeOptions& o, const PeerTls& tls) {
  if (o.schedulers.empty() && !tls.on()) return std::nullopt;
  const auto place = PlaceOf("--peer-listen", o.peer_listen);
  if (!place) return std::unexpected(place.error());
  if (!tls.on() && !o.insecure) {
    if (Status fine = CheckClear("--peer-listen", o.peer_listen); !fine) {
      return std::unexpected(fine.error());
    }
  }
  return *place;
}

Expected<std::unique_ptr<PeerPort>> PeerPort::Start(const ServeOptions& o, const PeerTls& tls,
                                                    InferenceService& models,
                                                    InferenceService& pipelines,
                                                    std::function<void(const std::string&)> warn) {
  const auto wanted = PlaceFor(o, tls);
  if (!wanted) return std::unexpected(wanted.error());
  const std::optional<HostPort>& place = *wanted;
  if (!place) return nullptr;
  std::shared_ptr<Access> nodes;
  if (tls.on()) {
    const std::filesystem::path folder = o.peer_tls;
    auto opened = Access::Open({.tls = {.certificate = folder / "node.pem",
                                        .key = folder / "node.key",
                                        .client_ca = folder / "authority.pem",
                                        .may_have_expired = true},
                                .tokens = {}},
                               std::move(warn));
    if (!opened) return std::unexpected(std::move(opened.error()));
    nodes = *std::move(opened);
  }
  GrpcOptions options{.address = place->host,
                      .port = place->port,
                      .reflection = false,
                      .access = nodes,
                      .takes_granted = !o.schedulers.empty(),
                      .takes_entered = !o.routes.empty(),
                      .max_body = o.max_body_mb << 20,
                      .max_pending_bytes = o.pending_mb << 20};
  std::unique_ptr<PeerPort> port(new PeerPort(std::move(options), models, pipelines));
  const auto started = port->server_.Start();
  if (!started) return std::unexpected(started.error());
  port->port_ = *started;
  if (nodes) port->follows_ = FollowAccess(std::move(nodes));
  const bool any = place->host == "0.0.0.0" || place->host == "::";
  port->place_ =
      !o.advertise.empty() ? o.advertise : HostPortText(any ? HostName() : place->host, *started);
  return port;
}

Expected<HostPort> PlaceOf(const std::string& option, const std::string& text) {
  auto place = ParseHostPort(text);
  if (place) return *std::move(place);
  return InvalidArgument(fmt::format("{}: '{}' is not HOST:PORT", option, text));
}

Status CheckClear(const std::string& option, const std::string& text) {
  const auto place = PlaceOf(option, text);
  if (!place) return std::unexpected(place.error());
  if (IsThisMachine(place->host)) return {};
  return InvalidArgument(fmt::format(
      "{} {} is beyond this machine: --peer-tls FOLDER keeps strangers out, with certificates of "
      "`tactus cluster certificate`; --insecure speaks in the clear (docs/reference/site.md)",
      option, text));
}

Status CheckListens(const std::string& option, const HostPort& place) {
  ListeningSocket socket;
  const auto open = socket.Open(place.host, place.port);
  if (open || open.error().code != ErrorCode::kUnavailable) return {};
  return Fail(open.error().code, fmt::format("{}: {}; name another port (0: any free one)", option,
                                             open.error().message));
}

Status CheckSchedulers(const std::string& option, const std::vector<std::string>& schedulers,
                       bool safe) {
  for (auto place = schedulers.begin(); place != schedulers.end(); ++place) {
    const auto read = PlaceOf(option, *place);
    if (!read) return std::unexpected(read.error());
    if (std::find(schedulers.begin(), place, *place) != place) {
      return InvalidArgument(fmt::format("{}: {} is in it twice", option, *place));
    }
    if (safe) continue;
    if (Status fine = CheckClear(option, *place); !fine) return fine;
  }
  return {};
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace tactus
