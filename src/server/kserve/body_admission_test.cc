#include "server/kserve/body_admission.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "service/plain_service_test.h"

namespace tactus {
namespace {

using Place = std::shared_ptr<BodyAdmission::Place>;

constexpr std::size_t kLargeBody = BodyGate::kLeastBytes;

class OneModel final : public PlainService {
 public:
  explicit OneModel(Duration slo) {
    model_->name = "m";
    model_->slo = slo;
  }
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view name,
                                                  std::int64_t) const override {
    if (name != "m") return NotFound("no such model");
    return std::shared_ptr<const ModelSpec>(model_);
  }
  CallId Infer(InferCall&&) override { return 0; }

 private:
  std::shared_ptr<ModelSpec> model_ = std::make_shared<ModelSpec>();
};

InferReply Refused() { return {.status = Fail(ErrorCode::kResourceExhausted, "no room")}; }

class BodyAdmissionTest : public testing::Test {
 protected:
  Expected<Place> Enter(std::size_t bytes = kLargeBody, std::string_view model = "m",
                        std::optional<Duration> limit = std::nullopt) {
    return admission_.Enter(service_, model, -1, bytes, limit);
  }
  // Calls that are lost while clients still wait for them.
  void Lose(int calls) {
    for (int i = 0; i < calls; ++i) {
      const auto place = Enter();
      ASSERT_TRUE(place && *place != nullptr) << i;
      (*place)->Answered(Refused(), {});
    }
  }
  // From now on no more than the least number of calls is let in.
  void Close() {
    {
      const auto place = Enter(kLargeBody, "m", Duration(1));
      ASSERT_TRUE(place && *place != nullptr);
      (*place)->Answered(Refused(), {});
    }
    Lose(static_cast<int>(BodyGate::kLeast));
  }

  OneModel service_{Seconds(3600)};
  int unread_ = 0;
  BodyAdmission admission_{[this] { ++unread_; }};
};

TEST_F(BodyAdmissionTest, RefusesOnceWhatIsInsideCannotBeAnsweredInTime) {
  Close();
  const auto place = Enter();
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(place.error().message.find("model 'm'"), std::string::npos);
  EXPECT_EQ(unread_, 1);
}

TEST_F(BodyAdmissionTest, SmallBodiesAndUnknownModelsNeedNoPlace) {
  Close();
  const auto small = Enter(kLargeBody - 1);
  EXPECT_TRUE(small && *small == nullptr);
  const auto unknown = Enter(kLargeBody, "x");
  EXPECT_TRUE(unknown && *unknown == nullptr);
  EXPECT_EQ(unread_, 0);
}

TEST_F(BodyAdmissionTest, AModelWithoutAnSloIsNeverFull) {
  OneModel service{Duration{}};
  for (int i = 0; i < 1000; ++i) {
    const auto place = admission_.Enter(service, "m", -1, kLargeBody, std::nullopt);
    EXPECT_TRUE(place && *place == nullptr);
  }
}

// As by a client that leaves before its body has come.
TEST_F(BodyAdmissionTest, APlaceThatIsLetGoIsFreeAgain) {
  for (int round = 0; round < 3; ++round) {
    const auto lost = Enter(kLargeBody, "m", Duration(1));
    ASSERT_TRUE(lost && *lost != nullptr);
    (*lost)->Answered(Refused(), {});
    std::vector<Place> places;
    for (int i = 0; i < static_cast<int>(BodyGate::kLeast); ++i) {
      const auto place = Enter();
      ASSERT_TRUE(place && *place != nullptr);
      places.push_back(*place);
    }
    EXPECT_FALSE(Enter());
  }
}

// Else a server whose I/O threads are behind would read as many bodies as ever.
TEST_F(BodyAdmissionTest, AnAnswerThatItsClientHasLateIsALoss) {
  for (const Duration way : {Duration{}, Duration(Seconds(7200))}) {
    BodyAdmission admission({});
    const auto enter = [&](Duration limit) {
      return admission.Enter(service_, "m", -1, kLargeBody, limit);
    };
    for (int i = 0; i < static_cast<int>(BodyGate::kLeast) + 1; ++i) {
      const auto place = enter(Seconds(3600));
      ASSERT_TRUE(place && *place != nullptr);
      (*place)->Answered({}, way);
    }
    const auto lost = enter(Duration(1));
    ASSERT_TRUE(lost);
    (*lost)->Answered(Refused(), {});
    EXPECT_EQ(enter(Seconds(3600)).has_value(), way == Duration{});
  }
}

// What the count of met calls does not see.
TEST_F(BodyAdmissionTest, AnAnswerThatLeavesAfterItsTimeIsTold) {
  int late = 0;
  const BodyAdmission admission({}, [&] { ++late; });
  const auto now = std::chrono::steady_clock::now();
  InferReply met;
  met.served.outcome = Outcome::kMet;
  admission.OnLeaving(met, now, Seconds(3600));
  admission.OnLeaving(met, now - std::chrono::hours(2), std::nullopt);
  admission.OnLeaving(Refused(), now - std::chrono::hours(2), Seconds(3600));
  EXPECT_EQ(late, 0);
  admission.OnLeaving(met, now - std::chrono::hours(2), Seconds(3600));
  EXPECT_EQ(late, 1);
  met.served.outcome = Outcome::kLate;
  admission.OnLeaving(met, now - std::chrono::hours(2), Seconds(3600));
  EXPECT_EQ(late, 1) << "it counts as late already";
}

TEST_F(BodyAdmissionTest, PlacesMayOutliveIt) {
  auto admission = std::make_unique<BodyAdmission>(nullptr);
  const auto place = admission->Enter(service_, "m", -1, kLargeBody, std::nullopt);
  ASSERT_TRUE(place && *place != nullptr);
  admission.reset();
  (*place)->Answered({}, {});
  (*place)->Answered(Refused(), {});  // the first counts
}

TEST_F(BodyAdmissionTest, ManyThreadsEnterAndLeave) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      BodyAdmission& admission = admission_;
      for (int i = 0; i < 2000; ++i) {
        const auto place = admission.Enter(service_, "m", -1, kLargeBody, Millis(1 + i % 3));
        if (place && i % 3 == t % 3) (*place)->Answered(Refused(), {});
      }
    });
  }
}

}  // namespace
}  // namespace tactus
