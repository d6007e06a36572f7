// Load and faults for a site in virtual time, by its seed.
#pragma once

#include "base/rng.h"
#include "site/site_world_test.h"

namespace tactus::site_test {

// Poisson arrivals at every front end, of all models, until `end`; SLOs between both, in ms.
inline void Load(SiteWorld& world, double rate_rps, TimePoint end, std::uint64_t least_slo = 50,
                 std::uint64_t most_slo = 50) {
  const auto next = [&world, rate_rps, end, least_slo, most_slo](auto&& self) -> void {
    const TimePoint at = world.clock().now() + FromSeconds(world.random().Exponential(rate_rps));
    if (at > end) return;
    world.clock().At(at, [&world, least_slo, most_slo, self] {
      const auto f = static_cast<std::uint32_t>(world.random().Below(world.options().front_ends));
      const ModelId model{static_cast<ModelId::rep>(world.random().Below(3))};
      std::uint64_t slo = least_slo;
      if (most_slo > least_slo) slo += world.random().Below(most_slo - least_slo + 1);
      world.Arrive(f, model, Millis(static_cast<std::int64_t>(slo)));
      self(self);
    });
  };
  next(next);
}

inline void Harm(SiteWorld& world, std::uint64_t kind, std::uint32_t which) {
  const WorldOptions& o = world.options();
  const std::uint32_t scheduler = which % o.schedulers;
  const std::uint32_t front_end = which % o.front_ends;
  const std::uint32_t worker = which % o.workers;
  switch (kind) {
    case 0:
      return world.KillScheduler(scheduler);
    case 1:
      return world.StartScheduler(scheduler);
    case 2:
      return world.StallScheduler(scheduler, Millis(10 * which));
    case 3:
      return world.KillWorker(worker);
    case 4:
      return world.StartWorker(worker);
    case 5:
      return world.Cut(front_end, worker);
    case 6:
      return world.CutFromScheduler(true, front_end, (which + 1) % o.schedulers);
    case 7:
      return world.CutFromScheduler(false, worker, (which + 1) % o.schedulers);
    default:
      return world.CancelOne(front_end);
  }
}

// Faults of every kind at random times.
inline void Trouble(SiteWorld& world, TimePoint from, TimePoint until) {
  Rng faults = Rng::Stream(world.options().seed, "faults");
  for (TimePoint at = from; at < until; at += Micros(5000 + 1000 * faults.Below(60))) {
    const std::uint64_t kind = faults.Below(9);
    const auto which = static_cast<std::uint32_t>(faults.Below(12));
    world.clock().At(at, [&world, kind, which] { Harm(world, kind, which); });
  }
}

// All that died is started again.
inline void Mend(SiteWorld& world) {
  for (std::uint32_t i = 0; i < world.options().schedulers; ++i) world.StartScheduler(i);
  for (std::uint32_t i = 0; i < world.options().workers; ++i) world.StartWorker(i);
}

}  // namespace tactus::site_test
