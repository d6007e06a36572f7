// Traces of the calls that come through it to another service, as TraceSettings chooses them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/kserve/trace_file.h"
#include "server/kserve/trace_settings.h"
#include "service/inference_service.h"

namespace tactus {

// Steps that other nodes send are passed on untraced: a client's call is traced where it came.
class TracedService final : public InferenceService {
 public:
  using Clock = std::function<Trace::Instant()>;

  // All outlive this, and this outlives the replies. `clock`: of InferCall::received.
  TracedService(InferenceService& service, TraceSettings& settings, TraceFile& file,
                Clock clock = std::chrono::steady_clock::now)
      : service_(service), settings_(settings), file_(file), clock_(std::move(clock)) {}

  CallId Infer(InferCall&& call) override;

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    return service_.Find(model, version);
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    return service_.ModelReady(model, version);
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    return service_.Enter(described);
  }
  void Cancel(CallId call) override { service_.Cancel(call); }
  bool Live() const override { return service_.Live(); }
  bool Ready() const override { return service_.Ready(); }
  std::vector<ModelState> Index() const override { return service_.Index(); }
  Status Load(const std::string& model, const std::string& config) override {
    return service_.Load(model, config);
  }
  Status Unload(const std::string& model) override { return service_.Unload(model); }
  Status UnloadWithSteps(const std::string& model) override {
    return service_.UnloadWithSteps(model);
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    return service_.Statistics(model, version);
  }

 private:
  InferenceService& service_;
  TraceSettings& settings_;
  TraceFile& file_;
  const Clock clock_;
};

}  // namespace tactus
