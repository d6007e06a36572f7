// Models with latencies by share, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/planner.h"

namespace tactus {

// L(b, share) = (fixed + b * each) * max(1, parallel(b) / share): a batch that cannot use the whole
// device loses nothing on a part of it.
struct TestModel {
  double rate_rps = 0;
  Duration slo = Millis(100);
  Duration fixed = Millis(2);
  Duration each = Millis(1);
  double parallel_at_one = 0.2;  // of the device, that a batch of 1 can use; a full one uses all
  double memory = 0.5;           // of L2's and of DRAM's throughput, that a full one uses
};

struct TestProblem {
  ProfileTable profile;
  PlanInput input;
};

inline TestProblem MakeTestProblem(const std::vector<TestModel>& models, int devices,
                                   int max_batch = 16,
                                   std::vector<double> shares = {0.2, 0.4, 0.5, 0.6, 0.8, 1}) {
  TestProblem problem;
  std::vector<ProfileTable::ModelRows> all;
  for (const TestModel& model : models) {
    ProfileTable::ModelRows rows{.exits = 1, .max_batch = max_batch};
    for (const double share : shares) {
      for (int b = 1; b <= max_batch; ++b) {
        const double part = max_batch == 1 ? 0 : (b - 1.0) / (max_batch - 1);
        const double parallel = model.parallel_at_one + (1 - model.parallel_at_one) * part;
        const double longer = std::max(1.0, parallel / share);
        rows.latency.push_back(FromSeconds(ToSeconds(model.fixed + b * model.each) * longer));
        ResourceUse& use = rows.use.emplace_back();
        for (const Resource resource : {Resource::kL2, Resource::kDram}) {
          use.throughput[static_cast<std::size_t>(resource)] = model.memory * parallel / longer;
        }
      }
    }
    all.push_back(std::move(rows));
    problem.input.models.push_back({.name = "m" + std::to_string(problem.input.models.size()),
                                    .rate_rps = model.rate_rps,
                                    .slo = model.slo});
  }
  problem.profile = ProfileTable(static_cast<int>(shares.size()), all);
  problem.input.shares = std::move(shares);
  problem.input.devices = devices;
  return problem;
}

inline std::vector<TestModel> RandomTestModels(Rng& rng, std::size_t count) {
  std::vector<TestModel> models;
  for (std::size_t i = 0; i < count; ++i) {
    TestModel model;
    model.fixed = FromMillis(0.5 + 8 * rng.Uniform());
    model.each = FromMillis(0.1 + 3 * rng.Uniform());
    model.parallel_at_one = 0.1 + 0.8 * rng.Uniform();
    const double alone_s = ToSeconds(model.fixed + model.each);
    model.slo = FromSeconds((2 + 6 * rng.Uniform()) * alone_s);
    model.rate_rps = 4 * rng.Uniform() / alone_s;
    model.memory = rng.Uniform();
    models.push_back(model);
  }
  return models;
}

}  // namespace tactus
