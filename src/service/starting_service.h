// A service whose ports are open before it is: it lives and is not ready, so that probes of a
// process that starts have an answer, and calls are refused with the reason. Thread-safe.
//
//   StartingService door("it waits for a scheduler");
//   HttpServer http(options, door);       // /v2/health/live: 200, /v2/health/ready: 503
//   door.Open(service);                   // from now on all that it is asked goes to `service`
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class StartingService final : public InferenceService {
 public:
  // `why`: what it waits for, as clients are told.
  explicit StartingService(std::string why) : why_(std::move(why)) {}

  // Once; `service` outlives this and whoever calls it.
  void Open(InferenceService& service) { service_.store(&service, std::memory_order_release); }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    const InferenceService* const service = Opened();
    return service != nullptr ? service->Find(model, version) : Starts();
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    const InferenceService* const service = Opened();
    return service != nullptr ? service->ModelReady(model, version) : Starts();
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    const InferenceService* const service = Opened();
    return service != nullptr ? service->Enter(described) : Starts();
  }
  // The model is one that Find gave, so the service is open.
  CallId Infer(InferCall&& call) override { return Opened()->Infer(std::move(call)); }
  void Cancel(CallId call) override { Opened()->Cancel(call); }
  bool Live() const override {
    const InferenceService* const service = Opened();
    return service == nullptr || service->Live();
  }
  bool Ready() const override {
    const InferenceService* const service = Opened();
    return service != nullptr && service->Ready();
  }
  std::vector<ModelState> Index() const override {
    const InferenceService* const service = Opened();
    return service != nullptr ? service->Index() : std::vector<ModelState>();
  }
  Status Load(const std::string& model, const std::string& config) override {
    InferenceService* const service = Opened();
    return service != nullptr ? service->Load(model, config) : Starts();
  }
  Status Unload(const std::string& model) override {
    InferenceService* const service = Opened();
    return service != nullptr ? service->Unload(model) : Starts();
  }
  Status UnloadWithSteps(const std::string& model) override {
    InferenceService* const service = Opened();
    return service != nullptr ? service->UnloadWithSteps(model) : Starts();
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    const InferenceService* const service = Opened();
    if (service != nullptr) return service->Statistics(model, version);
    if (model.empty()) return std::vector<ModelStatistics>();
    return Starts();
  }

 private:
  InferenceService* Opened() const { return service_.load(std::memory_order_acquire); }
  std::unexpected<Error> Starts() const {
    return Fail(ErrorCode::kUnavailable, "the server is starting: " + why_ + "; try again");
  }

  const std::string why_;
  std::atomic<InferenceService*> service_{nullptr};
};

}  // namespace tactus
