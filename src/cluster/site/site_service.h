// A site as its clients see it: the models of a front end's runtime, ready while calls reach
// workers. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "service/forwarding_service.h"

namespace tactus {

class SiteService final : public ForwardingService {
 public:
  // `models` runs the calls, and outlives this. `reachable`: a scheduler leads that has a worker.
  SiteService(InferenceService& models, std::function<bool()> reachable)
      : ForwardingService(models), reachable_(std::move(reachable)) {}

  bool Ready() const override { return next().Ready() && reachable_(); }
  // The workers load and unload: what were unloaded here alone could not be loaded again.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Status UnloadWithSteps(const std::string& model) override { return Unload(model); }

 private:
  const std::function<bool()> reachable_;
};

}  // namespace tactus
