// Every request of a run as CSV, for whoever wants other figures than the report's:
//
//   model,priority,outcome,exit,batch,arrival_ns,started_ns,ended_ns,counted
//   ResNet50,1,met,final,4,1200345,3400000,9100000,1
//
// Instants are nanoseconds from the run's start. batch is 0, and started_ns the arrival, where a
// request never ran; counted is 1 where the report counts it, as it does not in the warm-up.
#pragma once

#include <span>
#include <string>

#include "base/expected.h"
#include "metrics/report.h"

namespace tactus {

// In the order of the records; `counting` is asked for each. kUnavailable names the file.
Status WriteRequests(std::span<const RequestRecord> records, std::span<const Model> models,
                     Counting counting, const std::string& path);

}  // namespace tactus
