#include "sim/world/simulated_pairs.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/rng.h"
#include "core/shares.h"
#include "sim/devices/contention.h"
#include "sim/world/plan_question.h"

namespace tactus {
namespace {

constexpr std::array kBatches = {2, 4, 8, 16, 32};

// One pair of batches on the scenario's device, each in its lane: a sample for each.
void AddPair(const Scenario& scenario, const std::array<Throughput, 2>& use, Rng& rng,
             std::vector<InterferenceSample>& samples) {
  Contention device{.crosstalk = scenario.crosstalk};
  std::ranges::copy(scenario.capacity, device.capacity.begin());
  std::array<Contender, 2> batches;
  std::array<double, 2> slowdown{};
  for (std::size_t i = 0; i < 2; ++i) {
    batches[i] = {.use = use[i], .luck = DrawLuck(scenario.tail, rng)};
  }
  Slowdowns(device, batches, slowdown);
  for (std::size_t i = 0; i < 2; ++i) {
    samples.push_back({.own = use[i], .other = use[1 - i], .factor = slowdown[i]});
  }
}

}  // namespace

Expected<std::vector<InterferenceSample>> SimulatedPairs(const Scenario& scenario,
                                                         const ProfileFile& profile) {
  if (scenario.capacity.empty()) {
    return InvalidArgument(scenario.name +
                           ": lanes do not slow each other here; [contention] capacity says how "
                           "they do");
  }
  const auto question = MakePlanQuestion(scenario, profile);
  if (!question) return std::unexpected(question.error());
  const PlanInput& input = question->input;
  Rng rng = Rng::Stream(scenario.seed, "gpulets/pairs");
  std::vector<InterferenceSample> samples;
  const auto add = [&](ModelId a, int of_a, ModelId b, int of_b) {
    if (of_a > input.profile->max_batch(a) || of_b > input.profile->max_batch(b)) return;
    for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
      const std::optional<std::size_t> rest = ComplementOf(input.shares, input.shares[c]);
      if (!rest) continue;
      const LaneClass other{static_cast<LaneClass::rep>(*rest)};
      AddPair(scenario,
              {input.profile->Use(a, ExitId{0}, of_a, LaneClass{c}).throughput,
               input.profile->Use(b, ExitId{0}, of_b, other).throughput},
              rng, samples);
    }
  };
  for (ModelId::rep a = 0; a < input.models.size(); ++a) {
    for (ModelId::rep b = a + 1; b < input.models.size(); ++b) {
      for (const int of_a : kBatches) {
        for (const int of_b : kBatches) add(ModelId{a}, of_a, ModelId{b}, of_b);
      }
    }
  }
  if (!samples.empty()) return samples;
  return InvalidArgument(scenario.name +
                         ": no two models share a device here; name two models or more, and the "
                         "parts of a device in [plan] shares, as 20,80");
}

}  // namespace tactus
