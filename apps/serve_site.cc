#include "serve_site.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "server/access/access.h"
#include "server/grpc/grpc_server.h"

namespace tactus {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

bool IsPlace(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || colon + 1 == text.size()) return false;
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + colon + 1, end, port);
  return error == std::errc{} && at == end && port <= 65'535;
}

Status CheckPlace(const std::string& option, const std::string& place, bool safe) {
  if (!IsPlace(place)) {
    return InvalidArgument(fmt::format("{}: '{}' is not HOST:PORT", option, place));
  }
  const std::string host = PlaceOf(place).host;
  if (safe || host == "localhost" || IsLoopback(host)) return {};
  return InvalidArgument(fmt::format(
      "{} {} is beyond this machine: --peer-tls FOLDER keeps strangers out, with certificates of "
      "`tactus cluster certificate`; --insecure speaks in the clear (docs/site.md)",
      option, place));
}

std::string Written(const std::string& host, unsigned port) {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

// With certificates, of the node that this one's names.
Expected<std::string> WorkerName(const std::string& asked, const PeerTls& tls) {
  if (asked.empty()) {
    return tls.on() ? fmt::format("{}/{}", tls.node(), getpid())
                    : fmt::format("{}-{}", HostName(), getpid());
  }
  if (!tls.on() || asked == tls.node() || asked.starts_with(tls.node() + "/")) return asked;
  return InvalidArgument(
      fmt::format("--worker-name {0}: the certificate of --peer-tls is of node {1}, so the name is "
                  "{1} or begins with {1}/",
                  asked, tls.node()));
}

}  // namespace

SitePlace PlaceOf(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  SitePlace read{place.substr(0, colon), 0};
  std::from_chars(place.data() + colon + 1, place.data() + place.size(), read.port);
  if (read.host.size() > 2 && read.host.front() == '[') {
    read.host = read.host.substr(1, read.host.size() - 2);
  }
  return read;
}

Status CheckSite(const SiteReach& reach) {
  const bool safe = reach.insecure || !reach.tls.empty();
  if (!reach.listen.empty()) {
    if (Status fine = CheckPlace("the address to listen on,", reach.listen, safe); !fine) {
      return fine;
    }
  }
  for (std::size_t i = 0; i < reach.schedulers.size(); ++i) {
    const std::string& place = reach.schedulers[i];
    if (Status fine = CheckPlace("--schedulers", place, safe); !fine) return fine;
    const auto here = reach.schedulers.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(reach.schedulers.begin(), here, place) != here) {
      return InvalidArgument(fmt::format("--schedulers: {} is in it twice", place));
    }
  }
  return {};
}

ServedSite::ServedSite(const ServeOptions& options, PeerTls tls, SiteWorker::Options worker)
    : options_(options), tls_(std::move(tls)), worker_(std::move(worker)) {}
ServedSite::~ServedSite() = default;

Expected<std::unique_ptr<ServedSite>> ServedSite::Make(const ServeOptions& o, const Log& log) {
  if (o.schedulers.empty()) return nullptr;
  if (Status fine = CheckSite({o.schedulers, o.peer_listen, o.peer_tls, o.insecure}); !fine) {
    return std::unexpected(fine.error());
  }
  auto tls = PeerTls::Open(o.peer_tls);
  if (!tls) return std::unexpected(tls.error());
  auto name = WorkerName(o.worker_name, *tls);
  if (!name) return std::unexpected(name.error());
  return std::unique_ptr<ServedSite>(new ServedSite(
      o, *tls,
      SiteWorker::Options{.schedulers = o.schedulers,
                          .tls = *tls,
                          .name = *name,
                          .lanes = o.lanes * o.slots,
                          .say = [log](const std::string& line) { log->warn("site: {}", line); }}));
}

std::function<RowsPlace(const GrantedPart&, TimePoint)> ServedSite::Placing() {
  return
      [this](const GrantedPart& part, TimePoint deadline) { return worker_.Place(part, deadline); };
}

Status ServedSite::Start(Runtime& runtime, InferenceService& service) {
  const auto [host, asked] = PlaceOf(options_.peer_listen);
  port_ = std::make_unique<GrpcServer>(
      GrpcOptions{.address = host,
                  .port = asked,
                  .reflection = false,
                  .credentials = tls_.Listening(),
                  .takes_granted = true,
                  .max_body = options_.max_body_mb << 20,
                  .memory = (options_.pending_mb << 20) + (std::size_t{64} << 20)},
      service);
  const auto port = port_->Start();
  if (!port) return std::unexpected(port.error());
  const bool any = host == "0.0.0.0" || host == "::";
  worker_.Start(runtime, !options_.advertise.empty() ? options_.advertise
                                                     : Written(any ? HostName() : host, *port));
  return {};
}

void ServedSite::Stop(std::chrono::milliseconds grace) {
  if (port_ != nullptr) port_->Stop(grace);
}

}  // namespace tactus
