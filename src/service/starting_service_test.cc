// Without this a server whose ports are open before it serves could be taken for one that is ready,
// or for one that knows no models.
#include "service/starting_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/plain_service_test.h"

namespace tactus {
namespace {

class OneModel final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    if (model != "a") return NotFound("unknown");
    return std::make_shared<ModelSpec>();
  }
  Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view) const override {
    return std::make_shared<ModelSpec>();
  }
  CallId Infer(InferCall&&) override { return 7; }
  std::vector<ModelState> Index() const override { return {{"a", 1, "READY", ""}}; }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view, std::int64_t) const override {
    return std::vector<ModelStatistics>(1);
  }
};

TEST(StartingServiceTest, LivesAndIsNotReadyUntilItIsOpened) {
  StartingService door("it waits for a worker");
  EXPECT_TRUE(door.Live());
  EXPECT_FALSE(door.Ready());
  const auto why = door.Find("a", -1).error();
  EXPECT_EQ(why.code, ErrorCode::kUnavailable) << "not unknown: clients may come again";
  EXPECT_EQ(why.message, "the server is starting: it waits for a worker; try again");
  EXPECT_EQ(door.ModelReady("a", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(door.Enter("steps").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(door.Load("a", "").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(door.Unload("a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(door.UnloadWithSteps("a").error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(door.Index().empty());
  EXPECT_TRUE(door.Statistics("", -1)->empty());
  EXPECT_EQ(door.Statistics("a", -1).error().code, ErrorCode::kUnavailable);

  OneModel service;
  door.Open(service);
  EXPECT_TRUE(door.Live());
  EXPECT_TRUE(door.Ready());
  EXPECT_TRUE(door.Find("a", -1));
  EXPECT_EQ(door.Find("b", -1).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(door.ModelReady("a", -1));
  EXPECT_TRUE(door.Enter("steps"));
  EXPECT_TRUE(door.Load("a", ""));
  EXPECT_TRUE(door.Unload("a"));
  EXPECT_TRUE(door.UnloadWithSteps("a"));
  EXPECT_EQ(door.Infer({}), 7u);
  door.Cancel(7);
  EXPECT_EQ(door.Index().size(), 1u);
  EXPECT_EQ(door.Statistics("a", -1)->size(), 1u);
}

}  // namespace
}  // namespace tactus
