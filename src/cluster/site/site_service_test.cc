// Without this, a front end could unload a model that only the workers of its site can load again.
#include "cluster/site/site_service.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/plain_service_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class Models final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return NotFound("none");
  }
  CallId Infer(InferCall&&) override { return 0; }
  Status Load(const std::string&, const std::string&) override { return Changed(); }
  Status Unload(const std::string&) override { return Changed(); }

  int changes = 0;

 private:
  Status Changed() {
    ++changes;
    return {};
  }
};

TEST(SiteService, LeavesModelsToTheWorkers) {
  Models models;
  SiteService service(models, [] { return true; });
  for (const Status& status :
       {service.Load("m", ""), service.Unload("m"), service.UnloadWithSteps("m")}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(status.error().message, HasSubstr("model 'm' at the workers of the site"));
  }
  EXPECT_EQ(models.changes, 0);
}

TEST(SiteService, IsReadyWhileCallsReachAWorker) {
  Models models;
  bool reachable = false;
  SiteService service(models, [&] { return reachable; });
  EXPECT_FALSE(service.Ready());
  reachable = true;
  EXPECT_TRUE(service.Ready());
}

}  // namespace
}  // namespace tactus
