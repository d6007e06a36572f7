// A site as its clients see it: the models of a front end's runtime, ready while calls reach
// workers and each model while some worker serves it. Calls of a model that no worker serves wait
// for one until their deadlines. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/forwarding_service.h"

namespace tactus {

class SiteService final : public ForwardingService {
 public:
  // Why calls do not reach a worker now; nothing: they do. Version < 0: any.
  struct WhyNot {
    std::function<std::optional<std::string>()> site;
    std::function<std::optional<std::string>(std::string_view model, std::int64_t version)> model;
  };

  // `models` runs the calls, and outlives this.
  SiteService(InferenceService& models, WhyNot why_not)
      : ForwardingService(models), why_not_(std::move(why_not)) {}

  // kUnavailable, not kNotFound, while the site cannot be asked which models it has.
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  bool Ready() const override { return next().Ready() && !why_not_.site(); }
  std::vector<ModelState> Index() const override;
  // The workers load and unload: what were unloaded here alone could not be loaded again.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Status UnloadWithSteps(const std::string& model) override { return Unload(model); }

 private:
  const WhyNot why_not_;
};

}  // namespace tactus
