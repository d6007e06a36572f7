// LeNet and VGG-16 at the same rate on one simulated device (gpu-lets, Figure 5): one after another
// on all of it, each in a process of its own on all of it, or each on a part. It runs lane layouts
// that no planner makes and that `tactus simulate --plan` refuses: batches beyond their SLO, lanes
// that together have more than the device.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "experiment/experiment.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "sim/world/plan_question.h"

namespace tactus {
namespace {

struct SharingOptions {
  std::string scenario;  // with [plan] shares 20, 40, 50, 60, 80
  std::vector<std::string> settings;
  std::string sharing;
  double rate_rps = 0;  // of each
};

// The batches with the fewest violations, of 1 to 32 in powers of two.
struct BestBatches {
  double bad_percent = 101;  // of both models
  double lenet_bad_percent = 0;
  double vgg_bad_percent = 0;
  int lenet = 0;
  int vgg = 0;
};

// Of L1 and FMA, the most that a batch of VGG-16 uses: UtilizationBase::kLargestBatch takes that
// for the whole device.
constexpr double kAllCompute = 0.603;

// One lane for both models, or one for each; LeNet is the first.
Plan SharedBy(const std::string& sharing, const PlanInput& input, int lenet, int vgg) {
  const PlanEntry entries[] = {{.model = ModelId{0}, .batch = lenet},
                               {.model = ModelId{1}, .batch = vgg}};
  const auto lane = [&](LaneClass c) {
    return LanePlan{.spec = {.lane_class = c, .fraction = input.share(c)}, .cycle = Millis(1)};
  };
  std::array<LaneClass, 2> parts = {input.whole(), input.whole()};
  if (sharing == "20:80") parts = {LaneClass{0}, LaneClass{4}};
  if (sharing == "40:60") parts = {LaneClass{1}, LaneClass{3}};
  Plan plan{.epoch = 1, .lanes = {lane(parts[0])}};
  plan.lanes[0].entries.push_back(entries[0]);
  if (sharing != "temporal") plan.lanes.push_back(lane(parts[1]));
  plan.lanes.back().entries.push_back(entries[1]);
  return plan;
}

Expected<BestBatches> FindBestBatches(const SharingOptions& options) {
  auto experiment = LoadExperiment(options.scenario, options.settings);
  if (!experiment) return std::unexpected(experiment.error());
  Scenario& scenario = experiment->scenario;
  scenario.lanes = 1;
  scenario.duration_s = 20;
  scenario.warmup_s = 2;
  scenario.seed = 1;
  scenario.rate_rps = 0;
  std::erase_if(scenario.models, [](const ScenarioModel& model) {
    return model.name != "LeNet" && model.name != "VGG-16";
  });
  if (options.sharing == "unsplit") {
    for (const Resource compute : {Resource::kL1, Resource::kFma}) {
      scenario.capacity[static_cast<std::size_t>(compute)] =
          scenario.plan_utilization_base == "device" ? 1 : kAllCompute;
    }
  }
  for (ScenarioModel& model : scenario.models) model.rate_rps = options.rate_rps;
  const auto question = MakePlanQuestion(scenario, experiment->profile);
  if (!question) return std::unexpected(question.error());
  BestBatches best;
  for (const int lenet : {1, 2, 4, 8, 16, 32}) {
    for (const int vgg : {1, 2, 4, 8, 16, 32}) {
      const auto policy = MakePolicy("planned");
      if (!policy) return std::unexpected(policy.error());
      const auto plan =
          std::make_shared<const Plan>(SharedBy(options.sharing, question->input, lenet, vgg));
      const auto result = Simulate(scenario, experiment->profile, **policy, {.plan = plan});
      if (!result) return std::unexpected(result.error());
      const RunReport report = MakeReport(scenario, experiment->profile, *result);
      const double bad = 100 * report.all.bad_ratio;
      if (bad >= best.bad_percent) continue;
      best = {.bad_percent = bad,
              .lenet_bad_percent = 100 * report.models[0].figures.bad_ratio,
              .vgg_bad_percent = 100 * report.models[1].figures.bad_ratio,
              .lenet = lenet,
              .vgg = vgg};
    }
  }
  return best;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app("LeNet and VGG-16 on one simulated device, as JSON");
  tactus::SharingOptions options;
  app.add_option("scenario", options.scenario, "Scenario file (TOML)")->required();
  app.add_option("--set", options.settings, "Change a key")->allow_extra_args(false);
  app.add_option("--sharing", options.sharing, "How they share the device")
      ->required()
      ->check(CLI::IsMember({"temporal", "unsplit", "20:80", "40:60"}));
  app.add_option("--rate", options.rate_rps, "Requests/s of each")->required();
  CLI11_PARSE(app, argc, argv);
  const auto best = tactus::FindBestBatches(options);
  if (!best) {
    fmt::print(stderr, "tactus_bench_sharing: {}\n", best.error().message);
    return 2;
  }
  fmt::print(
      "{{\"bad_percent\": {}, \"lenet_bad_percent\": {}, \"vgg_bad_percent\": {}, "
      "\"lenet_batch\": {}, \"vgg_batch\": {}}}\n",
      best->bad_percent, best->lenet_bad_percent, best->vgg_bad_percent, best->lenet, best->vgg);
  return 0;
}
