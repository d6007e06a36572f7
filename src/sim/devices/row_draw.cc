#include "sim/devices/row_draw.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/rng.h"

namespace tactus {

RowDraw::RowDraw(const Scenario& scenario) : seed_(scenario.seed) {
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    auto& stages = stages_.emplace_back();
    for (const ScenarioStage& from : pipeline.stages) {
      Stage& stage = stages.emplace_back();
      stage.stream = fmt::format("rows/{}/{}", pipeline.name, from.name);
      const double all = std::accumulate(from.rows.begin(), from.rows.end(), 0.0);
      double sum = 0;
      for (const double weight : from.rows) stage.up_to.push_back((sum += weight) / all);
    }
  }
}

int RowDraw::Rows(std::uint32_t pipeline, std::uint64_t arrival, StageRun run) const {
  const Stage& stage = stages_[pipeline][run.stage.value()];
  if (stage.up_to.empty()) return 1;
  const std::string stream = fmt::format("{}/{}/{}", stage.stream, arrival, run.item);
  const double drawn = Rng::Stream(seed_, stream).Uniform();
  const auto rows = std::ranges::upper_bound(stage.up_to, drawn) - stage.up_to.begin();
  // Rounding may leave the last a little short of 1.
  return static_cast<int>(std::min(rows, std::ssize(stage.up_to) - 1));
}

}  // namespace tactus
