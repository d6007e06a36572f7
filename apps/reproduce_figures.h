// The figures of a paper as data: what to run, what to draw, and what the paper claims.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "metrics/report.h"

namespace tactus {

// One curve: a scenario with settings, run at each load.
struct FigureSeries {
  std::string label;
  std::string scenario;               // file name, without its .toml
  std::vector<std::string> settings;  // "policy=all-final"
  std::vector<double> loads;          // the x axis: requests per second of one model
  double rps_per_load = 1;            // all models together for each of those
};

// What one run (the mean of its seeds) says, by the columns of the CSV file.
using FigureRow = std::map<std::string, double>;

// series -> load -> row.
using FigureData = std::map<std::string, std::map<double, FigureRow>>;

struct FigurePanel {
  std::string x = "load";
  std::string y;
  std::string x_label;
  std::string y_label;
  double line = 0;         // a horizontal line, where > 0 ...
  std::string line_label;  // ... and what it is
  double y_max = 0;        // > 0: the axis ends there
  bool limit = false;      // also draw accuracy_limit, once for each distinct curve of loads
};

struct Claim {
  std::string what;
  std::string paper;  // as the paper says it
  std::string ours;
  bool holds = false;
};

struct Figure {
  int number = 0;
  std::string title;
  std::vector<FigureSeries> series;
  std::vector<FigurePanel> panels;  // empty: stacked shares of exits
  std::function<std::vector<Claim>(const FigureData&)> claims;
};

// EdgeServing, Figures 4 to 11.
std::vector<Figure> EdgeServingFigures();

// Columns that every row has, in the order in which they are written.
const std::vector<std::string>& FigureColumns();
FigureRow ToRow(const RunReport& run);

}  // namespace tactus
