// A server as a worker of a site (docs/site.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cluster/site/worker.h"
#include "log_queue.h"
#include "serve_options.h"

namespace tactus {

// InvalidArgument where what the site says would cross a network in the clear, unless `insecure`:
// `place` is HOST:PORT or an address, `option` says which option named it.
Status CheckSitePlace(const std::string& option, const std::string& place, bool insecure);
// Each HOST:PORT, none twice.
Status CheckSchedulers(const std::vector<std::string>& schedulers, bool insecure);

// Null without --schedulers.
Expected<std::unique_ptr<SiteWorker>> MakeSiteWorker(const ServeOptions& options, const Log& log);
// Where the rows of granted batches go in the worker; empty without one.
std::function<RowsPlace(const GrantedPart&, TimePoint)> PlaceIn(SiteWorker* worker);
// HOST:PORT, where front ends reach the worker.
std::string SiteAddress(const ServeOptions& options, std::uint16_t grpc_port);

}  // namespace tactus
