// Figures as pictures, by gnuplot.
#pragma once

#include <filesystem>
#include <string>

#include "base/expected.h"
#include "reproduce/figure.h"

namespace tactus {

// A gnuplot script that holds its data and draws both `stem`.svg and `stem`.png. `source` says
// under the title what the data was made from.
std::string PlotScript(const Paper& paper, const Figure& figure, const FigureData& data,
                       const std::filesystem::path& stem, const std::string& source);

// Writes the script beside the pictures and runs it; an error says what gnuplot said, or how to
// install it.
Status Draw(const std::string& script, const std::filesystem::path& stem);

}  // namespace tactus
