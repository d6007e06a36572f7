// For tests and benches: a service that is always ready, lists no models, loads whatever it is told
// and does not cancel. What it finds and answers is said by who derives from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class PlainService : public InferenceService {
 public:
  void Cancel(CallId) override {}
  bool Live() const override { return true; }
  bool Ready() const override { return true; }
  std::vector<ModelState> Index() const override { return {}; }
  Status Load(const std::string&, const std::string&) override { return {}; }
  Status Unload(const std::string&) override { return {}; }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view, std::int64_t) const override {
    return std::vector<ModelStatistics>{};
  }
};

}  // namespace tactus
