// A paper's figures from figures/PAPER: paper.toml, and a file for each figure. Of these it reads
// what is to be run; what is drawn and claimed, figures/figures.py reads.
//
// paper.toml
//   title, basis      Paper
//   figures           the ids, in order; the file of "4" is fig04.toml, of "table2" table2.toml
//   columns           of the CSV files, where a figure has none of its own
//   [systems]         "Nexus" = ["policy=nexus"]: settings by name; what follows an '@' in the name
//                     is not in the label
// a figure
//   title, columns, source, seeds (most_seeds), ask (the question's name; "run")
//   like              the id of another: what is not said here is said there
//   also, profile     settings, and a profile, for all points
//   paper             the paper's numbers by series, in the order of the points
//   [[series]]        label, or systems = [names]; group; scenario, settings, learnt_from, with
//                     (default: the figure's); each = {name = [values]}: one for each value, which
//                     stands for "{name}" everywhere in it
//   points            in a series, or in the figure for all: [{x, name, scenario, settings, with}].
//                     x: a number or many; default 1, 2, ...; "{x}" in a setting is the point's,
//                     "{2x+16}" what it says. No points: one, at 0.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reproduction/figure.h"

namespace tactus {

// The figures `wanted`, or all; kInvalidArgument names the file, and what may stand there instead.
Expected<Paper> LoadPaper(const std::filesystem::path& folder,
                          const std::vector<std::string>& wanted);

}  // namespace tactus
