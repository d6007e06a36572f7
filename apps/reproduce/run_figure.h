// Runs a figure's points, those of an earlier run taken from its file.
#pragma once

#include "progress.h"
#include "reproduce/figure.h"

namespace tactus {

// Makes `out`/STEM.csv and returns what is in it. `done` counts the points for `progress`.
Expected<FigureData> RunFigure(const Paper& paper, const Figure& figure,
                               const ReproduceOptions& options, Progress& progress,
                               std::size_t& done);

}  // namespace tactus
