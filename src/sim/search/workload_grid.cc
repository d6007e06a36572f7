#include "sim/search/workload_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/simulation.h"

namespace tactus {
namespace {

// Table 1; the models by falling batching effect, beta / alpha from 9.7 to 0.02.
constexpr std::array kModels = {"DenseNet121", "InceptionV3", "ResNet50V2",
                                "VGG16",       "Xception",    "BERT"};
constexpr std::array kCopies = {8, 16, 24, 32, 48, 64};
constexpr std::array kLanesPerModel = {1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0};
constexpr std::array kSlosMs = {20, 25, 30, 40, 50};
constexpr std::array kShapes = {0.1, 0.2, 0.3, 0.5, 0.7, 1.0};

// Whether each counted request was bad, over all models or the worst of them.
double BadRatio(const SimulationResult& run, bool of_worst_model) {
  std::vector<std::int64_t> bad(run.models.size());
  std::vector<std::int64_t> all(run.models.size());
  for (const RequestRecord& record : run.records) {
    if (record.arrival < run.begin || record.arrival >= run.end) continue;
    const std::size_t model = of_worst_model ? record.model : 0;
    ++all[model];
    bad[model] += record.outcome == Outcome::kMet ? 0 : 1;
  }
  double worst = 0;
  for (std::size_t m = 0; m < (of_worst_model ? all.size() : 1); ++m) {
    if (all[m] == 0) return 1;  // a run too short to show anything passes nothing
    worst = std::max(worst, static_cast<double>(bad[m]) / static_cast<double>(all[m]));
  }
  return worst;
}

}  // namespace

int GridCell::lanes() const { return static_cast<int>(std::lround(models * lanes_per_model)); }

std::string GridCell::Name() const {
  return fmt::format("{},{},{},{:g},{:g}", model, models, lanes(), ToMillis(slo), shape);
}

std::vector<GridCell> WorkloadGrid(int zoo_models) {
  std::vector<GridCell> cells;
  for (const double lanes : kLanesPerModel) {
    for (const double shape : kShapes) {
      cells.push_back({kMixed, zoo_models, lanes, {}, shape});
      for (const char* model : kModels) {
        for (const int copies : kCopies) {
          for (const int slo : kSlosMs) {
            cells.push_back({model, copies, lanes, Millis(slo), shape});
          }
        }
      }
    }
  }
  return cells;
}

Expected<Scenario> MakeWorkload(const GridCell& cell, const ProfileFile& zoo,
                                const GridEffort& effort) {
  Scenario scenario;
  scenario.name = cell.Name();
  scenario.seed = effort.seed;
  scenario.queue_capacity = 1024;  // half a second of the busiest model
  scenario.lanes = cell.lanes();
  scenario.process = ArrivalProcess::kGamma;
  scenario.cv = 1 / std::sqrt(cell.shape);
  const bool mixed = cell.model == kMixed;
  for (int i = 0; i < cell.models; ++i) {
    ScenarioModel& model = scenario.models.emplace_back();
    if (mixed) {
      const ProfiledModel& profiled = zoo.models.at(static_cast<std::size_t>(i));
      model.name = model.profile_as = profiled.name;
      model.slo_ms = profiled.slo_ms;
    } else {
      model.name = fmt::format("{}-{}", cell.model, i);
      model.profile_as = cell.model;
      model.slo_ms = ToMillis(cell.slo);
    }
  }
  const auto models = AffineModels(scenario, zoo);
  if (!models) return std::unexpected(models.error());
  const double fluid_rps = FluidPeak(*models, scenario.lanes);
  SetTotalRate(scenario, fluid_rps);
  const double requests = mixed ? effort.zoo_requests : effort.least_requests;
  scenario.warmup_s = effort.warmup_s;
  scenario.duration_s = effort.warmup_s + std::max(effort.least_s, requests / fluid_rps);
  return scenario;
}

Expected<double> QuickPeak(const GridCell& cell, const ProfileFile& zoo,
                           const PolicyFactory& make_policy, double guess_rps,
                           const GridEffort& effort) {
  auto scenario = MakeWorkload(cell, zoo, effort);
  if (!scenario) return std::unexpected(scenario.error());
  const auto found = FindPeak(
      [&](double rate_rps) -> Expected<std::vector<double>> {
        SetTotalRate(*scenario, rate_rps);
        auto policy = make_policy();
        if (!policy) return std::unexpected(policy.error());
        const auto run = Simulate(*scenario, zoo, **policy, {.noise = false});
        if (!run) return std::unexpected(run.error());
        return std::vector{BadRatio(*run, cell.model == kMixed)};
      },
      {.start_rps = guess_rps, .precision = effort.precision, .first_step = 1.08});
  if (!found) return std::unexpected(found.error());
  return found->rate_rps;
}

}  // namespace tactus
