// A site as its clients see it: the models of a front end's runtime, ready while calls reach
// workers. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class SiteService final : public InferenceService {
 public:
  // `models` runs the calls, and outlives this. `reachable`: a scheduler leads that has a worker.
  SiteService(InferenceService& models, std::function<bool()> reachable)
      : models_(models), reachable_(std::move(reachable)) {}

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    return models_.Find(model, version);
  }
  CallId Infer(InferCall&& call) override { return models_.Infer(std::move(call)); }
  void Cancel(CallId call) override { models_.Cancel(call); }
  bool Live() const override { return models_.Live(); }
  bool Ready() const override { return models_.Ready() && reachable_(); }
  std::vector<ModelState> Index() const override { return models_.Index(); }
  // The workers load and unload: what were unloaded here alone could not be loaded again.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    return models_.Statistics(model, version);
  }

 private:
  InferenceService& models_;
  const std::function<bool()> reachable_;
};

}  // namespace tactus
