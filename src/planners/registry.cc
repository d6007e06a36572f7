#include "planners/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "planners/gpulet/elastic.h"
#include "planners/nexus/squishy.h"

namespace tactus {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"gpulet", "gpulet-retry", "self-tuning",
                                                    "nexus", "nexus-half"};

class ElasticPlanner final : public Planner {
 public:
  ElasticPlanner(std::string_view name, std::optional<InterferenceModel> interference)
      : name_(name), interference_(interference) {}
  std::string_view name() const override { return name_; }
  Expected<Plan> Solve(const PlanInput& input) override {
    const InterferenceModel* interference = interference_ ? &*interference_ : nullptr;
    if (name_ == "gpulet-retry") return PlanElasticRetrying(input, {.interference = interference});
    return PlanElastic(input,
                       {.interference = interference, .self_tuning = name_ == "self-tuning"});
  }

 private:
  const std::string name_;
  const std::optional<InterferenceModel> interference_;
};

class SquishyPlanner final : public Planner {
 public:
  explicit SquishyPlanner(bool halves) : halves_(halves) {}
  std::string_view name() const override { return halves_ ? "nexus-half" : "nexus"; }
  Expected<Plan> Solve(const PlanInput& input) override {
    if (!halves_) return PlanSquishy(input, input.whole());
    if (Status suits = Suits(input.shares); !suits) return std::unexpected(suits.error());
    const auto half = std::ranges::find(input.shares, 0.5) - input.shares.begin();
    return PlanSquishy(input, LaneClass{static_cast<LaneClass::rep>(half)});
  }
  Status Suits(std::span<const double> shares) const override {
    if (!halves_ || std::ranges::find(shares, 0.5) != shares.end()) return {};
    return InvalidArgument(
        "nexus-half needs 50 % among the shares of a device; add it, or take another planner");
  }

 private:
  const bool halves_;
};

}  // namespace

std::span<const std::string_view> PlannerNames() { return kNames; }

Expected<std::unique_ptr<Planner>> MakePlanner(std::string_view name,
                                               std::optional<InterferenceModel> interference) {
  if (name == "gpulet" || name == "gpulet-retry" || name == "self-tuning") {
    return std::make_unique<ElasticPlanner>(name, interference);
  }
  if (name == "nexus" || name == "nexus-half") {
    return std::make_unique<SquishyPlanner>(name == "nexus-half");
  }
  std::string all;
  for (const std::string_view each : kNames) all += (all.empty() ? "" : ", ") + std::string(each);
  if (name == "ideal") {
    return NotFound(
        "'ideal' is for `tactus plan gpulet` alone, too slow for a load that changes; there are " +
        all);
  }
  return NotFound("no planner '" + std::string(name) + "'; there are " + all);
}

}  // namespace tactus
