// What deserves a warning about a profile's latencies and resource figures.
#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "workload/profile_file.h"

namespace tactus {
namespace {

// Of a model's latencies, how many are odd in one way, and the oddest.
struct OddCells {
  int count = 0;
  double worst = 0;
  std::string where;

  void Add(double oddity, const std::string& text) {
    ++count;
    if (oddity <= worst) return;
    worst = oddity;
    where = text;
  }
};

// Whether `ms` is less than `before`, by more than a measurement tells apart.
bool Falls(double before_ms, double ms) {
  constexpr double kTolerance = 0.98;
  constexpr double kLeastMs = 0.005;
  return ms < kTolerance * before_ms && before_ms - ms > kLeastMs;
}

OddCells FallingCells(const ProfiledModel& model) {
  OddCells falling;
  for (std::size_t e = 0; e < model.exits.size(); ++e) {
    const std::vector<ProfileCell>& cells = model.exits[e].cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double ms = cells[i].p50_ms;
      const auto fell = [&](double before_ms, const std::string& before) {
        if (!Falls(before_ms, ms)) return false;
        falling.Add(before_ms / std::max(ms, 1e-9),
                    fmt::format("batch {} of exit {} takes {:.3f} ms, less than {} ({:.3f} ms)",
                                i + 1, model.exits[e].name, ms, before, before_ms));
        return true;
      };
      if (i > 0 && fell(cells[i - 1].p50_ms, fmt::format("batch {}", i))) continue;
      if (e == 0 || i >= model.exits[e - 1].cells.size()) continue;
      fell(model.exits[e - 1].cells[i].p50_ms, "the exit before it");
    }
  }
  return falling;
}

OddCells NoisyCells(const ProfiledModel& model) {
  constexpr double kNoisy = 0.25;    // standard deviation over mean
  constexpr double kLeastMs = 0.02;  // of a few microseconds, any interrupt is a multiple
  OddCells noisy;
  for (const ProfiledExit& exit : model.exits) {
    for (std::size_t i = 0; i < exit.cells.size(); ++i) {
      const double cv = exit.cells[i].cv;
      if (cv <= kNoisy || cv * exit.cells[i].p50_ms < kLeastMs) continue;
      noisy.Add(cv,
                fmt::format("batch {} of exit {} varies by {:.0f} %", i + 1, exit.name, 100 * cv));
    }
  }
  return noisy;
}

bool UsesAnything(const ProfiledModel& model) {
  return std::ranges::any_of(model.exits, [](const ProfiledExit& exit) {
    return std::ranges::any_of(exit.cells,
                               [](const ProfileCell& cell) { return Peak(cell.throughput) > 0; });
  });
}

}  // namespace

// One line for a model: on a busy machine every cell would have one.
std::optional<std::string> Warning(const ProfiledModel& model) {
  const OddCells falling = FallingCells(model);
  const OddCells noisy = NoisyCells(model);
  if (falling.count + noisy.count == 0) return std::nullopt;
  std::size_t cells = 0;
  for (const ProfiledExit& exit : model.exits) cells += exit.cells.size();
  std::string text = model.name + ": ";
  if (falling.count > 0) {
    text += fmt::format("{} of {} latencies fall as batches grow or exits deepen: {}",
                        falling.count, cells, falling.where);
  }
  if (noisy.count > 0) {
    text += fmt::format(
        "{}{} of {} were measured unsteadily (spread: standard deviation over mean): {}",
        falling.count > 0 ? "; " : "", noisy.count, cells, noisy.where);
  }
  return text + "; measure again while nothing else runs, or with more --repetitions and --budget";
}

std::vector<std::string> Warnings(const ProfileFile& profile) {
  std::vector<std::string> warnings;
  for (const ProfiledModel& model : profile.models) {
    if (auto warning = Warning(model)) warnings.push_back(*std::move(warning));
  }
  return warnings;
}

std::optional<std::string> UseWarning(const std::string& model, const ProfiledModel* profiled) {
  if (profiled != nullptr && !profiled->resources_source.empty()) {
    if (UsesAnything(*profiled)) return std::nullopt;
    return fmt::format(
        "model '{}' uses no resources according to its profile: batches that share a lane with it "
        "are treated as if they were alone",
        model);
  }
  const bool unsourced = profiled != nullptr && profiled->unsourced_resources;
  return fmt::format(
      "model '{}' has {} in its profile; assumed to use half of every resource and no transfer "
      "while it shares a lane",
      model,
      unsourced ? "resource figures but no `resources_source` that says where they come from, and "
                  "without it they do not count,"
                : "no resource figures");
}

}  // namespace tactus
