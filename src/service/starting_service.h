// A service whose ports are open before it is: it lives and is not ready, so that probes of a
// process that starts have an answer, and calls are refused with the reason. Thread-safe.
//
//   StartingService door("it waits for a scheduler");
//   HttpServer http(options, door);       // /v2/health/live: 200, /v2/health/ready: 503
//   door.Open(service);                   // from now on all that it is asked goes to `service`
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "service/forwarding_service.h"

namespace tactus {

class StartingService final : public ForwardingService {
 public:
  // `why`: what it waits for, as clients are told.
  explicit StartingService(std::string why) : ForwardingService(closed_), closed_(std::move(why)) {}

  // Once; `service` outlives this and whoever calls it.
  void Open(InferenceService& service) { GoOnTo(service); }

 private:
  class Closed final : public InferenceService {
   public:
    explicit Closed(std::string why) : why_(std::move(why)) {}

    Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
      return Starts();
    }
    Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view) const override {
      return Starts();
    }
    CallId Infer(InferCall&&) override { CHECK(false, "Find gave no model"); }
    void Cancel(CallId) override { CHECK(false, "there is no call"); }
    bool Live() const override { return true; }
    bool Ready() const override { return false; }
    std::vector<ModelState> Index() const override { return {}; }
    Status Load(const std::string&, const std::string&) override { return Starts(); }
    Status Unload(const std::string&) override { return Starts(); }
    Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                      std::int64_t) const override {
      if (model.empty()) return std::vector<ModelStatistics>();
      return Starts();
    }

   private:
    std::unexpected<Error> Starts() const {
      return Fail(ErrorCode::kUnavailable, "the server is starting: " + why_ + "; try again");
    }
    const std::string why_;
  };

  Closed closed_;
};

}  // namespace tactus
