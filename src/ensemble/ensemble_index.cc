// What EnsembleService says of its ensembles, and how they come and go as clients ask.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/memory_guard.h"
#include "ensemble/ensemble_service.h"

namespace tactus {

bool EnsembleService::Ready() const {
  if (!steps_.Ready()) return false;
  if (!options_.strict_readiness) return true;
  std::vector<std::string> names;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      if (entry.wanted) names.push_back(name);
    }
  }
  return std::ranges::all_of(
      names, [this](const std::string& name) { return ModelReady(name, -1).has_value(); });
}

std::vector<ModelState> EnsembleService::Index() const {
  std::vector<ModelState> index = steps_.Index();
  std::vector<std::pair<std::string, std::int64_t>> ensembles;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      for (const auto& [version, declared] : entry.versions) ensembles.emplace_back(name, version);
      if (entry.versions.empty()) index.push_back({name, 1, "UNAVAILABLE", entry.reason});
    }
  }
  for (const auto& [name, version] : ensembles) {
    const auto served = Served(name, version);
    const Status ready = served ? StepsReady(**served) : std::unexpected(served.error());
    index.push_back(
        {name, version, ready ? "READY" : "UNAVAILABLE", ready ? "" : ready.error().message});
  }
  for (const std::string& name :
       options_.is_explicit ? folders_.list() : std::vector<std::string>()) {
    if (!IsEnsemble(name)) index.push_back({name, 1, "UNAVAILABLE", "not loaded"});
  }
  std::ranges::stable_sort(index, {}, &ModelState::name);
  return index;
}

Status EnsembleService::Load(const std::string& model, const std::string& config) {
  return WithMemory(fmt::format("model '{}'", model), [&] { return LoadHere(model, config); });
}

Status EnsembleService::LoadHere(const std::string& model, const std::string& config) {
  if (!options_.is_explicit || !folders_.holds(model, config)) {
    Status loaded = steps_.Load(model, config);
    if (!loaded) return loaded;
    const std::unique_lock lock(mutex_);
    entries_.erase(model);  // its folder declares no ensemble any more
    return loaded;
  }
  const std::lock_guard one_at_a_time(changing_);
  if (Status read = Read(model, config); !read) return read;
  return Bring(model);
}

Status EnsembleService::Bring(const std::string& model) {
  std::set<std::string> needed;
  if (options_.is_explicit) {
    const std::shared_lock lock(mutex_);
    for (const auto& [number, version] : entries_.find(model)->second.versions) {
      for (const StageDeclaration& step : version.declared.pipeline.stages) {
        if (!around_->steps.Find(step.model, step.version) && !entries_.contains(step.model)) {
          needed.insert(step.model);
        }
      }
    }
  }
  for (const std::string& name : needed) {
    if (Status loaded = steps_.Load(name, ""); !loaded) {
      return Fail(loaded.error().code, fmt::format("ensemble '{}' needs model '{}': {}", model,
                                                   name, loaded.error().message));
    }
  }
  const auto found = Find(model, -1);
  if (found) return {};
  // Nobody has asked for it: this is the answer to a load, or a line of the log.
  std::string_view why = found.error().message;
  constexpr std::string_view kToCaller = "Request for unknown model: ";
  if (why.starts_with(kToCaller)) why.remove_prefix(kToCaller.size());
  return Fail(ErrorCode::kInvalidArgument, std::string(why));
}

Status EnsembleService::Unload(const std::string& model) {
  if (!options_.is_explicit || !IsEnsemble(model)) return steps_.Unload(model);
  const std::lock_guard one_at_a_time(changing_);
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_.find(model)->second;
  // Calls under way go on: they hold what they need.
  entry.versions.clear();
  entry.wanted = false;
  entry.reason = "unloaded";
  return {};
}

Status EnsembleService::UnloadWithSteps(const std::string& model) {
  std::set<std::string> steps;
  const auto stages = [](const Entry& entry, auto visit) {
    for (const auto& [number, version] : entry.versions) {
      for (const StageDeclaration& step : version.declared.pipeline.stages) visit(step.model);
    }
  };
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = entries_.find(model); found != entries_.end()) {
      stages(found->second, [&](const std::string& step) { steps.insert(step); });
    }
    for (const auto& [name, entry] : entries_) {
      if (name != model) stages(entry, [&](const std::string& step) { steps.erase(step); });
    }
  }
  if (Status unloaded = Unload(model); !unloaded) return unloaded;
  for (const std::string& step : steps) {
    // One that is not loaded is what was asked for.
    Status unloaded = UnloadWithSteps(step);
    if (!unloaded && unloaded.error().code != ErrorCode::kNotFound) return unloaded;
  }
  return {};
}

Expected<std::vector<ModelStatistics>> EnsembleService::Statistics(std::string_view model,
                                                                   std::int64_t version) const {
  std::vector<ModelStatistics> all;
  if (model.empty() || !IsEnsemble(model)) {
    auto others = steps_.Statistics(model, version);
    if (!others || !model.empty()) return others;
    all = *std::move(others);
  }
  const std::shared_lock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (!model.empty() && name != model) continue;
    for (const auto& [number, of_version] : entry.versions) {
      if (version >= 0 && number != version) continue;
      ModelStatistics statistics = of_version.counters->Read();
      statistics.name = name;
      statistics.version = number;
      all.push_back(std::move(statistics));
    }
  }
  if (all.empty() && version >= 0) {
    return NotFound(fmt::format("model '{}' has no version {} that serves", model, version));
  }
  return all;
}

std::size_t EnsembleService::unfinished() const {
  std::size_t count = around_->calls.load() + around_->timer.waiting();
  const std::shared_lock lock(mutex_);
  for (const auto& [spec, weak] : bound_) {
    if (const auto served = weak.lock()) count += served->underway() + served->runs();
  }
  return count;
}

}  // namespace tactus
