#include "site/central_scheduler.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "policies/registry.h"

namespace tactus {
namespace {

constexpr PeerId kFront{1};
constexpr PeerId kWorkerA{2};
constexpr PeerId kWorkerB{3};

TimePoint Ms(std::int64_t ms) { return kStart + Millis(ms); }

// Batches take 10 ms, whatever their size.
WorkerIntroduction Worker(const std::string& name, int max_batch = 4, int lanes = 1, int busy = 0) {
  WorkerModel model;
  model.spec.name = model.model.name = "m";
  model.model.slo = Millis(100);
  model.model.max_batch = max_batch;
  model.model.exits = {{"1", 0}};
  model.rows = {.exits = 1,
                .max_batch = max_batch,
                .latency = std::vector(static_cast<std::size_t>(max_batch), Millis(10))};
  return {.name = name, .address = name + ":1", .lanes = lanes, .busy = busy, .models = {model}};
}

class CentralSchedulerTest : public testing::Test, public SiteOutbox {
 protected:
  CentralSchedulerTest()
      : policy_(*MakePolicy("early-exit-edf")),
        central_({.lanes = 4, .workers = 2}, 7, *policy_, static_cast<SiteOutbox&>(*this)) {}

  void Send(PeerId, const Grant& grant) override { grants_.push_back(grant); }
  void Send(PeerId, const Refusal& refusal) override { refusals_.push_back(refusal); }
  void WorkersChanged() override {}
  void Say(const std::string& line) override { said_.push_back(line); }

  void Offers(std::uint64_t request, std::int64_t ms) {
    central_.OnOffer(kFront, {RequestId{request}, KeyOf("m"), Ms(ms + 100)}, Ms(ms));
    central_.Step(Ms(ms));
  }
  void Done(PeerId worker, const BatchKey& key, std::int64_t ms) {
    central_.OnDone(worker, {key, Millis(10)}, Ms(ms));
    central_.Step(Ms(ms));
  }

  std::unique_ptr<Policy> policy_;
  std::vector<Grant> grants_;
  std::vector<Refusal> refusals_;
  std::vector<std::string> said_;
  CentralScheduler central_;
};

TEST_F(CentralSchedulerTest, GrantsALaneAtATime) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(5, 1);
  Offers(6, 1);
  ASSERT_EQ(grants_.size(), 1U);
  EXPECT_EQ(grants_[0].key.term, 7U);
  EXPECT_EQ(grants_[0].requests, std::vector{RequestId{5}});
  Done(kWorkerA, grants_[0].key, 11);
  ASSERT_EQ(grants_.size(), 2U);
  EXPECT_EQ(grants_[1].requests, std::vector{RequestId{6}});
}

TEST_F(CentralSchedulerTest, KeepsOffersOfModelsWhoseWorkerIsStillToCome) {
  Offers(5, 1);
  EXPECT_TRUE(refusals_.empty());
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(2)));
  central_.Step(Ms(2));
  ASSERT_EQ(grants_.size(), 1U);
}

TEST_F(CentralSchedulerTest, AskedTwiceGrantsOnce) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(4, 1);
  Offers(5, 1);
  Offers(5, 2);
  Done(kWorkerA, grants_[0].key, 11);
  Done(kWorkerA, grants_[1].key, 21);
  EXPECT_EQ(grants_.size(), 2U);
}

TEST_F(CentralSchedulerTest, ALaneThatWasBusyOpensWithItsReport) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(5, 1);
  central_.Remove(kWorkerA, Ms(2));  // its connection broke; it runs on
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a", 4, 1, 1), Ms(3)));
  Offers(6, 3);
  EXPECT_EQ(grants_.size(), 1U) << "its only lane is busy";
  Done(kWorkerA, grants_[0].key, 11);
  ASSERT_EQ(grants_.size(), 2U);
  EXPECT_EQ(grants_[1].requests, std::vector{RequestId{6}});
}

TEST_F(CentralSchedulerTest, AModelMayChangeWhereNobodyElseServesIt) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a", 4), Ms(0)));
  EXPECT_TRUE(central_.AddWorker(kWorkerA, Worker("a", 8), Ms(1)));
  EXPECT_EQ(central_.models().at(0).rows.max_batch, 8);
  EXPECT_FALSE(central_.AddWorker(kWorkerB, Worker("b", 4), Ms(2)));
  EXPECT_TRUE(central_.AddWorker(kWorkerB, Worker("b", 8), Ms(3)));
  EXPECT_FALSE(central_.AddWorker(kWorkerA, Worker("a", 2), Ms(4)));
}

// Else a front end would take one worker's bytes for those of all.
TEST_F(CentralSchedulerTest, SaysAModelsDigestWhereItsWorkersAgree) {
  const auto worker = [](const std::string& name, const std::string& digest) {
    WorkerIntroduction made = Worker(name);
    made.models[0].spec.digest = digest;
    return made;
  };
  const auto told = [this] { return central_.models().at(0).spec.digest; };
  ASSERT_TRUE(central_.AddWorker(kWorkerA, worker("a", "old"), Ms(0)));
  EXPECT_EQ(told(), "old");
  ASSERT_TRUE(central_.AddWorker(kWorkerB, worker("b", "new"), Ms(1)));
  EXPECT_EQ(told(), "");
  ASSERT_TRUE(central_.AddWorker(kWorkerA, worker("a", "new"), Ms(2)));
  EXPECT_EQ(told(), "new") << "though the first worker said another";
  central_.Remove(kWorkerB, Ms(3));
  EXPECT_EQ(told(), "new");
  ASSERT_TRUE(central_.AddWorker(kWorkerB, worker("b", ""), Ms(4)));
  EXPECT_EQ(told(), "") << "one that says nothing may have other bytes";
}

TEST_F(CentralSchedulerTest, ALaneOutOfReachRestsAWhile) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(5, 1);
  central_.OnVoid({grants_.at(0).key, 1, true}, Ms(2));
  Offers(5, 2);
  EXPECT_EQ(grants_.size(), 1U);
  central_.Step(Ms(52));
  EXPECT_EQ(grants_.size(), 2U);
}

TEST_F(CentralSchedulerTest, ABatchThatNobodyReportsHoldsItsLaneForAWhileOnly) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(5, 1);
  central_.OnOffer(kFront, {RequestId{6}, KeyOf("m"), Ms(5000)}, Ms(2));
  const TimePoint next = central_.Step(Ms(2));
  EXPECT_LE(next, Ms(211));
  central_.Step(Ms(211));
  EXPECT_EQ(grants_.size(), 2U);
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(CentralSchedulerTest, OfAFrontEndThatLeftNothingIsGranted) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  Offers(5, 1);
  Offers(6, 1);
  central_.Remove(kFront, Ms(2));
  Done(kWorkerA, grants_[0].key, 11);
  EXPECT_EQ(grants_.size(), 1U);
  EXPECT_EQ(central_.waiting(), 0U);
}

TEST_F(CentralSchedulerTest, RefusesTwoWorkersOfOneNameAndMoreThanItMayHave) {
  ASSERT_TRUE(central_.AddWorker(kWorkerA, Worker("a"), Ms(0)));
  const Status twice = central_.AddWorker(kWorkerB, Worker("a"), Ms(0));
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("--worker-name"), std::string::npos);
  const Status many = central_.AddWorker(kWorkerB, Worker("b", 4, 9), Ms(0));
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("--most-lanes"), std::string::npos);
}

}  // namespace
}  // namespace tactus
