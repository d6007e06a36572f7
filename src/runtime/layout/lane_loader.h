// Loads models on the lanes of a split device and unloads them, while other lanes serve. A lane
// that no plan uses is empty.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "core/plan.h"
#include "runtime/models/served_model.h"

namespace tactus {

class LaneLoader {
 public:
  LaneLoader(std::size_t count, std::function<void(const std::string&)> log);

  std::size_t count() const { return lanes_.size(); }

  // The lane has this `spec` from now on, and serves the models of these names. Models that it has
  // already stay; where one cannot be loaded all stay, and that is the error. Blocks while engines
  // load and run a first batch. Thread-safe, as all here.
  Status Furnish(LaneId lane, const LaneSpec& spec, std::vector<std::string> models);
  // Only the models of these names belong there from now on; none of the others runs there.
  void Keep(LaneId lane, std::vector<std::string> models);
  // Nothing runs there any more.
  void Clear(LaneId lane);

  // Loads the model wherever it belongs, now and later, until it is removed. Where it cannot be
  // loaded now it is missing, and the log is told.
  void Add(const std::shared_ptr<ServedModel>& model);
  void Remove(const ServedModel& model);

  // Whether the model is loaded there.
  bool Has(LaneId lane, const ServedModel& model) const;

 private:
  struct LoadedLane {
    std::optional<LaneSpec> spec;  // none: it is empty
    std::vector<std::string> models;
  };
  // `mutex_` is held.
  Status Load(LaneId lane, ServedModel& model) const;

  const std::function<void(const std::string&)> log_;
  mutable std::mutex mutex_;       // held while engines load
  std::vector<LoadedLane> lanes_;  // by LaneId
  std::vector<std::shared_ptr<ServedModel>> models_;
};

}  // namespace tactus
