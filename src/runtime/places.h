// The lanes of a split runtime: places that become lanes of some share of the device, get the
// models that belong there, and are emptied again, while others serve.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "core/plan.h"
#include "runtime/served_model.h"

namespace tactus {

class Places {
 public:
  Places(std::size_t count, std::function<void(const std::string&)> log);

  std::size_t count() const { return places_.size(); }

  // The place is a lane of `spec` from now on, and the models of these names belong there; those
  // that are there already stay, as all do where one cannot be loaded, which is the error. Blocks
  // while engines load and run a first batch. Thread-safe, as all here.
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
  struct Place {
    std::optional<LaneSpec> spec;  // none: it is empty
    std::vector<std::string> models;
  };
  // `mutex_` is held.
  Status Load(LaneId lane, ServedModel& model) const;

  const std::function<void(const std::string&)> log_;
  mutable std::mutex mutex_;   // held while engines load
  std::vector<Place> places_;  // by LaneId
  std::vector<std::shared_ptr<ServedModel>> models_;
};

}  // namespace tactus
