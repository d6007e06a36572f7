// How policies that follow a plan divide a model's requests among the lanes that run it: by
// weighted round robin. The requests lie in one queue, so a routed request is a claim: a lane may
// take as many from the queue's front as were sent to it. That serves better than queues of the
// lanes' own would, since the most urgent requests go first whichever lane comes by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/weighted_turn.h"

namespace tactus {

struct ModelRoutes {
  struct Route {  // to one lane that runs the model
    LaneId lane;
    double weight = 0;  // its part of what the plan gives the model
    int claims = 0;     // requests routed to it that still wait
    bool open = true;   // the lane takes batches
  };
  std::vector<Route> routes;
  std::vector<double> credit;  // by front end, then route
  int claimed = 0;             // over all routes
  std::size_t closed = 0;      // routes to closed lanes

  // After the last route. Each front end routes on its own.
  void Start(int front_ends) {
    closed = static_cast<std::size_t>(std::ranges::count(routes, false, &Route::open));
    credit.assign(routes.size() * std::max(front_ends, 1), 0);
  }

  // Routes one request: each route earns its weight, the richest pays for all. Those to closed
  // lanes earn nothing while there is an open one. Nothing happens, and the answer means nothing,
  // where there is no route. O(routes).
  std::uint32_t Send(std::uint64_t front_end = 0) {
    if (routes.empty()) return 0;
    const std::span<double> mine =
        std::span(credit).subspan(front_end * routes.size(), routes.size());
    const bool some_open = closed < routes.size();
    const std::size_t best = TakeTurn(mine, [&](std::size_t r) {
      const bool takes_part = routes[r].open || !some_open;
      return takes_part ? std::optional(routes[r].weight) : std::nullopt;
    });
    ++routes[best].claims;
    ++claimed;
    return static_cast<std::uint32_t>(best);
  }
  // The lane of a route opens or closes. What closed lanes were to take is nobody's then: true if
  // there is any, which is to be sent anew.
  bool SetOpen(std::uint32_t route, bool open) {
    if (routes[route].open == open) return false;
    routes[route].open = open;
    open ? --closed : ++closed;
    int freed = 0;
    for (Route& each : routes) {
      if (!each.open) freed += std::exchange(each.claims, 0);
    }
    claimed -= freed;
    return freed > 0;
  }
  // A lane takes requests from the queue; what it had no claim to, the others lose.
  void Take(std::uint32_t route, int count) {
    const int own = std::min(count, routes[route].claims);
    routes[route].claims -= own;
    claimed -= own;
    TakeBack(count - own);
  }
  // Requests went that no lane took: whoever has most to do has less.
  void TakeBack(int count) {
    for (; count > 0 && claimed > 0; --count) {
      const auto most =
          std::max_element(routes.begin(), routes.end(),
                           [](const Route& a, const Route& b) { return a.claims < b.claims; });
      --most->claims;
      --claimed;
    }
  }
};

}  // namespace tactus
