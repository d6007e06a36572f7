// What the lanes and the queues did, as cells: the same columns in every table of simulated runs.
#pragma once

#include <string>
#include <vector>

#include "metrics/report.h"
#include "metrics/text_table.h"

namespace tactus {

std::string Percent(double ratio);  // "93.1"
std::string Rate(double rps);

void AddUsageColumns(TextTable& table);
// Means over the runs; dashes where there is none.
std::vector<std::string> UsageCells(const std::vector<RunReport>& runs);

// A mean over runs, of which there is at least one.
double Mean(const std::vector<RunReport>& runs, auto figure) {
  double sum = 0;
  for (const RunReport& run : runs) sum += figure(run);
  return sum / static_cast<double>(runs.size());
}

}  // namespace tactus
