#include "core/planner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number_text.h"
#include "core/chance.h"

namespace tactus {
namespace {

constexpr double kRounding = 1e-6;
constexpr int kHalvings = 6;  // after which LargestPart knows the fraction to a 64th

// Rounded for a reader.
std::string Requests(double rate_rps) {
  return NumberText(rate_rps < 10 ? std::round(100 * rate_rps) / 100 : std::round(rate_rps));
}
std::string Millis(Duration d) { return NumberText(ToMillis(d)) + " ms"; }

std::string Place(std::size_t lane) { return "lane " + std::to_string(lane) + " of the plan"; }

Status CheckShare(const LaneSpec& spec, std::size_t at, const PlanInput& input) {
  const bool profiled = spec.lane_class.value() < input.shares.size();
  if (profiled && std::abs(input.share(spec.lane_class) - spec.fraction) <= kRounding) return {};
  std::string known;
  for (const double share : input.shares) known += (known.empty() ? "" : ", ") + PercentText(share);
  return InvalidArgument(Place(at) + " is " + PercentText(spec.fraction) +
                         " of its device, which was not profiled (" + known + " were); profile " +
                         PercentText(spec.fraction) +
                         " and name it (--on-share, or a scenario's [plan] shares), or plan again "
                         "without it");
}

// The window of one entry; `taken`: until when those before it last.
Status CheckWindow(const PlanEntry& entry, const PlannedModel& model, Duration latency,
                   Duration taken, const LanePlan& lane, std::size_t at) {
  const std::string window =
      Place(at) + ": the window of '" + model.name + "' at " + Millis(entry.offset);
  if (entry.offset < taken) {
    return InvalidArgument(window + " overlaps the one before it, which ends at " + Millis(taken) +
                           "; start it there, or plan again");
  }
  if (entry.length < latency) {
    return InvalidArgument(window + " is " + Millis(entry.length) +
                           " long, shorter than its batch's " + Millis(latency) +
                           " by the profile; plan again");
  }
  if (entry.offset + entry.length > lane.cycle) {
    return InvalidArgument(window + " leaves the cycle of " + Millis(lane.cycle) +
                           "; plan again with a longer one");
  }
  return {};
}

Status CheckLane(const LanePlan& lane, std::size_t at, const PlanInput& input) {
  const LaneSpec& spec = lane.spec;
  if (spec.device.value() >= static_cast<std::uint32_t>(input.devices)) {
    return InvalidArgument(Place(at) + " is on device " + std::to_string(spec.device.value()) +
                           "; there are " + std::to_string(input.devices));
  }
  if (auto profiled = CheckShare(spec, at, input); !profiled) return profiled;
  Duration taken{};
  for (const PlanEntry& entry : lane.entries) {
    if (entry.model.value() >= input.models.size()) {
      return InvalidArgument(Place(at) + " serves model " + std::to_string(entry.model.value()) +
                             " of " + std::to_string(input.models.size()) +
                             ": this plan is of another model set");
    }
    const PlannedModel& model = input.models[entry.model.value()];
    if (entry.batch < 1 || entry.batch > input.profile->max_batch(entry.model)) {
      return InvalidArgument(Place(at) + ": a batch of " + std::to_string(entry.batch) + " of '" +
                             model.name + "' was not profiled; the largest is " +
                             std::to_string(input.profile->max_batch(entry.model)));
    }
    const Duration latency = input.Latency(entry.model, entry.batch, spec.lane_class);
    const auto window = CheckWindow(entry, model, latency, taken, lane, at);
    if (!window) return window;
    taken = entry.offset + entry.length;
    // The window: beside neighbours a batch takes longer than by the profile.
    if (lane.cycle + entry.length > model.slo) {
      return InvalidArgument(Place(at) + ": '" + model.name + "' waits up to a cycle of " +
                             Millis(lane.cycle) + " for a window of " + Millis(entry.length) +
                             ", which is more than its SLO of " + Millis(model.slo));
    }
  }
  return {};
}

Status CheckDevices(const Plan& plan, const PlanInput& input) {
  std::vector<double> share(input.devices);
  std::vector<std::set<ModelId>> loaded(input.devices);
  for (const LanePlan& lane : plan.lanes) {
    const std::uint32_t device = lane.spec.device.value();
    share[device] += lane.spec.fraction;
    for (const PlanEntry& entry : lane.entries) loaded[device].insert(entry.model);
  }
  for (std::size_t d = 0; d < share.size(); ++d) {
    if (share[d] > input.device.use + kRounding) {
      const bool whole = input.device.use == 1;
      return InvalidArgument(
          "the lanes of device " + std::to_string(d) + " add up to " + PercentText(share[d]) +
          " of it" + (whole ? "" : ", of which they may have " + PercentText(input.device.use)) +
          "; plan again");
    }
    double all = 0;
    for (const ModelId m : loaded[d]) all += input.models[m.value()].memory_mb;
    if (!input.device.HasMemoryFor(all)) {
      const std::vector<ModelId> models(loaded[d].begin(), loaded[d].end());
      return InvalidArgument(TooMuchMemory(input, static_cast<int>(d), models) + "; plan again");
    }
  }
  return {};
}

// Nothing where some batch of the model may wait for one of its kind, on some share; else what the
// quickest of them takes.
std::optional<Duration> TooSlow(const PlanInput& input, ModelId m) {
  Duration quickest = kNever - kStart;
  // Whole devices first: there the first batch answers nearly always.
  for (auto c = static_cast<LaneClass::rep>(input.shares.size()); c-- > 0;) {
    for (int batch = 1; batch <= input.profile->max_batch(m); ++batch) {
      quickest = std::min(quickest, input.Latency(m, batch, LaneClass{c}));
      if (quickest <= input.models[m.value()].slo / 2) return std::nullopt;
    }
  }
  return quickest;
}

// Whether the models that have load fit the devices, each of them on one at least.
Status CheckMemory(const PlanInput& input) {
  if (std::isinf(input.device.memory_mb)) return {};
  std::vector<ModelId> models;
  double all = 0;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    const PlannedModel& model = input.models[m];
    if (model.rate_rps <= 0) continue;
    if (!input.device.HasMemoryFor(model.memory_mb)) {
      return InvalidArgument("model '" + model.name + "' needs " + NumberText(model.memory_mb) +
                             " MB; a device has " + NumberText(input.device.memory_mb) +
                             ": only devices with more memory help");
    }
    models.push_back(ModelId{m});
    all += model.memory_mb;
  }
  if (input.device.HasMemoryFor(all / input.devices)) return {};
  return InvalidArgument("the models need " + MemoryText(input, models) +
                         "; all devices together have " +
                         NumberText(input.devices * input.device.memory_mb) +
                         ": more devices or memory, or fewer models, help");
}

Status CheckRates(const Plan& plan, const PlanInput& input) {
  std::vector<double> sustained(input.models.size());
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      sustained[entry.model.value()] += entry.batch / ToSeconds(lane.cycle);
    }
  }
  for (std::size_t m = 0; m < sustained.size(); ++m) {
    const PlannedModel& model = input.models[m];
    if (sustained[m] >= model.rate_rps * (1 - kRounding)) continue;
    return InvalidArgument("the plan sustains too little: '" + model.name + "' lacks " +
                           NumberText(model.rate_rps - sustained[m]) + " of " +
                           NumberText(model.rate_rps) + " requests/s");
  }
  return {};
}

Status CheckChance(const Plan& plan, const PlanInput& input) {
  const PlanViolations violations = ViolationsByChance(plan, input);
  if (!TooMany(violations.all)) return {};
  const auto percent = [](double part) { return PercentText(std::round(1000 * part) / 1000); };
  const auto worst = std::ranges::max_element(violations.models, {}, &ChanceViolations::ratio);
  return InvalidArgument(
      "the plan sustains the load only if requests come evenly: as they come by "
      "chance, about " +
      percent(violations.all.ratio) + " of them would be violations, " + percent(worst->ratio) +
      " of those of '" + input.models[worst - violations.models.begin()].name +
      "'; plan for more headroom, or with gpulet-retry, which looks for it");
}

}  // namespace

Status Validate(const PlanInput& input) {
  if (input.devices < 1) return InvalidArgument("planning needs at least one device");
  const bool ascend =
      !input.shares.empty() && input.shares.front() > 0 && std::ranges::is_sorted(input.shares) &&
      std::ranges::adjacent_find(input.shares) == input.shares.end() && input.shares.back() == 1;
  if (!ascend) return InvalidArgument("shares of a device must ascend in (0, 1] and end with 1");
  if (input.profile == nullptr || input.profile->models() != input.models.size() ||
      input.profile->lane_classes() != static_cast<int>(input.shares.size())) {
    return InvalidArgument("the profile is of other models, or of other shares of a device");
  }
  for (const PlannedModel& model : input.models) {
    if (!(model.rate_rps >= 0) || !std::isfinite(model.rate_rps) || model.slo <= Duration{}) {
      return InvalidArgument("model '" + model.name +
                             "': its rate must be a number of requests/s and its SLO positive");
    }
  }
  return {};
}

Status CheckPlannable(const PlanInput& input) {
  if (auto valid = Validate(input); !valid) return valid;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    const PlannedModel& model = input.models[m];
    const auto quickest = model.rate_rps > 0 ? TooSlow(input, ModelId{m}) : std::nullopt;
    if (!quickest) continue;
    return InvalidArgument("model '" + model.name + "': no batch meets half of its SLO of " +
                           Millis(model.slo) + " on any share: the quickest takes " +
                           Millis(*quickest) + "; a longer SLO helps");
  }
  return CheckMemory(input);
}

Status ValidateLanes(const Plan& plan, const PlanInput& input) {
  if (auto valid = Validate(input); !valid) return valid;
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    if (auto fits = CheckLane(plan.lanes[i], i, input); !fits) return fits;
  }
  return CheckDevices(plan, input);
}

Status Validate(const Plan& plan, const PlanInput& input) {
  if (auto fits = ValidateLanes(plan, input); !fits) return fits;
  if (auto enough = CheckRates(plan, input); !enough) return enough;
  return CheckChance(plan, input);
}

std::string MemoryText(const PlanInput& input, std::span<const ModelId> models) {
  double all = 0;
  std::string each;
  for (const ModelId m : models) {
    const PlannedModel& model = input.models[m.value()];
    all += model.memory_mb;
    each += (each.empty() ? "'" : ", '") + model.name + "' " + NumberText(model.memory_mb);
  }
  return NumberText(all) + " MB (" + each + ")";
}

std::string TooMuchMemory(const PlanInput& input, int device, std::span<const ModelId> models) {
  return "the models of device " + std::to_string(device) + " need " + MemoryText(input, models) +
         "; it has " + NumberText(input.device.memory_mb);
}

PartialPlan LargestPart(const PlanInput& input, const Solver& solve) {
  PartialPlan largest;
  PlanInput less = input;
  double high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (largest.part + high) / 2;
    for (std::size_t m = 0; m < input.models.size(); ++m) {
      less.models[m].rate_rps = middle * input.models[m].rate_rps;
      less.models[m].expected_rps = middle * input.models[m].expected_rps;
    }
    auto plan = solve(less);
    (plan ? largest.part : high) = middle;
    if (plan) largest.plan = std::move(*plan);
  }
  return largest;
}

std::string DescribeShortage(const PlanInput& input, double part) {
  const double least = std::ldexp(1.0, -kHalvings);  // below it the fraction is not known
  std::string text = part < least ? "less than " + NumberText(std::ceil(100 * least))
                                  : NumberText(std::floor(100 * part));
  text += " % of the load would fit";
  const char* before = "; ";
  for (const PlannedModel& model : input.models) {
    if (model.rate_rps <= 0) continue;
    text += before + ("'" + model.name + "' lacks ") + Requests((1 - part) * model.rate_rps) +
            " of " + Requests(model.rate_rps);
    before = ", ";
  }
  return text + " requests/s";
}

}  // namespace tactus
