// A fleet as a TOML file. A plan of it is JSON: workload/fleet_plan_file.h.
//
// [[devices]]  name, kind, site, accelerators = 1, streams = 1, memory_mb, most_use = 1,
//              server = false
// [[links]]    sites = ["rack", "street"], mbps, rtt_ms = 0, loss = 0: part of the packets
// [[costs]]    model, kind, weights_mb = 0, batches = [1, 2, 4], infer_ms = [...], and as many of
//              pre_ms, post_ms, peak_mb and use, or none (0)
// [[pipelines]] name, slo_ms, source = the name of a device, rate_rps: frames a second
//   [[pipelines.stages]] name, model = name, after = ["detect"], items = 1 for each frame, cv,
//              in_kb = 0, out_kb = 0
// What simulating it takes besides: workload/fleet_scenario.h.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/expected.h"
#include "core/fleet_plan.h"

namespace tactus {

// Errors name file and line, and what may stand there. What CheckFleet refuses is refused here.
Expected<FleetInput> LoadFleet(const std::filesystem::path& path);
Expected<FleetInput> ParseFleet(std::string_view text, const std::filesystem::path& where);

}  // namespace tactus
