// What the workers of a site in virtual time serve.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/dispatcher.h"
#include "site/messages.h"

namespace tactus::site_test {

// The models that the workers serve: one exit and two, a batch of 8 in 6 ms at most.
inline std::vector<WorkerModel> Models() {
  std::vector<WorkerModel> models;
  for (const auto& [name, exits] : {std::pair{"a", 1}, {"b", 2}, {"c", 1}}) {
    WorkerModel model;
    model.model = {.name = name, .slo = Millis(50), .max_batch = 8, .exits = {}};
    model.model.exits.resize(static_cast<std::size_t>(exits));
    model.rows = {.exits = exits, .max_batch = 8, .latency = {}};
    for (int exit = 0; exit < exits; ++exit) {
      model.model.exits[static_cast<std::size_t>(exit)] = {std::to_string(exit), 0.8 + 0.1 * exit};
      for (int b = 1; b <= 8; ++b)
        model.rows.latency.push_back(Micros(1000 * (exit + 1) + 500 * b));
    }
    models.push_back(std::move(model));
  }
  return models;
}

inline std::shared_ptr<ServedModels> Served() {
  auto served = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  for (const WorkerModel& model : Models()) {
    served->models.push_back(model.model);
    rows.push_back(model.rows);
  }
  served->profile = ProfileTable(1, rows);
  return served;
}

}  // namespace tactus::site_test
