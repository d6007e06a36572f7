// The figures of a paper as data: what to run. figures/PAPER/*.toml says it, and also what is drawn
// and what the paper claims, which figures/figures.py reads.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// What a figure asks of each of its points. The columns that an answer has: answers.h.
enum class Question {
  kRun,            // what happens at the point's rate
  kPeak,           // the peak goodput; also the goodput at half as much again
  kLeastLanes,     // the fewest lanes that sustain the point's rate
  kBatchSizes,     // at the peak: a row for each size, by size
  kQueueingDelay,  // at the peak: a row for each percentile
  kTimeline,       // a row for each step of the run's time, and a series for each model
  kDistributions,  // latencies by priority and errors of predictions: a row for each percentile
  kMinutes,        // a row for each minute of the scenario's schedule, in a run of its own
  kPartition,      // models onto sub-clusters: partition_answer.h
  kScheduler,      // what ./run bench scheduler measured: scheduler_answer.h
  kGrid,           // thousands of workloads, the whole figure at once: grid_figure.h
  kGpulets,        // planners and their plans: gpulets_answers.h
  kFleet           // fleets in virtual time: fleet_answers.h
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

// One question: a scenario with settings, or what `with` says.
struct FigurePoint {
  double x = 0;
  std::string scenario;                     // file name, without its .toml
  std::vector<std::string> settings;        // "policy=all-final"
  std::string profile;                      // instead of the scenario's; from the scenarios' folder
  std::string name;                         // of a bar's group, instead of x
  std::optional<double> paper;              // the paper's number, where its text states one
  std::string learnt_from;                  // what its policy learns from before the run, or empty
  std::map<std::string, std::string> with;  // what its question needs besides
};

struct FigureSeries {
  std::string label;  // no commas; "GROUP: NAME" where panels show groups
  std::vector<FigurePoint> points;
};

// series -> x -> row.
using FigureData = std::map<std::string, std::map<double, FigureRow>>;

struct Figure {
  std::string id;  // "4", "table2"
  std::string title;
  Question question = Question::kRun;
  std::vector<FigureSeries> series;
  std::vector<std::string> columns;
  // What it is made from and how, where that is not the paper's basis in virtual time; "{seeds}"
  // stands for how many.
  std::string source;
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
  std::vector<Figure> figures;
};

// "fig04" of "4", "table2".
std::string StemOf(const std::string& id);

}  // namespace tactus
