#include "planners/octopinf/streams.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"

namespace tactus {
namespace {

constexpr double kSlack = 1e-9;

}  // namespace

StreamTable::StreamTable(const FleetInput& input) : input_(input) {
  for (const FleetDevice& device : input.devices) {
    Accelerator one;
    one.streams.resize(static_cast<std::size_t>(device.streams));
    devices_.emplace_back(static_cast<std::size_t>(device.accelerators), one);
  }
}

StreamTable::Need StreamTable::NeedOf(const FleetInstance& each) const {
  const FleetDevice& device = input_.devices[each.device.value()];
  const ModelId model = input_.pipelines[each.pipeline.value()].stages[each.stage.value()].model;
  const FleetCost& cost = *input_.CostOf(model, device.kind);
  return {device, model, cost, *std::ranges::find(cost.batches, each.batch, &FleetBatch::batch)};
}

bool StreamTable::HasRoom(const Need& need, const Accelerator& accelerator, int stream,
                          NoWindow& why) const {
  double memory = accelerator.weights_mb;
  if (!accelerator.models.contains(need.model)) memory += need.cost.weights_mb;
  double use = 0;
  for (std::size_t s = 0; s < accelerator.streams.size(); ++s) {
    const Stream& other = accelerator.streams[s];
    const bool here = s == static_cast<std::size_t>(stream);
    memory += here ? std::max(other.peak_mb(), need.batch.peak_mb) : other.peak_mb();
    use += here ? std::max(other.use(), need.batch.use) : other.use();
  }
  const bool fits = memory <= need.device.memory_mb * (1 + kSlack);
  const bool runs = use <= need.device.most_use * (1 + kSlack);
  if (!fits) why = NoWindow::kMemory;
  if (!runs) why = NoWindow::kUse;
  return fits && runs;
}

bool StreamTable::Place(FleetInstance& each, Duration earliest, NoWindow& why) {
  const Duration own = input_.pipelines[each.pipeline.value()].slo / 2;
  const Need need = NeedOf(each);
  const Duration length = need.batch.total();
  std::optional<FleetInstance> best;
  Duration least{};
  why = NoWindow::kTime;
  for (const Duration from : {earliest, Duration{}}) {
    auto& accelerators = devices_[each.device.value()];
    for (std::size_t a = 0; a < accelerators.size(); ++a) {
      for (std::size_t s = 0; s < accelerators[a].streams.size(); ++s) {
        const Stream& stream = accelerators[a].streams[s];
        const bool fresh = stream.cycle == Duration{};
        if (!fresh && own < stream.cycle) continue;  // line 18
        const Duration cycle = fresh ? own : stream.cycle;
        const Portion whole{Duration{}, cycle};
        const std::span<const Portion> free = fresh ? std::span(&whole, 1) : std::span(stream.free);
        bool asked = false;
        for (const Portion& portion : free) {
          const Duration begin = std::max(portion.begin, from);
          const Duration left = portion.end - portion.begin - length;
          if (begin + length > portion.end || (best && left >= least)) continue;
          // The same for all of the stream's portions.
          if (!asked && !HasRoom(need, accelerators[a], static_cast<int>(s), why)) break;
          asked = true;
          best = each;
          best->accelerator = static_cast<int>(a);
          best->stream = static_cast<int>(s);
          best->offset = begin;
          best->length = length;
          best->cycle = cycle;
          least = left;
        }
      }
    }
    if (best) break;
  }
  if (!best) return false;
  each = *best;
  Take(each, need);
  return true;
}

bool StreamTable::PlaceOpen(FleetInstance& each) {
  auto& accelerators = devices_[each.device.value()];
  const Need need = NeedOf(each);
  NoWindow why{};
  for (std::size_t a = 0; a < accelerators.size(); ++a) {
    for (std::size_t s = 0; s < accelerators[a].streams.size(); ++s) {
      if (!HasRoom(need, accelerators[a], static_cast<int>(s), why)) continue;
      each.accelerator = static_cast<int>(a);
      each.stream = static_cast<int>(s);
      each.offset = each.length = Duration{};
      const Stream& stream = accelerators[a].streams[s];
      each.cycle = stream.cycle > Duration{} ? stream.cycle
                                             : input_.pipelines[each.pipeline.value()].slo / 2;
      Take(each, need);
      return true;
    }
  }
  return false;
}

bool StreamTable::Restore(const FleetInstance& each) {
  auto& accelerators = devices_[each.device.value()];
  if (static_cast<std::size_t>(each.accelerator) >= accelerators.size()) return false;
  Accelerator& accelerator = accelerators[static_cast<std::size_t>(each.accelerator)];
  if (static_cast<std::size_t>(each.stream) >= accelerator.streams.size()) return false;
  NoWindow why{};
  const Need need = NeedOf(each);
  if (!HasRoom(need, accelerator, each.stream, why)) return false;
  const Stream& stream = accelerator.streams[static_cast<std::size_t>(each.stream)];
  if (each.length > Duration{} && stream.cycle > Duration{}) {
    if (stream.cycle != each.cycle) return false;
    const bool free = std::ranges::any_of(stream.free, [&](const Portion& portion) {
      return portion.begin <= each.offset && each.offset + each.length <= portion.end;
    });
    if (!free) return false;
  }
  Take(each, need);
  return true;
}

void StreamTable::Take(const FleetInstance& each, const Need& need) {
  Accelerator& accelerator =
      devices_[each.device.value()][static_cast<std::size_t>(each.accelerator)];
  Stream& stream = accelerator.streams[static_cast<std::size_t>(each.stream)];
  if (accelerator.models[need.model]++ == 0) accelerator.weights_mb += need.cost.weights_mb;
  const auto put = [](std::vector<double>& all, double each) {
    all.insert(std::ranges::upper_bound(all, each), each);
  };
  put(stream.peaks, need.batch.peak_mb);
  put(stream.uses, need.batch.use);
  if (each.length == Duration{}) return;
  if (stream.cycle == Duration{}) {
    stream.cycle = each.cycle;
    stream.free = {{Duration{}, each.cycle}};
  }
  Cut(stream, each.offset, each.offset + each.length);
}

void StreamTable::Cut(Stream& stream, Duration begin, Duration end) {
  const auto at = std::ranges::find_if(stream.free, [&](const Portion& portion) {
    return portion.begin <= begin && end <= portion.end;
  });
  CHECK(at != stream.free.end(), "a window is cut out of a portion that is free");
  const Portion before{at->begin, begin};
  const Portion after{end, at->end};
  const auto rest = stream.free.erase(at);
  const auto next = after.end > after.begin ? stream.free.insert(rest, after) : rest;
  if (before.end > before.begin) stream.free.insert(next, before);
}

void StreamTable::Reclaim(const FleetInstance& each) {
  Accelerator& accelerator =
      devices_[each.device.value()][static_cast<std::size_t>(each.accelerator)];
  Stream& stream = accelerator.streams[static_cast<std::size_t>(each.stream)];
  const Need need = NeedOf(each);
  if (--accelerator.models[need.model] == 0) {
    accelerator.models.erase(need.model);
    accelerator.weights_mb -= need.cost.weights_mb;
  }
  const auto take = [](std::vector<double>& all, double each) {
    all.erase(std::ranges::lower_bound(all, each));
  };
  take(stream.peaks, need.batch.peak_mb);
  take(stream.uses, need.batch.use);
  if (each.length == Duration{}) return;
  Portion back{each.offset, each.offset + each.length};
  std::vector<Portion> merged;
  for (const Portion& portion : stream.free) {
    if (portion.end == back.begin) {
      back.begin = portion.begin;
    } else if (portion.begin == back.end) {
      back.end = portion.end;
    } else {
      merged.push_back(portion);
    }
  }
  merged.insert(std::ranges::upper_bound(merged, back.begin, {}, &Portion::begin), back);
  stream.free = std::move(merged);
  // Nothing has a window any more: the next one may bring another cycle.
  if (stream.free.size() == 1 &&
      stream.free.front().end - stream.free.front().begin == stream.cycle) {
    stream.cycle = Duration{};
    stream.free.clear();
  }
}

}  // namespace tactus
