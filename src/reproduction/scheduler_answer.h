// Symphony's Figure 13, left: what the scheduler takes, as ./run bench scheduler measured it.
#pragma once

#include <string>

#include "reproduction/figure.h"

namespace tactus {

// Of the file's runs at line rate that have `with` models, lanes and shards, column by column the
// median: dispatched_m, dropped_m (millions a second), dispatched_per_cpu_second_m,
// taken_per_cpu_second_m, lateness_p50_us, lateness_p99_us, and how many runs there are; empty
// where there is none. kInvalidArgument names the file and what is wrong in it.
Expected<FigureRow> SchedulerAnswer(const FigurePoint& point, const ReproduceOptions& options);

// What the figure is made from, with the runs' commit and machine.
Expected<std::string> SchedulerSource(const ReproduceOptions& options);

}  // namespace tactus
