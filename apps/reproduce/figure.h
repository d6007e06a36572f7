// The figures of a paper as data: what to run, what to draw, and what the paper claims.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "metrics/report.h"

namespace tactus {

// What a figure asks of each of its points. The columns that an answer has: answers.h.
enum class Question {
  kRun,            // what happens at the point's rate
  kPeak,           // the peak goodput; also the goodput at half as much again
  kLeastLanes,     // the fewest lanes that carry the point's rate
  kBatchSizes,     // at the peak: a row for each size, by size
  kQueueingDelay,  // at the peak: a row for each percentile
  kTimeline,       // a row for each step of the run's time, and a series for each model
  kDistributions,  // latencies by priority and errors of predictions: a row for each percentile
  kMinutes         // a row for each minute of the scenario's schedule, in a run of its own
};

// A row of the CSV file by column; a column that is not there stays empty.
using FigureRow = std::map<std::string, double>;

// What the command line says to all figures.
struct ReproduceOptions {
  std::string out;
  std::string scenarios;
  int seeds = 3;
  int jobs = 1;
  std::size_t cells = 5880;  // of a grid; 0: all
  int minutes = 300;         // of a trace that is run by the minute, at most
  bool fresh = false;
  std::string scheduler;  // what ./run bench scheduler --json wrote, or empty
};

// One simulated question: a scenario with settings.
struct FigurePoint {
  double x = 0;
  std::string scenario;               // file name, without its .toml
  std::vector<std::string> settings;  // "policy=all-final"
  std::string profile;                // instead of the scenario's; from the scenarios' directory
  std::string name;                   // of a bar's group, instead of x
  std::optional<double> paper;        // the paper's number, where its text states one
  // What its policy learns before the run, from this scenario with these settings; empty: nothing.
  std::string learnt_from;
  std::vector<std::string> learnt_settings;
  // Instead of a Question: answers the point, its scenario and settings.
  std::function<Expected<FigureRow>(const FigurePoint&, const ReproduceOptions&)> answer;
};

struct FigureSeries {
  std::string label;  // no commas; "GROUP: NAME" where panels show groups
  std::vector<FigurePoint> points;
};

// series -> x -> row.
using FigureData = std::map<std::string, std::map<double, FigureRow>>;

struct FigurePanel {
  std::string x = "load";  // "load": the points' own x
  std::string y;
  std::string x_label;
  std::string y_label;
  double line = 0;         // a horizontal line, where > 0 ...
  std::string line_label;  // ... and what it is
  double y_max = 0;        // > 0: the axis ends there
  double y_min = 0;        // and begins there
  double x_min = 0;        // where the axis of numbers begins ...
  double x_max = 0;        // ... and ends, where > 0
  bool limit = false;      // also draw accuracy_limit, once for each distinct curve of loads
  bool bars = false;       // bars by the points' names
  bool stacked = false;    // filled curves on top of one another, in the series' order
  bool cdf = false;        // the share of a series' rows whose `x` is no larger, instead of y
  bool log_x = false;
  std::string mark;         // a ring around points whose row has more than 0 in this column ...
  std::string mark_label;   // ... and what they are
  std::string counted;      // a cdf's rows, whose number then stands behind each name: "loads"
  std::string group;        // only series "GROUP: NAME", under their names
  std::string relative_to;  // divide by this series' y at the same x, or at its only x
  std::string title;
};

// Curves of y over the points' own x: all series, or those of a group, whose name is the title
// where no other is given.
FigurePanel Lines(const std::string& y, const std::string& x_label, const std::string& y_label,
                  const std::string& group = "");
FigurePanel Lines(const std::string& y, const std::string& x_label, const std::string& y_label,
                  const std::string& group, const std::string& title);
FigurePanel Bars(const std::string& y, const std::string& y_label);

struct Claim {
  std::string what;
  std::string paper;  // as the paper says it
  std::string ours;
  bool holds = false;
  // Of our own bars, which may be higher than the paper's: a number and what it must reach.
  std::optional<double> value;
  std::string bar;  // ">= 0.95"
};

struct Figure {
  std::string id;  // "4", "table2"
  std::string title;
  std::vector<FigureSeries> series;
  std::vector<FigurePanel> panels;                              // empty: stacked shares of exits
  std::function<std::vector<Claim>(const FigureData&)> claims;  // empty: none
  Question question = Question::kRun;
  // Where a figure is no set of points: answers it as a whole. Resuming is its own business.
  std::function<Expected<FigureData>(const ReproduceOptions&)> run;
  // What it is made from and how, under the picture and in the CSV file's first line, where that is
  // not the paper's latencies in virtual time.
  std::function<Expected<std::string>(const ReproduceOptions&)> source;
  // What must be given before it can be made, as a sentence with the remedy; empty: all is there.
  std::function<std::string(const ReproduceOptions&)> lacks;
  std::vector<std::string> columns;  // instead of the paper's
  std::size_t panels_in_row = 4;
  // At most so many of the command line's seeds; 0: all. A sweep of many points shows its spread by
  // its neighbours.
  int most_seeds = 0;

  // "Figure 4", "Table 2".
  std::string Heading() const;
  // "fig04", "table2": of its files.
  std::string Stem() const;
  int Seeds(const ReproduceOptions& options) const;
};

struct Paper {
  std::string key;    // on the command line
  std::string title;  // "EdgeServing"
  std::string basis;  // what its latencies are, under every picture and table
  std::vector<std::string> columns;
  std::vector<Figure> figures;
  // Series that have a colour of their own in all figures; at most plot.cc's ten.
  std::vector<std::string> colours = {};
};

Paper EdgeServingPaper();
Paper SymphonyPaper();
Paper StraitPaper();
Paper GpuletsPaper();

}  // namespace tactus
