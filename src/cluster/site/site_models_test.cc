// Without this a node of a fleet could serve, through a site, bytes that no plan has put there, or
// models that no plan has put there at all.
#include "cluster/site/site_models.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/plain_service_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TwoModels final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    if (gone == model) return NotFound("gone");
    auto spec = std::make_shared<ModelSpec>();
    spec->name = std::string(model);
    return spec;
  }
  Status ModelReady(std::string_view model, std::int64_t) const override {
    return unserved == model ? Fail(ErrorCode::kUnavailable, "no worker serves it") : Status();
  }
  CallId Infer(InferCall&&) override { return 7; }
  std::vector<ModelState> Index() const override {
    return {{"a", 1, "READY", ""}, {"b", 1, "READY", ""}};
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t) const override {
    std::vector<ModelStatistics> all(model.empty() ? 2 : 1);
    all.front().name = model.empty() ? "a" : std::string(model);
    all.back().name = model.empty() ? "b" : std::string(model);
    return all;
  }
  std::string gone;
  std::string unserved;
};

class SiteModelsTest : public testing::Test {
 protected:
  Expected<ModelSpec> Await(const std::string& model) const {
    const auto found = workers.find(model);
    if (found == workers.end()) return Fail(ErrorCode::kUnavailable, "no worker serves " + model);
    ModelSpec spec;
    spec.name = model;
    spec.digest = found->second;
    return spec;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ModelState& each : models.Index()) names.push_back(each.name);
    return names;
  }

  TwoModels site;
  std::map<std::string, std::string> workers{{"a", "one"}, {"b", "two"}};  // digests
  std::map<std::string, std::string> disk{{"a", "one"}, {"b", "two"}};
  SiteModels models{site,
                    {.await = [this](const std::string& model) { return Await(model); },
                     .digest_of = [this](const std::string& model) -> Expected<std::string> {
                       const auto found = disk.find(model);
                       if (found == disk.end()) return NotFound("no folder " + model);
                       return found->second;
                     }}};
};

TEST_F(SiteModelsTest, HasWhatWasLoadedAndNothingElse) {
  EXPECT_FALSE(models.Find("a", -1));
  EXPECT_THAT(Names(), ElementsAre());
  ASSERT_TRUE(models.Load("a", ""));
  EXPECT_TRUE(models.Find("a", -1));
  EXPECT_FALSE(models.Find("b", -1)) << "the site serves it, and no plan has it here";
  EXPECT_EQ(models.Find("b", -1).error().code, ErrorCode::kNotFound)
      << "a sender takes another target then";
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(models.Statistics("", -1)->size(), 1u);
  EXPECT_FALSE(models.Statistics("b", -1));
  EXPECT_TRUE(models.Ready());
  site.gone = "a";
  EXPECT_FALSE(models.Ready());
  ASSERT_TRUE(models.Unload("a"));
  EXPECT_TRUE(models.Ready());
  EXPECT_THAT(Names(), ElementsAre());
  EXPECT_EQ(models.Unload("a").error().code, ErrorCode::kNotFound);
}

TEST_F(SiteModelsTest, AModelIsReadyThatWasLoadedAndThatAWorkerServes) {
  EXPECT_EQ(models.ModelReady("a", -1).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(models.Load("a", ""));
  EXPECT_TRUE(models.ModelReady("a", -1));
  site.unserved = "a";
  EXPECT_EQ(models.ModelReady("a", -1).error().message, "no worker serves it");
  EXPECT_TRUE(models.Find("a", -1)) << "its calls wait for a worker";
}

TEST_F(SiteModelsTest, LoadsOnlyTheBytesThatThePlanSays) {
  workers["a"] = "other";
  EXPECT_THAT(models.Load("a", "").error().message, HasSubstr("sha256:other, and sha256:one"));
  workers["a"] = "";
  EXPECT_THAT(models.Load("a", "").error().message, HasSubstr("different digests"));
  workers.erase("a");
  EXPECT_THAT(models.Load("a", "").error().message, HasSubstr("no worker serves a"));
  EXPECT_THAT(Names(), ElementsAre());
  ASSERT_TRUE(models.Load("b", ""));
  disk["b"] = "three";  // the next plan's
  EXPECT_FALSE(models.Load("b", ""));
  EXPECT_THAT(Names(), ElementsAre("b")) << "what served serves on";
  disk.erase("b");
  EXPECT_THAT(models.Load("b", "").error().message, HasSubstr("no folder b"));
  EXPECT_EQ(models.Load("b", "{}").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tactus
