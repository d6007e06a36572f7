// The figures of a simulated run: simulation.h.
#include <algorithm>

#include "sim/simulation.h"
#include "workload/accuracy_limit.h"
#include "workload/pipelines.h"

namespace tactus {
namespace {

void AddPipelines(const Scenario& scenario, const SimulationResult& result, RunReport& report) {
  if (scenario.pipelines.empty()) return;
  const TimePoint from = Counting(result.records, result.begin, result.end, result.skip).from();
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    const auto index = static_cast<std::uint32_t>(report.pipelines.size());
    PipelineSummary& summary = report.pipelines.emplace_back();
    summary.name = pipeline.name;
    summary.slo_ms = pipeline.slo_ms;
    for (const ScenarioStage& stage : pipeline.stages) summary.stages.push_back({stage.name});
    Summarize(result.pipeline_requests, index, from, result.end, summary);
  }
  for (ModelSummary& model : report.models) model.staged = IsStage(scenario, model.name);
}

}  // namespace

RunReport MakeReport(const Scenario& scenario, const ProfileFile& profile,
                     const SimulationResult& result) {
  RunReport report =
      Summarize(result.records, result.models, result.begin, result.end, result.skip);
  AddPipelines(scenario, result, report);
  report.policy = scenario.policy;
  report.scenario = scenario.name;
  report.source = "simulated";
  report.profile_provenance = profile.provenance;
  report.seed = scenario.seed;
  report.commit = BuildCommit();
  report.machine = MachineKind();
  if (const auto limits = AccuracyLimit(scenario, profile).value_or(std::nullopt)) {
    report.accuracy_limit = limits->largest_batch;
    report.accuracy_limit_by_rate = limits->by_rate;
  }
  report.scaling = result.scaling;
  report.layout = result.layout;
  // Over all the time that the lane had work, the drain after the last arrival included.
  const double seconds = ToSeconds(std::max(result.last, result.end) - kStart);
  for (const LaneTotals& totals : result.lanes) {
    report.lanes.push_back({.busy_ratio = ToSeconds(totals.busy) / seconds,
                            .batches = totals.batches,
                            .open_ratio = 1 - ToSeconds(totals.closed) / seconds,
                            .kind = totals.kind});
    if (totals.batches > 0) ++report.lanes_touched;
  }
  return report;
}

}  // namespace tactus
