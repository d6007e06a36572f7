#include "workload/accuracy_limit.h"

#include <algorithm>

namespace tactus {
namespace {

// More accuracy for more time, for every request of one model.
struct Upgrade {
  double seconds = 0;   // of lane time in a second, if all requests take it
  double accuracy = 0;  // gained per request, times the requests per second
  double price() const { return accuracy / seconds; }
};

double Slope(const ExitCost& from, const ExitCost& to) {
  return (to.accuracy - from.accuracy) / (to.seconds - from.seconds);
}

// The exits on the upper concave hull from the quickest one upwards: between two of them no mixture
// of others gives more accuracy for the same time.
std::vector<ExitCost> Hull(std::vector<ExitCost> exits) {
  std::sort(exits.begin(), exits.end(), [](const ExitCost& a, const ExitCost& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.accuracy > b.accuracy;
  });
  std::vector<ExitCost> hull;
  for (const ExitCost& exit : exits) {
    if (!hull.empty() && exit.accuracy <= hull.back().accuracy) continue;
    while (hull.size() >= 2 &&
           Slope(hull[hull.size() - 2], hull.back()) <= Slope(hull.back(), exit)) {
      hull.pop_back();
    }
    hull.push_back(exit);
  }
  return hull;
}

// How batches come about.
struct Gathering {
  double rate_rps = 0;
  double slo = 0;    // seconds
  double speed = 1;  // of the quickest lane

  // A batch of one needs nobody else.
  bool Fills(std::size_t batch, double seconds) const {
    return batch == 1 || static_cast<double>(batch) <= 1 + rate_rps * (slo - seconds / speed);
  }
};

// What a request costs in the batch that makes it cheapest, for most models the largest, of those
// that are filled; of all where nobody asks how.
double SecondsPerRequest(const ProfiledExit& exit, const Gathering* gathering) {
  double least = exit.cells.front().mean_ms / 1000;
  for (std::size_t i = 0; i < exit.cells.size(); ++i) {
    const double seconds = exit.cells[i].mean_ms / 1000;
    if (gathering != nullptr && !gathering->Fills(i + 1, seconds)) continue;
    least = std::min(least, seconds / static_cast<double>(i + 1));
  }
  return least;
}

// In seconds; a stage may take all of its pipeline's.
double SloOf(const Scenario& scenario, const ScenarioModel& model) {
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    for (const ScenarioStage& stage : pipeline.stages) {
      if (stage.model == model.name) return pipeline.slo_ms / 1000;
    }
  }
  return model.slo_ms / 1000;
}

// Both ways to gather, each by what `limit` says of demands and seconds of lane time.
Expected<std::optional<AccuracyLimits>> LimitsBy(const Scenario& scenario,
                                                 const ProfileFile& profile, auto limit) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  double capacity = 0;
  double speed = 0;
  for (const LaneKind& kind : LaneKinds(scenario)) {
    capacity += kind.count * kind.speed;
    if (kind.count > 0) speed = std::max(speed, kind.speed);
  }
  const std::vector<double> rates = Rates(scenario);
  std::vector<AccuracyDemand> largest;
  std::vector<AccuracyDemand> by_rate;
  bool known = false;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Gathering gathering{rates[i], SloOf(scenario, scenario.models[i]), speed};
    largest.push_back({rates[i], {}});
    by_rate.push_back({rates[i], {}});
    for (const ProfiledExit& exit : selected->models[i].exits) {
      largest.back().exits.push_back({SecondsPerRequest(exit, nullptr), exit.accuracy});
      by_rate.back().exits.push_back({SecondsPerRequest(exit, &gathering), exit.accuracy});
      known = known || exit.accuracy > 0;
    }
  }
  if (!known) return std::nullopt;
  return AccuracyLimits{limit(largest, capacity * scenario.slots),
                        limit(by_rate, capacity * scenario.slots)};
}

}  // namespace

double AccuracyLimit(std::span<const AccuracyDemand> demands, double lanes) {
  double requests = 0;
  double gained = 0;
  double seconds_left = lanes;
  std::vector<Upgrade> upgrades;
  for (const AccuracyDemand& demand : demands) {
    if (demand.rate_rps <= 0) continue;
    const std::vector<ExitCost> hull = Hull(demand.exits);
    requests += demand.rate_rps;
    gained += demand.rate_rps * hull.front().accuracy;
    seconds_left -= demand.rate_rps * hull.front().seconds;
    for (std::size_t i = 1; i < hull.size(); ++i) {
      upgrades.push_back({demand.rate_rps * (hull[i].seconds - hull[i - 1].seconds),
                          demand.rate_rps * (hull[i].accuracy - hull[i - 1].accuracy)});
    }
  }
  if (requests == 0) return 0;
  // A hull is concave, so each model's upgrades come in their own order.
  std::sort(upgrades.begin(), upgrades.end(),
            [](const Upgrade& a, const Upgrade& b) { return a.price() > b.price(); });
  for (const Upgrade& upgrade : upgrades) {
    if (seconds_left <= 0) break;
    gained += upgrade.accuracy * std::min(1.0, seconds_left / upgrade.seconds);
    seconds_left -= upgrade.seconds;
  }
  return gained / requests;
}

// The least, over all prices of a lost request, of what a schedule gains that may lose any number
// of them at that price: a linear program's dual, convex in the price. A lost request is an exit
// that takes no time and is worth less than nothing.
double ValueLimit(std::span<const AccuracyDemand> demands, double lanes, double most_lost) {
  constexpr int kHalvings = 100;
  std::vector<AccuracyDemand> priced(demands.begin(), demands.end());
  for (AccuracyDemand& demand : priced) demand.exits.push_back({});
  const auto limit = [&](double price) {
    for (AccuracyDemand& demand : priced) demand.exits.back().accuracy = -price;
    return AccuracyLimit(priced, lanes) + price * most_lost;
  };
  double low = 0;
  double high = 1e6;
  for (int i = 0; i < kHalvings; ++i) {
    const double third = (high - low) / 3;
    if (limit(low + third) <= limit(high - third)) {
      high -= third;
    } else {
      low += third;
    }
  }
  return std::max(0.0, limit(low));
}

Expected<std::optional<AccuracyLimits>> AccuracyLimit(const Scenario& scenario,
                                                      const ProfileFile& profile) {
  return LimitsBy(scenario, profile, [](const std::vector<AccuracyDemand>& demands, double lanes) {
    return AccuracyLimit(demands, lanes);
  });
}

Expected<std::optional<AccuracyLimits>> ValueLimit(const Scenario& scenario,
                                                   const ProfileFile& profile, double most_lost) {
  return LimitsBy(scenario, profile, [&](const std::vector<AccuracyDemand>& demands, double lanes) {
    return ValueLimit(demands, lanes, most_lost);
  });
}

}  // namespace tactus
