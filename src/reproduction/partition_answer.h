// Symphony's Figure 16: how evenly a solver spreads models over sub-clusters.
#pragma once

#include "reproduction/figure.h"

namespace tactus {

// Of configuration x (its seed), by `with.solver` ("local search" or "random") in `with.trials`:
// rate_percent and memory_percent, the imbalances, objective and trials.
Expected<FigureRow> PartitionAnswer(const FigurePoint& point);

}  // namespace tactus
