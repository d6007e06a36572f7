// Symphony's Figure 7: from the grid's peaks to curves.
#pragma once

#include "reproduction/figure.h"

namespace tactus {

// Ratios of peak goodputs, deferred over eager: the series "all workloads: A / B" by the share of
// workloads that have no larger ratio, "MODEL: SLO n ms" and "mixed: gamma n" by lanes per model.
// The workloads' own peaks are kept in fig07-cells.csv, from which it goes on.
Expected<FigureData> GridAnswer(const ReproduceOptions& options);

}  // namespace tactus
