// What a knowledge base says of a cluster's past, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "knowledge/records.h"

namespace tactus {

// What was asked for; none: it was not.
struct ClusterPast {
  std::optional<std::vector<knowledge::Plan>> plans;
  std::optional<std::vector<knowledge::Event>> events;
  std::optional<std::vector<knowledge::ArrivalSample>> arrivals;
  std::optional<std::vector<knowledge::NetworkSample>> links;
};

// Tables, in the order of time; of arrivals and links a line for each stage and each link.
std::string PastTables(const ClusterPast& past);
// {"tactus_history": 1, "plans": [{"epoch", "term", "made", "fate", "decided", "why", "input",
// "plan", "predicted"}], "events": [{"number", "at", "kind", "subject", "text"}],
// "arrivals": [...], "links": [...]}, instants as in 2026-11-23T16:04:05.123456Z
std::string PastJson(const ClusterPast& past);

}  // namespace tactus
