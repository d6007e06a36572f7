#include "planners/nexus/squishy.h"

#include <algorithm>
#include <cmath>
#include <optional>

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
  Packing(std::span<const NexusSession> sessions, double factor)
      : sessions_(sessions), factor_(factor) {}

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
  std::vector<Bin> bins_;
};

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
  if (auto valid = Validate(input); !valid) return std::unexpected(valid.error());
  std::vector<NexusSession> sessions;
  for (ModelId::rep m = 0; m < input.models.size(); ++m) {
    const PlannedModel& model = input.models[m];
    NexusSession& session = sessions.emplace_back();
    session = {.rate_rps = model.rate_rps, .slo = model.slo};
    for (int b = 1; b <= input.profile->max_batch(ModelId{m}); ++b) {
      session.latency.push_back(input.Latency(ModelId{m}, b, lane));
    }
  }
  const int parts = static_cast<int>(std::floor(1 / input.share(lane) + 1e-9));
  const auto packed = Packing(sessions, 1).Pack(parts * input.devices);
  if (!packed) {
    const auto fits = [&](double part) {
      return Packing(sessions, part).Pack(parts * input.devices).has_value();
    };
    return Fail(ErrorCode::kResourceExhausted,
                "not schedulable: squishy bin packing needs more than " +
                    std::to_string(parts * input.devices) + " lanes; " +
                    WhatEachLacks(input, fits));
  }
  Plan plan;
  for (std::size_t i = 0; i < packed->size(); ++i) {
    const Bin& bin = (*packed)[i];
    LanePlan& made = plan.lanes.emplace_back();
    made.spec = {.device = DeviceId{static_cast<DeviceId::rep>(i / parts)},
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
  // A model whose smallest batch cannot wait for another is packed all the same.
  if (auto valid = Validate(plan, input); !valid) {
    return Fail(ErrorCode::kResourceExhausted, "not schedulable: " + valid.error().message);
  }
  return plan;
}

}  // namespace tactus
