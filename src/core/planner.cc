#include "core/planner.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tactus {
namespace {

constexpr double kRounding = 1e-6;

std::string Text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}
std::string Millis(Duration d) { return Text(ToMillis(d)) + " ms"; }

std::string Percent(double share) { return Text(100 * share) + " %"; }
std::string Place(std::size_t lane) { return "lane " + std::to_string(lane) + " of the plan"; }

Status CheckShare(const LaneSpec& spec, std::size_t at, const PlanInput& input) {
  const bool profiled = spec.lane_class.value() < input.shares.size();
  if (profiled && std::abs(input.share(spec.lane_class) - spec.fraction) <= kRounding) return {};
  std::string known;
  for (const double share : input.shares) known += (known.empty() ? "" : ", ") + Percent(share);
  return InvalidArgument(Place(at) + " is " + Percent(spec.fraction) +
                         " of its device, which was not profiled (" + known + " were); profile " +
                         Percent(spec.fraction) + ", or plan again without it");
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
    if (lane.cycle + latency > model.slo) {
      return InvalidArgument(Place(at) + ": '" + model.name + "' waits up to a cycle of " +
                             Millis(lane.cycle) + " for a batch of " + Millis(latency) +
                             ", which is more than its SLO of " + Millis(model.slo));
    }
  }
  return {};
}

Status CheckDevices(const Plan& plan, const PlanInput& input) {
  std::vector<double> share(input.devices);
  std::vector<std::map<ModelId, double>> memory(input.devices);
  for (const LanePlan& lane : plan.lanes) {
    const std::uint32_t device = lane.spec.device.value();
    share[device] += lane.spec.fraction;
    for (const PlanEntry& entry : lane.entries) {
      memory[device][entry.model] = input.models[entry.model.value()].memory_mb;
    }
  }
  for (std::size_t d = 0; d < share.size(); ++d) {
    if (share[d] > 1 + kRounding) {
      return InvalidArgument("the lanes of device " + std::to_string(d) + " add up to " +
                             Percent(share[d]) + " of it; plan again");
    }
    double all = 0;
    std::string each;
    for (const auto& [model, mb] : memory[d]) {
      all += mb;
      each += (each.empty() ? "'" : ", '") + input.models[model.value()].name + "' " + Text(mb);
    }
    if (all > input.device_memory_mb) {
      return InvalidArgument("the models of device " + std::to_string(d) + " need " + Text(all) +
                             " MB (" + each + "); it has " + Text(input.device_memory_mb) +
                             "; plan again");
    }
  }
  return {};
}

Status CheckRates(const Plan& plan, const PlanInput& input) {
  std::vector<double> carried(input.models.size());
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      carried[entry.model.value()] += entry.batch / ToSeconds(lane.cycle);
    }
  }
  for (std::size_t m = 0; m < carried.size(); ++m) {
    const PlannedModel& model = input.models[m];
    if (carried[m] >= model.rate_rps * (1 - kRounding)) continue;
    return InvalidArgument("the plan carries too little: '" + model.name + "' lacks " +
                           Text(model.rate_rps - carried[m]) + " of " + Text(model.rate_rps) +
                           " requests/s");
  }
  return {};
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

Status Validate(const Plan& plan, const PlanInput& input) {
  if (auto valid = Validate(input); !valid) return valid;
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    if (auto fits = CheckLane(plan.lanes[i], i, input); !fits) return fits;
  }
  if (auto fit = CheckDevices(plan, input); !fit) return fit;
  return CheckRates(plan, input);
}

std::string WhatEachLacks(const PlanInput& input, const std::function<bool(double part)>& fits) {
  double low = 0;
  double high = 1;
  while (high - low > 0.01) {
    const double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  std::string text = Text(std::floor(100 * low)) + " % of the load would fit";
  const char* before = "; ";
  for (const PlannedModel& model : input.models) {
    if (model.rate_rps <= 0) continue;
    text += before + ("'" + model.name + "' lacks ") + Text((1 - low) * model.rate_rps) + " of " +
            Text(model.rate_rps);
    before = ", ";
  }
  return text + " requests/s";
}

}  // namespace tactus
