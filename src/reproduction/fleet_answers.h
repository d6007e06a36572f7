// What OctopInf's figures ask: fleets in virtual time, by planner and policy.
#pragma once

#include <string>

#include "reproduction/figure.h"

namespace tactus {

// The point's fleet with its settings, which are keys of its [fleet] ("planner=rim"); `with.of`:
//   run      (default) at the point's x: effective_rps, least_rps and most_rps of the seeds,
//            value_rps (results on time, each by the accuracy of the exits that made it),
//            total_rps (late results too), offered_rps, on_time_percent, p50_ms, p95_ms, p99_ms
//            (results of all pipelines, weighted by how many each has), memory_mb of servers
//   minutes  at x = minute, each `with.every` (1): series "LABEL: PIPELINE" and, for all together,
//            LABEL: effective_rps, offered_rps and the link_mbps of the pipeline's source. One seed
// Means over the seeds.
Expected<FigureData> FleetAnswer(const std::string& label, const FigurePoint& point,
                                 const ReproduceOptions& options);

// A number for all that the point's fleet is made from: its file and those that it names.
Expected<std::uint64_t> HashOfFleet(const FigurePoint& point, const ReproduceOptions& options,
                                    std::uint64_t hash);

}  // namespace tactus
