// Without this, a service that stands before another could answer itself what it does not change:
// an ensemble's steps would stay loaded, or another node's steps be refused.
#include "service/forwarding_service.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;

// Notes each call, and answers as no default does.
class NotingNext final : public InferenceService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    Note("find " + std::string(model) + " " + std::to_string(version));
    return spec_;
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    Note("model ready " + std::string(model) + " " + std::to_string(version));
    return {};
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view described) const override {
    Note("enter " + std::string(described));
    return spec_;
  }
  CallId Infer(InferCall&& call) override {
    Note("infer " + std::string(call.id));
    return 7;
  }
  void Cancel(CallId call) override { Note("cancel " + std::to_string(call)); }
  bool Live() const override { return Note("live"); }
  bool Ready() const override { return Note("ready"); }
  std::vector<ModelState> Index() const override {
    Note("index");
    return {ModelState{.name = "m"}};
  }
  Status Load(const std::string& model, const std::string& config) override {
    Note("load " + model + " " + config);
    return {};
  }
  Status Unload(const std::string& model) override {
    Note("unload " + model);
    return {};
  }
  Status UnloadWithSteps(const std::string& model) override {
    Note("unload with steps " + model);
    return {};
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override {
    Note("statistics " + std::string(model) + " " + std::to_string(version));
    return std::vector<ModelStatistics>(2);
  }

  mutable std::vector<std::string> noted;

 private:
  bool Note(std::string what) const {
    noted.push_back(std::move(what));
    return true;
  }
  std::shared_ptr<const ModelSpec> spec_ = std::make_shared<ModelSpec>();
};

TEST(ForwardingService, PassesEveryCallOn) {
  NotingNext next;
  ForwardingService service(next);
  EXPECT_NE(service.Find("a", 2).value_or(nullptr), nullptr);
  EXPECT_TRUE(service.ModelReady("f", 4));
  EXPECT_NE(service.Enter("steps").value_or(nullptr), nullptr);
  InferCall call;
  call.id = "x";
  EXPECT_EQ(service.Infer(std::move(call)), 7U);
  service.Cancel(9);
  EXPECT_TRUE(service.Live());
  EXPECT_TRUE(service.Ready());
  EXPECT_EQ(service.Index().size(), 1U);
  EXPECT_TRUE(service.Load("b", "{}"));
  EXPECT_TRUE(service.Unload("c"));
  EXPECT_TRUE(service.UnloadWithSteps("d"));
  EXPECT_EQ(service.Statistics("e", 3)->size(), 2U);
  EXPECT_THAT(next.noted, ElementsAre("find a 2", "model ready f 4", "enter steps", "infer x",
                                      "cancel 9", "live", "ready", "index", "load b {}", "unload c",
                                      "unload with steps d", "statistics e 3"));
}

}  // namespace
}  // namespace tactus
