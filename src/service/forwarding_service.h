// A service in front of another one: every call goes on to the next. Whoever derives from it shows
// only what it changes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class ForwardingService : public InferenceService {
 public:
  // `next` outlives this.
  explicit ForwardingService(InferenceService& next) : next_(&next) {}

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    return next().Find(model, version);
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    return next().ModelReady(model, version);
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    return next().Enter(described);
  }
  CallId Infer(InferCall&& call) override { return next().Infer(std::move(call)); }
  void Cancel(CallId call) override { next().Cancel(call); }
  bool Live() const override { return next().Live(); }
  bool Ready() const override { return next().Ready(); }
  std::vector<ModelState> Index() const override { return next().Index(); }
  Status Load(const std::string& model, const std::string& config) override {
    return next().Load(model, config);
  }
  Status Unload(const std::string& model) override { return next().Unload(model); }
  // Not by way of Unload: who changes the one changes both.
  Status UnloadWithSteps(const std::string& model) override {
    return next().UnloadWithSteps(model);
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    return next().Statistics(model, version);
  }

 protected:
  InferenceService& next() const { return *next_.load(std::memory_order_acquire); }
  // From now on; it outlives this and whoever calls it.
  void GoOnTo(InferenceService& next) { next_.store(&next, std::memory_order_release); }

 private:
  std::atomic<InferenceService*> next_;
};

}  // namespace tactus
