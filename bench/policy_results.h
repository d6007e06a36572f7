// What the runs of a suite say of each policy: the figures of the table and of its checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/expected.h"
#include "metrics/report.h"
#include "policy_suite.h"

namespace tactus {

// One policy on one workload at one load, or at its peak.
struct Result {
  std::string policy;
  std::size_t workload = 0;
  double rate = 0;  // offered, or the peak
  double accuracy = 0;
  double value = 0;  // accuracy times the part that is met
  double bad = 0;
  double bad_high = 0;  // of the highest priority; of all where there is one only
  double bad_low = 0;
  double of_fluid = 0;              // of kPeak, from here on
  std::map<double, double> beside;  // goodput at multiples of the peak, over the peak's
  std::map<double, double> lanes;   // touched there
};

using Results = std::vector<Result>;

// What a run was of, in its settings.
void MarkRun(RunReport& run, const Workload& workload, double rate);
void MarkPeakRun(RunReport& run, const Workload& workload, double multiple);

// Of runs that are marked so; those of a policy at its peak before those beside it. A policy that
// found no peak has one of 0, where it did not fail.
Results ResultsOf(const Report& report, const std::vector<Workload>& suite);

// The figures that a table and its checks need of each run of an earlier report over this suite, of
// other policies than `but`: rules that did not change need not run again. An error where the file
// is none, or of other seeds, lengths or workloads.
Expected<Report> ReadRuns(const std::string& path, const std::vector<Workload>& suite,
                          const std::string& but);
// The runs of `path` that ReadRuns takes, as they stand there, appended to the report in `json`.
Status AppendRuns(const std::string& json, const std::string& path, const std::string& but);

}  // namespace tactus
