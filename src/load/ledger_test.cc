// The books of the generator: each call ends once, with the outcome that its answer and its
// deadline say, whatever order and number the answers come in.
#include "load/ledger.h"

#include <array>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

PreparedInputs Labelled(std::vector<std::uint8_t> labels) {
  PreparedInputs inputs;
  inputs.samples = static_cast<std::uint32_t>(labels.size());
  inputs.labels = std::make_shared<std::vector<std::uint8_t>>(std::move(labels));
  return inputs;
}

Model TwoExits() {
  Model model;
  model.name = "m";
  model.slo = Millis(50);
  model.exits = {{"1", 0.8}, {"2", 0.9}};
  return model;
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() : inputs_{Labelled({3, 1})}, ledger_({TwoExits()}, inputs_, 16) {
    ledger_.Start(zero_);
  }

  std::uint64_t OpenAt(Duration at, std::uint32_t sample = 0) {
    return ledger_.Open(0, sample, TimePoint{at}, TimePoint{at} + Millis(50));
  }
  void AnswerAt(std::uint64_t token, Duration at, Answered kind, std::string_view exit = "",
                std::span<const std::byte> output = {}) {
    ledger_.OnAnswer({token, kind, zero_ + at, exit, 4, output, "text of the server"});
  }

  const SteadyTime zero_{std::chrono::seconds(1000)};
  const std::array<PreparedInputs, 1> inputs_;
  Ledger ledger_;
};

TEST_F(LedgerTest, OutcomeFollowsFromAnswerAndDeadline) {
  struct Case {
    Answered kind;
    Duration at;
    Outcome outcome;
  };
  const std::array<Case, 7> cases{{{Answered::kServed, Millis(20), Outcome::kMet},
                                   {Answered::kServed, Millis(50), Outcome::kMet},
                                   {Answered::kServed, Millis(50) + Nanos(1), Outcome::kLate},
                                   {Answered::kShed, Millis(1), Outcome::kShed},
                                   {Answered::kExpired, Millis(50), Outcome::kExpired},
                                   {Answered::kCancelled, Millis(2), Outcome::kCancelled},
                                   {Answered::kError, Millis(2), Outcome::kError}}};
  for (const Case& c : cases) AnswerAt(OpenAt(Millis(0)), c.at, c.kind);
  ASSERT_EQ(ledger_.records().size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(ledger_.records()[i].outcome, cases[i].outcome);
    EXPECT_EQ(ledger_.records()[i].ended, TimePoint{cases[i].at});
  }
  // Late, shed, expired and error are violations; a call that its client gave up is none.
  EXPECT_EQ(ledger_.counts().bad, 4);
  EXPECT_EQ(ledger_.counts().served, 3);
  EXPECT_EQ(ledger_.first_error(), "text of the server");
}

TEST_F(LedgerTest, LatencyCountsFromTheIntendedInstant) {
  // Meant to leave at 10 ms; that it left later is part of its latency.
  AnswerAt(OpenAt(Millis(10)), Millis(65), Answered::kServed);
  const RequestRecord& record = ledger_.records()[0];
  EXPECT_EQ(record.ended - record.arrival, Millis(55));
  EXPECT_EQ(record.outcome, Outcome::kLate);
}

TEST_F(LedgerTest, JudgesTheAnswerByTheLabelOfItsSample) {
  const std::array<float, 4> says_three{0, 0, 0, 1};
  const auto output = std::as_bytes(std::span(says_three));
  AnswerAt(OpenAt(Millis(0), 0), Millis(1), Answered::kServed, "2", output);
  AnswerAt(OpenAt(Millis(0), 1), Millis(1), Answered::kServed, "1", output);
  AnswerAt(OpenAt(Millis(0), 1), Millis(1), Answered::kServed, "1");
  ASSERT_EQ(ledger_.records().size(), 3U);
  EXPECT_EQ(ledger_.records()[0].correct, 1);
  EXPECT_EQ(ledger_.records()[0].exit, 1);
  EXPECT_EQ(ledger_.records()[0].batch, 4);
  EXPECT_EQ(ledger_.records()[1].correct, 0);
  EXPECT_EQ(ledger_.records()[1].exit, 0);
  EXPECT_EQ(ledger_.records()[2].correct, -1) << "without an output there is nothing to judge";
}

TEST_F(LedgerTest, LearnsExitsThatTheConfigurationDoesNotName) {
  AnswerAt(OpenAt(Millis(0)), Millis(1), Answered::kServed, "skip");
  AnswerAt(OpenAt(Millis(0)), Millis(1), Answered::kServed, "skip");
  AnswerAt(OpenAt(Millis(0)), Millis(1), Answered::kServed);
  ASSERT_EQ(ledger_.models()[0].exits.size(), 3U);
  EXPECT_EQ(ledger_.models()[0].exits[2].name, "skip");
  EXPECT_EQ(ledger_.records()[0].exit, 2);
  EXPECT_EQ(ledger_.records()[1].exit, 2);
  EXPECT_EQ(ledger_.records()[2].exit, 2) << "unnamed: the last of those known";
}

TEST_F(LedgerTest, AnAnswerCountsOnceEvenWhenItsPlaceIsTakenAgain) {
  const std::uint64_t first = OpenAt(Millis(0));
  AnswerAt(first, Millis(1), Answered::kServed);
  AnswerAt(first, Millis(2), Answered::kServed);
  const std::uint64_t second = OpenAt(Millis(3));
  AnswerAt(first, Millis(4), Answered::kServed);
  AnswerAt(~std::uint64_t{0}, Millis(4), Answered::kServed);
  EXPECT_EQ(ledger_.counts().unexpected, 3);
  EXPECT_EQ(ledger_.counts().in_flight(), 1);
  AnswerAt(second, Millis(5), Answered::kServed);
  EXPECT_EQ(ledger_.counts().in_flight(), 0);
  EXPECT_EQ(ledger_.records().size(), 2U);
}

TEST_F(LedgerTest, WhatIsNeverAnsweredEndsAsAnError) {
  AnswerAt(OpenAt(Millis(0)), Millis(1), Answered::kServed);
  OpenAt(Millis(2));
  OpenAt(Millis(3));
  EXPECT_FALSE(ledger_.WaitIdle(SteadyTime{}));
  ledger_.CloseUnanswered(TimePoint{Seconds(9)});
  EXPECT_TRUE(ledger_.WaitIdle(SteadyTime{}));
  EXPECT_EQ(ledger_.counts().unanswered, 2);
  ASSERT_EQ(ledger_.records().size(), 3U);
  EXPECT_EQ(ledger_.records()[2].outcome, Outcome::kError);
  EXPECT_EQ(ledger_.records()[2].ended, TimePoint{Seconds(9)});
  EXPECT_THAT(ledger_.first_error(), ::testing::HasSubstr("no answer"));
}

TEST_F(LedgerTest, AnswersFromManyThreadsAllCount) {
  constexpr int kCalls = 4000;
  std::vector<std::uint64_t> tokens;
  for (int i = 0; i < kCalls; ++i) tokens.push_back(OpenAt(Micros(i)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kCalls; i += 4) {
        AnswerAt(tokens[static_cast<std::size_t>(i)], Millis(10), Answered::kServed, "1");
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger_.counts().closed, kCalls);
  EXPECT_EQ(ledger_.counts().unexpected, 0);
  EXPECT_EQ(ledger_.records().size(), std::size_t{kCalls});
}

}  // namespace
}  // namespace tactus
