#include "planners/nexus/squishy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/number_text.h"

namespace tactus {
namespace {

struct Share {  // of a lane
  std::size_t model = 0;
  double rate = 0;
  int batch = 1;
};
struct Bin {
  Duration cycle{};
  Duration busy{};  // of a cycle
  std::vector<Share> shares;
  double Occupancy() const { return ToSeconds(busy) / ToSeconds(cycle); }
};

class Packing {
 public:
  // `input`: of the sessions, where a lane has no more models than a device has memory for.
  Packing(std::span<const NexusSession> sessions, double factor, const PlanInput* input = nullptr)
      : sessions_(sessions), factor_(factor), input_(input) {}

  // Nothing when more than `lanes` are needed.
  std::optional<std::vector<Bin>> Pack(int lanes) {
    std::vector<Bin> rest;
    for (std::size_t m = 0; m < sessions_.size(); ++m) {
      const double rate = sessions_[m].rate_rps * factor_;
      if (rate <= 0 || sessions_[m].latency.empty()) continue;
      const int batch = Saturated(m);
      const Duration cycle = Latency(m, batch);
      const double throughput = batch / ToSeconds(cycle);
      const double whole = std::floor(rate / throughput);
      if (static_cast<double>(bins_.size()) + whole > lanes) return std::nullopt;
      for (int i = 0; i < static_cast<int>(whole); ++i) {
        bins_.push_back({cycle, cycle, {{m, throughput, batch}}});
      }
      const double left = rate - whole * throughput;
      if (left > 1e-9 * throughput) rest.push_back(Residual(m, left));
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [](const Bin& a, const Bin& b) { return a.Occupancy() > b.Occupancy(); });
    const std::size_t saturated = bins_.size();
    for (const Bin& bin : rest) Place(bin, saturated);
    if (bins_.size() > static_cast<std::size_t>(lanes)) return std::nullopt;
    return bins_;
  }

 private:
  Duration Latency(std::size_t m, int batch) const { return sessions_[m].latency[batch - 1]; }
  int Most(std::size_t m) const { return static_cast<int>(sessions_[m].latency.size()); }

  int Saturated(std::size_t m) const {
    int batch = Most(m);
    while (batch > 1 && 2 * Latency(m, batch) > sessions_[m].slo) --batch;
    return batch;
  }

  Bin Residual(std::size_t m, double rate) const {
    int batch = Most(m);
    while (batch > 1 && Latency(m, batch) + FromSeconds(batch / rate) > sessions_[m].slo) --batch;
    // So near a whole lane that it would not keep up in batches this small: it gets the lane.
    if (Latency(m, batch) > FromSeconds(batch / rate)) {
      const int full = Saturated(m);
      return {Latency(m, full), Latency(m, full), {{m, rate, full}}};
    }
    // A single request does not wait for a second one: its cycle is what its SLO leaves.
    Duration cycle = FromSeconds(batch / rate);
    if (batch == 1) {
      cycle = std::max(Latency(m, 1), std::min(cycle, sessions_[m].slo - Latency(m, 1)));
    }
    return {cycle, Latency(m, batch), {{m, rate, batch}}};
  }

  std::optional<Bin> Merge(const Bin& a, const Bin& b) const {
    Bin merged{std::min(a.cycle, b.cycle), Duration{}, a.shares};
    merged.shares.insert(merged.shares.end(), b.shares.begin(), b.shares.end());
    if (!OneDeviceHolds(merged)) return std::nullopt;
    for (Share& share : merged.shares) {
      share.batch =
          std::max(1, static_cast<int>(std::ceil(share.rate * ToSeconds(merged.cycle) - 1e-9)));
      if (share.batch > Most(share.model)) return std::nullopt;
      const Duration latency = Latency(share.model, share.batch);
      if (merged.cycle + latency > sessions_[share.model].slo) return std::nullopt;
      merged.busy += latency;
    }
    if (merged.busy > merged.cycle) return std::nullopt;
    return merged;
  }

  // Each model has at most one bin that is not full, so it is in `bin` once.
  bool OneDeviceHolds(const Bin& bin) const {
    if (input_ == nullptr) return true;
    double memory_mb = 0;
    for (const Share& share : bin.shares) memory_mb += input_->models[share.model].memory_mb;
    return input_->device.HasMemoryFor(memory_mb);
  }

  void Place(const Bin& bin, std::size_t first) {
    std::optional<Bin> best;
    std::size_t at = 0;
    for (std::size_t i = first; i < bins_.size(); ++i) {
      auto merged = Merge(bins_[i], bin);
      if (!merged || (best && merged->Occupancy() <= best->Occupancy())) continue;
      best = std::move(merged);
      at = i;
    }
    best ? void(bins_[at] = std::move(*best)) : bins_.push_back(bin);
  }

  const std::span<const NexusSession> sessions_;
  const double factor_;
  const PlanInput* input_;
  std::vector<Bin> bins_;
};

// A device for each bin: the first that has a part and memory for it. Nothing where one finds none.
std::optional<std::vector<int>> Devices(std::span<const Bin> bins, const PlanInput& input,
                                        int parts) {
  struct Device {
    int lanes = 0;
    double memory_mb = 0;
    std::vector<std::size_t> models;
  };
  std::vector<Device> devices(input.devices);
  std::vector<int> chosen;
  for (const Bin& bin : bins) {
    const auto added_mb = [&](const Device& device) {
      double added = 0;
      for (const Share& share : bin.shares) {
        const bool there = std::ranges::find(device.models, share.model) != device.models.end();
        if (!there) added += input.models[share.model].memory_mb;
      }
      return added;
    };
    const auto found = std::ranges::find_if(devices, [&](const Device& device) {
      return device.lanes < parts && input.device.HasMemoryFor(device.memory_mb + added_mb(device));
    });
    if (found == devices.end()) return std::nullopt;
    ++found->lanes;
    found->memory_mb += added_mb(*found);
    for (const Share& share : bin.shares) found->models.push_back(share.model);
    chosen.push_back(static_cast<int>(found - devices.begin()));
  }
  return chosen;
}

// `sessions` need more than `lanes`: or would not, if devices had more memory?
std::unexpected<Error> NeedsMore(std::span<const NexusSession> sessions, const PlanInput& input,
                                 int lanes) {
  std::string why =
      "not schedulable: squishy bin packing needs more than " + std::to_string(lanes) + " lanes";
  if (!std::isfinite(input.device.memory_mb) || !Packing(sessions, 1).Pack(lanes)) {
    return Fail(ErrorCode::kResourceExhausted, std::move(why));
  }
  std::vector<ModelId> models;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    if (input.models[m].rate_rps > 0) models.push_back(ModelId{m});
  }
  return Fail(ErrorCode::kResourceExhausted,
              why + " where a device has memory for " +
                  std::to_string(std::llround(input.device.memory_mb)) + " of the models' " +
                  MemoryText(input, models) + "; more memory or devices may help");
}

// Nothing where each model that has load can wait for a batch of its kind in such a lane.
std::optional<std::string> WhyNoPlace(std::span<const NexusSession> sessions,
                                      const PlanInput& input, LaneClass lane) {
  for (std::size_t m = 0; m < sessions.size(); ++m) {
    const Duration quickest = *std::ranges::min_element(sessions[m].latency);
    if (sessions[m].rate_rps <= 0 || 2 * quickest <= sessions[m].slo) continue;
    return "model '" + input.models[m].name + "': no batch meets half of its SLO of " +
           NumberText(ToMillis(sessions[m].slo)) + " ms on " + PercentText(input.share(lane)) +
           " of a device, which is what this planner splits them into: the quickest takes " +
           NumberText(ToMillis(quickest)) + " ms; a longer SLO or another planner helps";
  }
  return std::nullopt;
}

}  // namespace

Plan PlanNexus(std::span<const NexusSession> sessions, int lanes, std::uint64_t epoch) {
  std::vector<Bin> bins;
  double low = std::log(1e-4);
  double high = std::log(1e3);
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    auto packed = Packing(sessions, std::exp(middle)).Pack(lanes);
    (packed ? low : high) = middle;
    if (packed) bins = std::move(*packed);
  }
  Plan plan{.epoch = epoch, .lanes = std::vector<LanePlan>(lanes)};
  for (std::size_t i = 0; i < bins.size(); ++i) {
    plan.lanes[i].cycle = bins[i].cycle;
    for (const Share& share : bins[i].shares) {
      plan.lanes[i].entries.push_back(
          {.model = ModelId{static_cast<ModelId::rep>(share.model)}, .batch = share.batch});
    }
  }
  return plan;
}

Expected<Plan> PlanSquishy(const PlanInput& input, LaneClass lane) {
  if (auto valid = CheckPlannable(input); !valid) return std::unexpected(valid.error());
  std::vector<NexusSession> sessions;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    const PlannedModel& model = input.models[m];
    NexusSession& session = sessions.emplace_back();
    session = {.rate_rps = model.rate_rps, .slo = model.slo};
    for (int b = 1; b <= input.profile->max_batch(ModelId{m}); ++b) {
      session.latency.push_back(input.Latency(ModelId{m}, b, lane));
    }
  }
  if (auto why = WhyNoPlace(sessions, input, lane)) {
    return Fail(ErrorCode::kResourceExhausted, *std::move(why));
  }
  const int parts = static_cast<int>(std::floor(1 / input.share(lane) + 1e-9));
  const int lanes = parts * input.devices;
  const auto packed = Packing(sessions, 1, &input).Pack(lanes);
  const auto devices = packed ? Devices(*packed, input, parts) : std::nullopt;
  if (!devices) return NeedsMore(sessions, input, lanes);
  Plan plan;
  for (std::size_t i = 0; i < packed->size(); ++i) {
    const Bin& bin = (*packed)[i];
    LanePlan& made = plan.lanes.emplace_back();
    made.spec = {.device = DeviceId{static_cast<DeviceId::rep>((*devices)[i])},
                 .lane_class = lane,
                 .fraction = input.share(lane)};
    made.cycle = bin.cycle;
    Duration offset{};
    for (const Share& share : bin.shares) {
      const Duration length = sessions[share.model].latency[share.batch - 1];
      made.entries.push_back(
          {ModelId{static_cast<ModelId::rep>(share.model)}, share.batch, offset, length});
      offset += length;
    }
  }
  // A model whose smallest batch takes longer than a larger one is packed all the same.
  PlanInput even = input;  // Nexus plans for requests that come evenly
  for (PlannedModel& model : even.models) model.expected_rps = 0;
  if (auto valid = Validate(plan, even); !valid) {
    return Fail(ErrorCode::kResourceExhausted, "not schedulable: " + valid.error().message);
  }
  return plan;
}

}  // namespace tactus
