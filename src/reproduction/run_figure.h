// Runs a figure's points, those of an earlier run taken from its file.
#pragma once

#include "experiment/progress.h"
#include "reproduction/figure.h"

namespace tactus {

// Makes `out`/STEM.csv. `done` counts the points for `progress`.
Status RunFigure(const Paper& paper, const Figure& figure, const ReproduceOptions& options,
                 Progress& progress, std::size_t& done);

// What a figure's data is made from, as under its title.
Expected<std::string> SourceOf(const Paper& paper, const Figure& figure,
                               const ReproduceOptions& options);

}  // namespace tactus
