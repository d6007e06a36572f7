#include "experiment/plan_loads.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planners/gpulet/duty_cycle.h"
#include "planners/gpulet/elastic.h"
#include "workload/csv.h"

namespace tactus {

Expected<std::vector<PlanInput>> ReadLoads(const std::string& path, const PlanInput& input) {
  const auto table = ReadCsv(path);
  if (!table) return std::unexpected(table.error());
  std::vector<PlanInput> loads(table->rows.size(), input);
  for (std::size_t m = 0; m < input.models.size(); ++m) {
    const auto column = table->Column(input.models[m].name);
    if (!column) {
      return InvalidArgument(
          fmt::format("{}: has no column '{}'; its header must be the models' names", path,
                      input.models[m].name));
    }
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const CsvTable::Row& row = table->rows[i];
      const auto rate_rps = ParseNumber(row.cells[*column]);
      if (!rate_rps || *rate_rps < 0) {
        return InvalidArgument(fmt::format("{}:{}: '{}' is no rate in requests/s", path, row.line,
                                           row.cells[*column]));
      }
      loads[i].models[m].rate_rps = *rate_rps;
    }
  }
  if (table->header.size() != input.models.size()) {
    return InvalidArgument(fmt::format("{}: has {} columns for {} models; leave out the others",
                                       path, table->header.size(), input.models.size()));
  }
  if (loads.empty()) return InvalidArgument(path + ": no row says a load");
  return loads;
}

std::string OnSharesJson(const PlanInput& input) {
  nlohmann::ordered_json models = nlohmann::json::array();
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    const PlannedModel& model = input.models[m];
    nlohmann::ordered_json shares = nlohmann::json::array();
    const LaneClass knee = Knee(input, ModelId{m});
    for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
      nlohmann::ordered_json latencies = nlohmann::json::array();
      for (int batch = 1; batch <= input.profile->max_batch(ModelId{m}); ++batch) {
        latencies.push_back(ToMillis(input.Latency(ModelId{m}, batch, LaneClass{c})));
      }
      shares.push_back({{"share", input.shares[c]},
                        {"most_rps", MostRate(input, LaneClass{c}, ModelId{m})},
                        {"knee", LaneClass{c} == knee},
                        {"latency_ms", latencies}});
    }
    models.push_back({{"name", model.name},
                      {"slo_ms", ToMillis(model.slo)},
                      {"rate_rps", model.rate_rps},
                      {"on_share", shares}});
  }
  return models.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tactus
