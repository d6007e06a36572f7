#include "serve_site.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "server/access/access.h"

namespace tactus {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// Without the port, and without the brackets of IPv6.
std::string HostOf(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  std::string host = place.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

bool IsPlace(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || colon + 1 == text.size()) return false;
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + colon + 1, end, port);
  return error == std::errc{} && at == end && port > 0 && port <= 65'535;
}

}  // namespace

Status CheckSitePlace(const std::string& option, const std::string& place, bool insecure) {
  const std::string host =
      place.find(':') == place.rfind(':') || place.front() == '[' ? HostOf(place) : place;
  if (insecure || host == "localhost" || IsLoopback(host)) return {};
  return InvalidArgument(fmt::format(
      "{} {} is beyond this machine, and what the processes of a site say to each other is not "
      "encrypted yet: say --insecure where the network keeps strangers out (docs/site.md)",
      option, place));
}

Status CheckSchedulers(const std::vector<std::string>& schedulers, bool insecure) {
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    const std::string& place = schedulers[i];
    if (!IsPlace(place)) {
      return InvalidArgument(fmt::format("--schedulers: '{}' is not HOST:PORT", place));
    }
    if (std::find(schedulers.begin(), schedulers.begin() + i, place) != schedulers.begin() + i) {
      return InvalidArgument(fmt::format("--schedulers: {} is in it twice", place));
    }
    if (Status fine = CheckSitePlace("--schedulers", place, insecure); !fine) return fine;
  }
  return {};
}

Expected<std::unique_ptr<SiteWorker>> MakeSiteWorker(const ServeOptions& o, const Log& log) {
  if (o.schedulers.empty()) return nullptr;
  if (Status fine = CheckSchedulers(o.schedulers, o.insecure); !fine) {
    return std::unexpected(fine.error());
  }
  if (!o.tls_cert.empty() || !o.tokens.empty()) {
    return InvalidArgument(
        "--schedulers does not go with --tls-cert or --tokens yet: front ends of a site send rows "
        "in the clear and without a token (docs/site.md)");
  }
  const std::string name =
      o.worker_name.empty() ? fmt::format("{}-{}", HostName(), getpid()) : o.worker_name;
  return std::make_unique<SiteWorker>(
      SiteWorker::Options{.schedulers = o.schedulers,
                          .name = name,
                          .lanes = o.lanes * o.slots,
                          .say = [log](const std::string& line) { log->warn("site: {}", line); }});
}

std::function<RowsPlace(const GrantedPart&, TimePoint)> PlaceIn(SiteWorker* worker) {
  if (worker == nullptr) return {};
  return [worker](const GrantedPart& part, TimePoint deadline) {
    return worker->Place(part, deadline);
  };
}

std::string SiteAddress(const ServeOptions& o, std::uint16_t grpc_port) {
  if (!o.advertise.empty()) return o.advertise;
  const bool any = o.address == "0.0.0.0" || o.address == "::";
  const std::string host = any ? HostName() : o.address;
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, grpc_port)
                                     : fmt::format("[{}]:{}", host, grpc_port);
}

}  // namespace tactus
