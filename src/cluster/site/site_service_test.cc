// Without this a front end could call a model ready that no worker serves, tell clients that a
// model does not exist while it cannot know, or unload one that only the workers can load again.
#include "cluster/site/site_service.h"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/plain_service_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Knows "a" and "b", whether or not a worker serves them.
class Known final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override {
    if ((model != "a" && model != "b") || version > 1) return NotFound("unknown");
    return std::make_shared<ModelSpec>();
  }
  CallId Infer(InferCall&&) override { return 7; }
  std::vector<ModelState> Index() const override {
    return {{"a", 1, "READY", ""}, {"b", 1, "READY", ""}, {"c", 1, "LOADING", "it loads"}};
  }
  Status Load(const std::string&, const std::string&) override { return Changed(); }
  Status Unload(const std::string&) override { return Changed(); }

  int changes = 0;

 private:
  Status Changed() {
    ++changes;
    return {};
  }
};

class SiteServiceTest : public testing::Test {
 protected:
  Known models;
  std::optional<std::string> away;  // why the whole site is
  std::string unserved = "none";
  SiteService site{
      models,
      {.site = [this] { return away; },
       .model = [this](std::string_view model, std::int64_t) -> std::optional<std::string> {
         if (away) return away;
         if (model == unserved) return "no worker of the site serves it";
         return std::nullopt;
       }}};
};

TEST_F(SiteServiceTest, AModelIsReadyWhileSomeWorkerServesIt) {
  EXPECT_TRUE(site.ModelReady("a", -1));
  EXPECT_EQ(site.ModelReady("a", 2).error().code, ErrorCode::kNotFound);
  unserved = "a";
  EXPECT_EQ(site.ModelReady("a", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(site.ModelReady("a", -1).error().message, "model 'a': no worker of the site serves it");
  EXPECT_TRUE(site.ModelReady("b", 1));
  EXPECT_TRUE(site.Ready()) << "calls of b reach a worker";
  EXPECT_TRUE(site.Find("a", -1)) << "its calls wait for a worker";
  const auto index = site.Index();
  EXPECT_EQ(index[0].state, "UNAVAILABLE");
  EXPECT_EQ(index[0].reason, "no worker of the site serves it");
  EXPECT_EQ(index[1].state, "READY");
  EXPECT_EQ(index[2].state, "LOADING");
}

TEST_F(SiteServiceTest, NothingIsReadyWithoutAScheduler) {
  away = "no scheduler answers";
  EXPECT_FALSE(site.Ready());
  EXPECT_THAT(site.ModelReady("a", -1).error().message, HasSubstr("no scheduler answers"));
  EXPECT_TRUE(site.Find("a", -1));
  EXPECT_EQ(site.Index()[1].state, "UNAVAILABLE");
}

TEST_F(SiteServiceTest, AModelIsUnknownOnlyToASiteThatCanBeAsked) {
  EXPECT_EQ(site.Find("nobody", -1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(site.ModelReady("nobody", -1).error().code, ErrorCode::kNotFound);
  away = "no scheduler answers";
  EXPECT_EQ(site.Find("nobody", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(site.Find("nobody", -1).error().message, "model 'nobody': no scheduler answers");
}

TEST_F(SiteServiceTest, LeavesModelsToTheWorkers) {
  for (const Status& status : {site.Load("m", ""), site.Unload("m"), site.UnloadWithSteps("m")}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(status.error().message, HasSubstr("model 'm' at the workers of the site"));
  }
  EXPECT_EQ(models.changes, 0);
}

}  // namespace
}  // namespace tactus
