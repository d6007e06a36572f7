// What a controller says of its cluster, for people and for programs.
#pragma once

#include <string>

#include "fleet/leader.h"

namespace tactus {

std::string ClusterTable(const LeaderView& view);
// {"tactus_cluster": 1, "term", "serving", "rolling", "phase", "problem", "lost": [...], "nodes":
// [{"name", "standing", "plan", "ready", "http", "grpc", "models", "routes", "rates", "trouble"}]}
std::string ClusterJson(const LeaderView& view);
// Every node that has a part in the plan serves it, whole.
bool AllServe(const LeaderView& view);

}  // namespace tactus
