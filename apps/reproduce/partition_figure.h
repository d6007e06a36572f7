// Symphony's Figure 16 (Appendix A.2): how evenly solvers spread models over sub-clusters.
#pragma once

#include "reproduce/figure.h"

namespace tactus {

// Both solvers end after a number of trials, not after a time, so that any machine draws the same
// figure.
Figure PartitionFigure();

}  // namespace tactus
