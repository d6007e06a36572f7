// tactus plan fleet: which stage of which pipeline runs on which device of a fleet, in which
// batches and windows, and why.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "commands.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "planners/fleet_estimate.h"
#include "planners/fleet_registry.h"
#include "workload/fleet_file.h"
#include "workload/fleet_plan_file.h"
#include "workload/fleet_scenario.h"

namespace tactus {
namespace {

struct FleetOptions {
  std::string input;
  std::string planner;  // empty: the file's
  std::string out;
  bool windows = false;
};

// What the instances of one stage are, all together.
struct StageLine {
  int instances = 0;
  int open = 0;  // without a window
  const FleetInstance* first = nullptr;
};

std::map<std::pair<FleetPipelineId, FleetStageId>, StageLine> ByStage(const FleetPlan& plan) {
  std::map<std::pair<FleetPipelineId, FleetStageId>, StageLine> lines;
  for (const FleetInstance& each : plan.instances) {
    const auto add = [&](FleetPipelineId p, FleetStageId s) {
      StageLine& line = lines[{p, s}];
      ++line.instances;
      line.open += each.length == Duration{} ? 1 : 0;
      if (line.first == nullptr) line.first = &each;
    };
    add(each.pipeline, each.stage);
    for (const FleetStageRef& also : each.also) add(also.pipeline, also.stage);
  }
  return lines;
}

// Forever is what an item waits for a link, or an instance, that gets more than it sustains.
std::string LatencyText(Duration latency, Duration slo) {
  if (latency >= kForever) return fmt::format("overloaded (SLO {:.4g} ms)", ToMillis(slo));
  return fmt::format("{:.4g} of {:.4g} ms", ToMillis(latency), ToMillis(slo));
}

std::string StageTable(const FleetPlan& plan, const FleetInput& input) {
  TextTable table;
  table.AddColumns("pipeline, stage|device|batch|instances|window [ms]~1|items [r/s]~2|busy [%]");
  const auto lines = ByStage(plan);
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    const FleetPipeline& pipeline = input.pipelines[p];
    table.Add({fmt::format("{}: {}", pipeline.name, LatencyText(plan.latency[p], pipeline.slo))});
    for (FleetStageId::rep s = 0; s < pipeline.stages.size(); ++s) {
      const std::string name = "  " + pipeline.stages[s].name;
      const auto line = lines.find({FleetPipelineId{p}, FleetStageId{s}});
      if (line == lines.end()) {
        table.Add({name, "nowhere"});
        continue;
      }
      const FleetInstance& first = *line->second.first;
      const double rate = input.RateOf(FleetPipelineId{p}, FleetStageId{s});
      double all = input.RateOf(first.pipeline, first.stage);  // where stages share instances
      for (const FleetStageRef& also : first.also) all += input.RateOf(also.pipeline, also.stage);
      const FleetBatch& batch =
          *BatchOf(input, pipeline.stages[s].model, first.device, first.batch);
      table.Add({name, input.devices[first.device.value()].name, std::to_string(first.batch),
                 std::to_string(line->second.instances) + (first.also.empty() ? "" : " shared"),
                 first.length > Duration{} ? fmt::format("{:.1f}", ToMillis(first.length)) : "open",
                 fmt::format("{:.1f}", rate),
                 fmt::format("{:.0f}", 100 * BusyOf(all, batch) / line->second.instances)});
    }
  }
  return table.Print();
}

// Each stream's cycle as a bar of 60 cells, a letter for each window.
std::string Windows(const FleetPlan& plan, const FleetInput& input) {
  constexpr std::size_t kCells = 60;
  std::map<std::tuple<DeviceId, int, int>, std::vector<const FleetInstance*>> streams;
  for (const FleetInstance& each : plan.instances) {
    if (each.length > Duration{}) {
      streams[{each.device, each.accelerator, each.stream}].push_back(&each);
    }
  }
  std::string text;
  for (auto& [at, instances] : streams) {
    std::ranges::sort(instances, {}, &FleetInstance::offset);
    const auto& [device, accelerator, stream] = at;
    std::string bar(kCells, '.');
    std::string names;
    char letter = 'A';
    std::size_t free = 0;  // what is shorter than a cell has one all the same
    for (const FleetInstance* each : instances) {
      const double cells = kCells / ToSeconds(each->cycle);
      const auto begin = std::max(free, static_cast<std::size_t>(ToSeconds(each->offset) * cells));
      const auto end = static_cast<std::size_t>(ToSeconds(each->offset + each->length) * cells);
      free = std::min(kCells, std::max(begin + 1, end));
      for (std::size_t i = begin; i < free; ++i) bar[i] = letter;
      const FleetPipeline& pipeline = input.pipelines[each->pipeline.value()];
      names += fmt::format("{}{} {}/{}", names.empty() ? "" : ", ", letter, pipeline.name,
                           pipeline.stages[each->stage.value()].name);
      letter = letter == 'Z' ? 'a' : static_cast<char>(letter + 1);
    }
    text += fmt::format("{} {}.{}  |{}| {:.4g} ms\n    {}\n", input.devices[device.value()].name,
                        accelerator, stream, bar, ToMillis(instances.front()->cycle), names);
  }
  return text;
}

std::string Reasons(const FleetPlan& plan, const FleetInput& input) {
  std::string text;
  for (const FleetReason& each : plan.reasons) {
    const FleetPipeline& pipeline = input.pipelines[each.pipeline.value()];
    text += fmt::format("  {}/{}: {}\n", pipeline.name, pipeline.stages[each.stage.value()].name,
                        each.why);
  }
  return text;
}

std::string Shortages(const FleetPlan& plan, const FleetInput& input) {
  std::string text;
  for (const FleetShortage& each : plan.short_of) {
    const FleetPipeline& pipeline = input.pipelines[each.pipeline.value()];
    text += fmt::format("  {}/{}: {:.4g} r/s not sustained: {}\n", pipeline.name,
                        pipeline.stages[each.stage.value()].name, each.missing_rps, each.why);
  }
  return text.empty() ? "" : "short of\n" + text;
}

// By the planner's estimate; what is simulated may do better.
std::string Late(const FleetPlan& plan, const FleetInput& input) {
  std::string text;
  for (std::size_t p = 0; p < plan.latency.size(); ++p) {
    const FleetPipeline& pipeline = input.pipelines[p];
    if (plan.latency[p] <= pipeline.slo || pipeline.rate_rps <= 0) continue;
    text += fmt::format("  {}: {}\n", pipeline.name, LatencyText(plan.latency[p], pipeline.slo));
  }
  return text.empty() ? "" : "too late, by the estimate\n" + text;
}

int RunFleet(const FleetOptions& options) {
  const auto input = LoadFleet(options.input);
  if (!input) return ReportBadInput(input.error());
  const auto run = LoadFleetRun(options.input);
  if (!run) return ReportBadInput(run.error());
  const std::string& planner = options.planner.empty() ? run->planner : options.planner;
  const auto begun = std::chrono::steady_clock::now();
  const auto plan = PlanFleet(planner, *input);
  if (!plan) return ReportBadInput(plan.error());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
  fmt::print("{}: {} devices, {} pipelines, by {} in {:.1f} ms\n\n{}\n", options.input,
             input->devices.size(), input->pipelines.size(), planner, took.count(),
             StageTable(*plan, *input));
  if (options.windows) {
    const std::string drawn = Windows(*plan, *input);
    fmt::print("{}\n",
               drawn.empty() ? planner + " makes no windows; --planner octopinf does\n" : drawn);
  }
  fmt::print("why they are there\n{}{}{}", Reasons(*plan, *input), Shortages(*plan, *input),
             Late(*plan, *input));
  if (options.out.empty()) return 0;
  const auto written = WriteWhole(FleetPlanJson(*plan, *input, planner), options.out, "plan");
  return written ? 0 : ReportBadInput(written.error());
}

}  // namespace

void AddPlanFleet(CLI::App& plan, CommandContext& context) {
  auto options = std::make_shared<FleetOptions>();
  CLI::App* command = plan.add_subcommand(
      "fleet",
      "Place the stages of pipelines on the devices of a fleet, with batch sizes and time windows");
  AddOption(*command, "input", options->input, ReadFile(),
            "Devices, links, costs and pipelines (TOML)")
      ->required();
  std::string names = "One of";
  for (const FleetPlannerInfo& each : FleetPlanners()) {
    names += fmt::format("{} {}", names == "One of" ? "" : ",", each.name);
  }
  command->add_option(
      "--planner", options->planner,
      names + "; else the one that the file's [fleet] names, or " + FleetRun{}.planner);
  command->add_flag("--windows", options->windows, "Draw the windows of each stream");
  AddOption(*command, "--out,--json", options->out, WritableFile(),
            "Write the plan to this file, for `tactus simulate --plan`");
  command->callback([options, &context] { context.exit_code = RunFleet(*options); });
}

}  // namespace tactus
