#include "fleet/worker_routes.h"

#include <algorithm>
#include <utility>

namespace tactus {

WorkerRoutes RoutesOf(const NodeKept& kept, const std::string& node) {
  WorkerRoutes routes{.plan = kept.slice.id, .routes = {}};
  for (const SliceRoute& each : kept.slice.routes) {
    WorkerRoute route{each.pipeline, each.stage, each.model, {}};
    for (const RouteTarget& to : each.to) {
      WorkerTarget target{.node = to.node, .address = {}, .weight = to.weight};
      target.here = to.node == node;
      const auto place = std::ranges::find(kept.peers, to.node, &PeerPlace::node);
      if (!target.here && place != kept.peers.end()) target.address = place->address;
      route.to.push_back(std::move(target));
    }
    routes.routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace tactus
