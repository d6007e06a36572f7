// The questions that ModelRepository answers without changing anything.
#include <fmt/format.h>

#include "runtime/models/model_repository.h"
#include "service/same_tensors.h"

namespace tactus {
namespace {

std::string WhyLeftOut(const ServedModel& model) {
  const auto why = model.left_out_why.load();
  return fmt::format(
      "the engine's process ended, and no lane has the model again yet; it is tried "
      "again{}{}",
      why == nullptr ? "" : ": ", why == nullptr ? "" : *why);
}

// Triton's words, here and below: clients look for them.
std::unexpected<Error> UnknownModel(std::string_view model) {
  return NotFound(fmt::format("Request for unknown model: '{}' is not found", model));
}

std::unexpected<Error> NotReady(std::string_view model, std::int64_t version,
                                std::string_view why) {
  const std::string what = version < 0 ? std::string("has no available versions")
                                       : fmt::format("version {} is not at ready state", version);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("Request for unknown model: '{}' {}: {}", model, what, why));
}

}  // namespace

Expected<std::shared_ptr<const ModelSpec>> ModelRepository::Find(std::string_view model,
                                                                 std::int64_t version) const {
  const std::shared_lock lock(mutex_);
  const auto it = entries_.find(model);
  if (it == entries_.end()) return UnknownModel(model);
  const std::map<std::int64_t, Version>& versions = it->second.versions;
  const Version* known = nullptr;
  for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
    if (version >= 0 && v->first != version) continue;
    if (v->second.served != nullptr) {
      const std::shared_ptr<ServedModel>& served = v->second.served;
      return std::shared_ptr<const ModelSpec>(served, &served->spec);
    }
    if (known == nullptr) known = &v->second;
  }
  if (known == nullptr) {
    return NotFound(
        fmt::format("Request for unknown model: '{}' version {} is not found", model, version));
  }
  const bool loading = known->state == State::kLoading;
  return NotReady(model, version,
                  loading                 ? "it is loading"
                  : known->reason.empty() ? "it is being unloaded"
                                          : known->reason);
}

std::shared_ptr<ServedModel> ModelRepository::Acquire(const ModelSpec* spec) const {
  const std::shared_lock lock(mutex_);
  const auto it = serving_.find(spec);
  if (it == serving_.end()) return nullptr;
  it->second->outstanding.fetch_add(1, std::memory_order_relaxed);
  return it->second;
}

std::shared_ptr<ServedModel> ModelRepository::AcquireInstead(const ModelSpec& gone) const {
  const auto found = Find(gone.name, gone.version);
  if (!found) return nullptr;
  const ModelSpec& now = **found;
  // One whose batch has ended takes the same tensors, whole.
  const bool rows = now.max_batch == gone.max_batch || now.batch_origin == BatchOrigin::kDisproved;
  if (!rows || !SameTensors(now.inputs, gone.inputs) || !SameTensors(now.outputs, gone.outputs)) {
    return nullptr;
  }
  return Acquire(found->get());
}

Status ModelRepository::ModelReady(std::string_view model, std::int64_t version) const {
  const auto found = Find(model, version);
  if (!found) return std::unexpected(found.error());
  const std::shared_lock lock(mutex_);
  const auto it = serving_.find(found->get());
  if (it == serving_.end() || !it->second->on_no_lane()) return {};
  return NotReady(model, version, WhyLeftOut(*it->second));
}

bool ModelRepository::Ready() const {
  const std::shared_lock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    for (const auto& [number, version] : entry.versions) {
      if (version.wanted && (version.served == nullptr || LeftOut(version))) return false;
    }
  }
  return true;
}

std::vector<ModelState> ModelRepository::Index() const {
  std::vector<ModelState> index;
  const auto folders = Folders();
  const std::shared_lock lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    for (const auto& [number, version] : entry.versions) {
      const char* state = version.state == State::kReady       ? "READY"
                          : version.state == State::kLoading   ? "LOADING"
                          : version.state == State::kUnloading ? "UNLOADING"
                                                               : "UNAVAILABLE";
      const bool left_out = version.state == State::kReady && LeftOut(version);
      const bool waits = left_out && version.reason.empty();
      index.push_back({name, number, left_out ? "UNAVAILABLE" : state,
                       waits ? WhyLeftOut(*version.served) : version.reason});
    }
  }
  if (!folders) return index;
  for (const std::string& name : *folders) {
    if (!entries_.contains(name)) index.push_back({name, 1, "UNAVAILABLE", "not loaded"});
  }
  return index;
}

Expected<std::vector<ModelStatistics>> ModelRepository::Statistics(std::string_view model,
                                                                   std::int64_t version) const {
  const std::shared_lock lock(mutex_);
  if (!model.empty() && !entries_.contains(model)) return UnknownModel(model);
  std::vector<ModelStatistics> all;
  for (const auto& [name, entry] : entries_) {
    if (!model.empty() && name != model) continue;
    for (const auto& [number, state] : entry.versions) {
      if (state.served == nullptr || (version >= 0 && number != version)) continue;
      ModelStatistics statistics = state.served->counters.Read();
      statistics.name = name;
      statistics.version = number;
      statistics.pending = state.served->outstanding.load(std::memory_order_relaxed);
      statistics.batching_stopped = state.served->spec.batch_origin == BatchOrigin::kDisproved;
      statistics.emulated = state.served->traits.emulated;
      all.push_back(std::move(statistics));
    }
  }
  if (all.empty() && version >= 0) {
    return NotFound(fmt::format("model '{}' has no version {} that serves", model, version));
  }
  return all;
}

}  // namespace tactus
