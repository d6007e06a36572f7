// Symphony's Figure 13, left: how many requests a second the scheduler takes, by its threads and
// the number of lanes. Measured, not simulated: drawn from the file of ./run bench scheduler --json
// FILE.
#pragma once

#include "reproduce/figure.h"

namespace tactus {

Figure SchedulerFigure();

}  // namespace tactus
