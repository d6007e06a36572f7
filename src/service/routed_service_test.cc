// Without this, a client's cancellation could reach a call of another service that happens to have
// the same number, and a model of the second service could be said not to exist.
#include "service/routed_service.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;

// Notes what it is asked; serves the models that it is given.
class NotingService final : public InferenceService {
 public:
  explicit NotingService(std::vector<std::string> models) {
    for (const std::string& model : models) (void)Load(model, "");
    noted.clear();
  }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    const auto found = models.find(model);
    if (unloaded == model) return Fail(ErrorCode::kUnavailable, unloaded + " is unloaded");
    if (found == models.end()) return NotFound("no model " + std::string(model));
    if (version > 1) return NotFound("no such version of " + std::string(model));
    return found->second;
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    const auto found = Find(model, version);
    if (!found) return std::unexpected(found.error());
    if (model == unserved) return Fail(ErrorCode::kUnavailable, "no worker serves it");
    return {};
  }
  CallId Infer(InferCall&& call) override {
    noted.push_back("infer " + call.model->name);
    return refuse ? 0 : ++calls_ | CallId{7} << 32;
  }
  void Cancel(CallId call) override { noted.push_back("cancel " + std::to_string(call & 0xff)); }
  bool Live() const override { return true; }
  bool Ready() const override { return ready; }
  std::vector<ModelState> Index() const override {
    std::vector<ModelState> states;
    for (const auto& [name, spec] : models) states.push_back({name, 1, "READY", ""});
    return states;
  }
  Status Load(const std::string& model, const std::string&) override {
    noted.push_back("load " + model);
    auto spec = std::make_shared<ModelSpec>();
    spec->name = model;
    models[model] = std::move(spec);
    return {};
  }
  Status Unload(const std::string& model) override {
    if (model == unloaded) return {};
    if (models.erase(model) == 0) return NotFound("no model " + model);
    noted.push_back("unload " + model);
    return {};
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t) const override {
    std::vector<ModelStatistics> all;
    for (const auto& [name, spec] : models) {
      if (model.empty() || name == model) all.emplace_back().name = name;
    }
    if (all.empty() && !model.empty()) return NotFound("no model");
    return all;
  }

  std::vector<std::string> noted;
  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> models;
  std::string unloaded;  // known, and not served
  std::string unserved;  // may be called, and is not ready
  bool ready = true;
  bool refuse = false;

 private:
  CallId calls_ = 0;
};

class RoutedServiceTest : public ::testing::Test {
 protected:
  NotingService net{{"net", "other"}};
  NotingService host{{"crop"}};
  RoutedService both{net,
                     host,
                     {.calls = [](const ModelSpec& spec) { return spec.name == "crop"; },
                      .loads =
                          [](const std::string& model, const std::string& config) {
                            return config == "host" || (config.empty() && model == "crop");
                          }}};

  CallId Call(const std::string& model) {
    InferCall call;
    call.model = *both.Find(model, -1);
    return both.Infer(std::move(call));
  }
};

TEST_F(RoutedServiceTest, CallsAndTheirCancellationsReachTheirModelsService) {
  const CallId a = Call("net");
  const CallId b = Call("crop");
  EXPECT_NE(a, b) << "both services call their first call the same";
  both.Cancel(b);
  both.Cancel(a);
  EXPECT_THAT(net.noted, ElementsAre("infer net", "cancel 1"));
  EXPECT_THAT(host.noted, ElementsAre("infer crop", "cancel 1"));
  host.refuse = true;
  EXPECT_EQ(Call("crop"), 0u) << "0 says that there is nothing to cancel";
}

TEST_F(RoutedServiceTest, FindsTheModelsOfBothAndSaysWhyNot) {
  EXPECT_TRUE(both.Find("other", -1));
  EXPECT_TRUE(both.Find("crop", 1));
  EXPECT_EQ(both.Find("crop", 2).error().message, "no such version of crop");
  EXPECT_EQ(both.Find("net", 2).error().message, "no such version of net");
  EXPECT_EQ(both.Find("nobody", -1).error().message, "no model nobody");
  net.unloaded = "crop";  // it once was the first's
  EXPECT_TRUE(both.Find("crop", -1));
  host.unloaded = "other";
  EXPECT_TRUE(both.Find("other", -1));
  net.unloaded = "other";
  EXPECT_EQ(both.Find("other", -1).error().message, "other is unloaded");
}

TEST_F(RoutedServiceTest, AModelIsReadyWhereItIs) {
  EXPECT_TRUE(both.ModelReady("net", -1));
  EXPECT_TRUE(both.ModelReady("crop", -1));
  EXPECT_EQ(both.ModelReady("nobody", -1).error().message, "no model nobody");
  net.unserved = "net";
  EXPECT_EQ(both.ModelReady("net", -1).error().message, "no worker serves it");
  EXPECT_TRUE(both.ModelReady("crop", -1));
  host.unserved = "crop";
  EXPECT_FALSE(both.ModelReady("crop", -1));
  EXPECT_TRUE(both.Find("crop", -1)) << "and may be called";
}

TEST_F(RoutedServiceTest, OneIndexAndOneTable) {
  std::vector<std::string> names;
  for (const ModelState& state : both.Index()) names.push_back(state.name);
  EXPECT_THAT(names, ElementsAre("crop", "net", "other"));
  EXPECT_EQ(both.Statistics("", -1)->size(), 3u);
  EXPECT_EQ(both.Statistics("crop", -1)->at(0).name, "crop");
  EXPECT_EQ(both.Statistics("nobody", -1).error().code, ErrorCode::kNotFound);
  host.ready = false;
  EXPECT_FALSE(both.Ready());
}

TEST_F(RoutedServiceTest, AModelThatChangesItsPlatformChangesItsService) {
  ASSERT_TRUE(both.Load("other", "host"));
  EXPECT_THAT(host.noted, ElementsAre("load other"));
  EXPECT_THAT(net.noted, ElementsAre("unload other"));
  EXPECT_EQ(both.Index().size(), 3u);
  net.unloaded = "other";  // and would say that it has unloaded it
  EXPECT_TRUE(both.Unload("other"));
  EXPECT_TRUE(both.Unload("net"));
  EXPECT_EQ(both.Unload("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(host.noted, ElementsAre("load other", "unload other"));
}

}  // namespace
}  // namespace tactus
