#include "serving/site_worker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include "serving/peer_port.h"

namespace tactus {
namespace {

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

Expected<std::unique_ptr<ServedSite>> ServedSite::Make(const ServeOptions& o, const PeerTls& tls,
                                                       const Log& log) {
  if (o.schedulers.empty()) return nullptr;
  if (Status fine = CheckSchedulers("--schedulers", o.schedulers, o.insecure || tls.on()); !fine) {
    return std::unexpected(fine.error());
  }
  auto name = WorkerName(o.worker_name, tls);
  if (!name) return std::unexpected(name.error());
  return std::unique_ptr<ServedSite>(
      new ServedSite({.schedulers = o.schedulers,
                      .tls = tls,
                      .name = *std::move(name),
                      .lanes = o.lanes * o.slots,
                      .say = [log](const std::string& line) { log->warn("site: {}", line); }}));
}

std::function<RowsPlace(const GrantedPart&, TimePoint)> ServedSite::Placing() {
  return
      [this](const GrantedPart& part, TimePoint deadline) { return worker_.Place(part, deadline); };
}

}  // namespace tactus
