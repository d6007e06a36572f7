// Two services as one: each model is served by one of the two, and clients see one index. The
// server runs models of host operators so, on lanes and with a dispatcher of their own, beside
// those of the accelerator: a policy must not trade one's time for the other's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "service/inference_service.h"

namespace tactus {

class RoutedService final : public InferenceService {
 public:
  struct Routes {
    // Whether calls of a model go to the second service.
    std::function<bool(const ModelSpec&)> calls;
    // Whether a model, with a configuration that replaces its folder's or an empty one, is loaded
    // by the second.
    std::function<bool(const std::string& model, const std::string& config)> loads;
  };

  // Both outlive this, and serve different models.
  RoutedService(InferenceService& first, InferenceService& second, Routes routes);

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  CallId Infer(InferCall&& call) override;
  void Cancel(CallId call) override;
  bool Live() const override;
  bool Ready() const override;
  std::vector<ModelState> Index() const override;
  // A model that the other service has is unloaded there once it is loaded here.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Status UnloadWithSteps(const std::string& model) override;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override;

 private:
  InferenceService& first_;
  InferenceService& second_;
  const Routes routes_;
};

}  // namespace tactus
