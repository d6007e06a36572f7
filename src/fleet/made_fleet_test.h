// For tests: a fleet of as many servers and cameras as a test wants.
#pragma once

#include <string>

#include "core/fleet_plan.h"

namespace tactus {

// Each edge has a camera whose pipeline ends at a server, by way of one of two models.
inline FleetInput FleetOfServersAndEdges(int servers, int edges) {
  FleetInput input;
  input.kinds = {"gpu", "edge"};
  input.models = {"find", "name", "read"};
  input.sites = {"rack"};
  for (int i = 0; i < servers; ++i) {
    input.devices.push_back({.name = "server" + std::to_string(i),
                             .accelerators = 2,
                             .streams = 4,
                             .memory_mb = 24'000,
                             .server = true});
  }
  for (int i = 0; i < edges; ++i) {
    const SiteId site{static_cast<SiteId::rep>(input.sites.size())};
    input.sites.push_back("street" + std::to_string(i));
    input.links.push_back({SiteId{0}, site, 40, Millis(20)});
    input.devices.push_back(
        {.name = "edge" + std::to_string(i), .kind = KindId{1}, .site = site, .memory_mb = 4000});
    const ModelId second{static_cast<ModelId::rep>(1 + i % 2)};
    input.pipelines.push_back({.name = "camera" + std::to_string(i),
                               .slo = Millis(200),
                               .source = DeviceId{static_cast<DeviceId::rep>(servers + i)},
                               .rate_rps = 5,
                               .stages = {{"find", ModelId{0}, {}, 1, -1, 100, 1},
                                          {"more", second, {FleetStageId{0}}, 2, -1, 10, 1}}});
  }
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    for (KindId::rep k = 0; k < 2; ++k) {
      const Duration once = k == 0 ? Millis(5) : Millis(30);
      input.costs.push_back({ModelId{m},
                             KindId{k},
                             100,
                             {{1, {}, once, {}, 50, 0.1}, {4, {}, 2 * once, {}, 100, 0.2}}});
    }
  }
  return input;
}

}  // namespace tactus
