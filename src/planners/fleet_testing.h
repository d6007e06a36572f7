// Random fleets for tests of their planners.
#pragma once

#include <string>

#include "base/rng.h"
#include "core/fleet_plan.h"

namespace tactus {

inline FleetInput RandomFleet(Rng& rng) {
  FleetInput input;
  input.kinds = {"gpu", "small"};
  input.models = {"a", "b", "c"};
  input.sites = {"rack"};
  const auto one_to = [&](std::uint64_t most) { return 1 + static_cast<int>(rng.Below(most)); };
  input.devices.push_back({.name = "server",
                           .accelerators = one_to(4),
                           .streams = one_to(4),
                           .memory_mb = 500.0 * one_to(20),
                           .server = true});
  const int cameras = one_to(6);
  for (int i = 0; i < cameras; ++i) {
    const SiteId site{static_cast<SiteId::rep>(input.sites.size())};
    input.sites.push_back("site" + std::to_string(i));
    input.devices.push_back({.name = "edge" + std::to_string(i),
                             .kind = KindId{1},
                             .site = site,
                             .memory_mb = 100.0 * one_to(30)});
    input.links.push_back(
        {.a = SiteId{0}, .b = site, .mbps = 0.5 * one_to(100), .rtt = Millis(one_to(60))});
  }
  for (ModelId::rep m = 0; m < 3; ++m) {
    for (KindId::rep k = 0; k < 2; ++k) {
      if (k == 1 && rng.Below(4) == 0) continue;
      FleetCost cost{.model = ModelId{m}, .kind = KindId{k}, .weights_mb = 10.0 * one_to(30)};
      const Duration alone = Micros(500 * one_to(20) * (k == 1 ? 4 : 1));
      for (int b = 1; b <= 16; b *= 2) {
        cost.batches.push_back({.batch = b,
                                .pre = Micros(100),
                                .infer = alone + alone * (b - 1) / 3,
                                .post = Micros(100),
                                .peak_mb = 5.0 * b,
                                .use = 0.05 * one_to(8)});
      }
      input.costs.push_back(cost);
    }
  }
  for (int i = 0; i < cameras; ++i) {
    FleetPipeline pipeline{.name = "p" + std::to_string(i),
                           .slo = Millis(50 * one_to(8)),
                           .source = DeviceId{static_cast<DeviceId::rep>(i + 1)},
                           .rate_rps = static_cast<double>(rng.Below(40))};
    const int stages = one_to(5);
    for (int s = 0; s < stages; ++s) {
      FleetStage stage{.name = "s" + std::to_string(s),
                       .model = ModelId{static_cast<ModelId::rep>(rng.Below(3))}};
      if (s > 0) {
        stage.after = {FleetStageId{static_cast<FleetStageId::rep>(rng.Below(s))}};
        stage.items = 6 * rng.Uniform();
      }
      stage.in_kb = s == 0 ? 100 : 10 * rng.Uniform();
      stage.out_kb = rng.Uniform();
      pipeline.stages.push_back(stage);
    }
    input.pipelines.push_back(pipeline);
  }
  return input;
}

}  // namespace tactus
