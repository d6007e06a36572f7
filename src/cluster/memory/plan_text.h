// What a plan was made for as JSON, for the knowledge base, and as much of it as a later controller
// needs. The plan itself is written as `tactus plan fleet` writes it (workload/fleet_plan_file.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/fleet_plan.h"

namespace tactus {

// Which fleet was declared, and by which planner it is planned: plans of two that differ do not
// stand for each other. Sixteen hexadecimal digits.
std::string FleetMark(const FleetInput& declared, std::string_view planner);

// {"tactus_fleet_input": 1, "fleet": MARK, "planner", "sites", "devices": [{"name", "kind", ...}],
//  "links": [{"sites": [a, b], "mbps", "rtt_ms", "loss"}], "pipelines": [...], "costs": [...]}
std::string InputJson(const FleetInput& input, const std::string& mark, std::string_view planner);
// latency_ms and short_of of a plan that FleetPlanJson has written.
std::string PredictedJson(const std::string& plan);

struct PlannedInput {
  std::string mark;
  std::vector<std::string> devices;
  std::vector<FleetLink> links;  // by the sites of `declared`
};
// What InputJson wrote. kInvalidArgument where it is something else, or names a site that
// `declared` lacks.
Expected<PlannedInput> ParseInput(const std::string& text, const FleetInput& declared);

}  // namespace tactus
