#include "server/kserve/trace_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TraceValues kDefaults = {{"log_frequency", {"0"}},   {"trace_count", {"-1"}},
                               {"trace_file", {"t.json"}}, {"trace_level", {"OFF"}},
                               {"trace_mode", {"triton"}}, {"trace_rate", {"1000"}}};

class TraceSettingsTest : public testing::Test {
 protected:
  void Change(const TraceValues& values, const std::string& model = "") {
    const Status set = settings_.Set(model, values);
    ASSERT_TRUE(set.has_value()) << set.error().message;
  }
  std::vector<std::string> Said(const std::string& name, const std::string& model = "") const {
    return settings_.Get(model).at(name);
  }
  // The numbers of those of the next calls of a model that are traced.
  std::vector<int> Sampled(int calls, std::string_view model = "m") {
    std::vector<int> sampled;
    for (int i = 1; i <= calls; ++i) {
      if (settings_.Sample(model)) sampled.push_back(i);
    }
    return sampled;
  }

  TraceSettings settings_{"t.json"};
};

// Without it clients could not tell what is traced, or that nothing is.
TEST_F(TraceSettingsTest, AtFirstNothingIsTraced) {
  EXPECT_EQ(settings_.Get(""), kDefaults);
  EXPECT_EQ(settings_.Get("m"), kDefaults);
  EXPECT_FALSE(settings_.on());
  EXPECT_THAT(Sampled(3000), ElementsAre());
}

TEST_F(TraceSettingsTest, EachCallOfTheRateIsTracedUntilTheCountIsReached) {
  Change({{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", {"3"}}, {"trace_count", {"2"}}});
  EXPECT_TRUE(settings_.on());
  EXPECT_THAT(Sampled(5), ElementsAre(3));
  EXPECT_EQ(Said("trace_count"), std::vector<std::string>{"1"});
  EXPECT_THAT(Sampled(10), ElementsAre(1));
  EXPECT_EQ(Said("trace_count"), std::vector<std::string>{"0"});
  EXPECT_FALSE(settings_.on());
  // A new count begins anew; a new rate counts calls from now on.
  Change({{"trace_count", {"1"}}, {"trace_rate", {"2"}}});
  EXPECT_TRUE(settings_.on());
  EXPECT_THAT(Sampled(10), ElementsAre(2));
}

TEST_F(TraceSettingsTest, IdsGoOnOverAllModels) {
  Change({{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", {"1"}}, {"log_frequency", {"7"}}});
  const auto first = settings_.Sample("m");
  const auto second = settings_.Sample("n");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, 1u);
  EXPECT_EQ(second->id, 2u);
  EXPECT_EQ(second->log_frequency, 7u);
}

TEST_F(TraceSettingsTest, AModelFollowsTheGlobalSettingsButForItsOwn) {
  Change({{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", {"2"}}});
  Change({{"trace_rate", {"3"}}}, "own");
  Change({{"trace_level", {"OFF"}}}, "quiet");
  EXPECT_THAT(Sampled(4, "quiet"), ElementsAre());
  // Those without a rate of their own count together.
  EXPECT_THAT(Sampled(1, "a"), ElementsAre());
  EXPECT_THAT(Sampled(6, "own"), ElementsAre(3, 6));
  EXPECT_THAT(Sampled(1, "b"), ElementsAre(1));

  Change({{"trace_rate", {"5"}}, {"log_frequency", {"9"}}});
  EXPECT_EQ(Said("trace_rate", "own"), std::vector<std::string>{"3"});
  EXPECT_EQ(Said("log_frequency", "own"), std::vector<std::string>{"9"});
  EXPECT_EQ(Said("trace_rate", "m"), std::vector<std::string>{"5"});

  // Cleared, a model's setting is the global one again, and a global one the default.
  Change({{"trace_rate", {}}}, "own");
  EXPECT_EQ(Said("trace_rate", "own"), std::vector<std::string>{"5"});
  Change({{"trace_rate", {}}, {"trace_level", {}}, {"log_frequency", {}}, {"trace_file", {}}});
  EXPECT_EQ(settings_.Get(""), kDefaults);
  EXPECT_EQ(settings_.Get("own"), kDefaults);
}

TEST_F(TraceSettingsTest, OneModelAloneCanBeTraced) {
  Change({{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", {"1"}}, {"trace_count", {"1"}}}, "m");
  EXPECT_TRUE(settings_.on());
  EXPECT_THAT(Sampled(2, "other"), ElementsAre());
  EXPECT_THAT(Sampled(2, "m"), ElementsAre(1));
  EXPECT_FALSE(settings_.on());
  EXPECT_EQ(Said("trace_count"), std::vector<std::string>{"-1"});
}

// A client could otherwise believe that it changed what it did not.
TEST_F(TraceSettingsTest, WrongSettingsAreRefusedWithWhatIsAllowed) {
  struct Wrong {
    std::string name;
    std::vector<std::string> values;
    ErrorCode code;
    std::string allowed;
  };
  constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
  constexpr ErrorCode kUnserved = ErrorCode::kUnimplemented;
  const std::vector<Wrong> kWrong = {
      {"trace_levels", {"OFF"}, kInvalid, "known: log_frequency, trace_count, trace_file"},
      {"trace_level", {"MAX"}, kInvalid, "[\"OFF\"] or [\"TIMESTAMPS\"]"},
      {"trace_level", {"TIMESTAMPS", "OFF"}, kInvalid, "[\"OFF\"] or [\"TIMESTAMPS\"]"},
      {"trace_level", {"TIMESTAMPS", "TENSORS"}, kUnserved, "use TIMESTAMPS"},
      {"trace_rate", {"0"}, kInvalid, "from 1 to 4294967295"},
      {"trace_rate", {"4294967296"}, kInvalid, "from 1 to 4294967295"},
      {"trace_rate", {"1 "}, kInvalid, "from 1"},
      {"trace_rate", {""}, kInvalid, "from 1"},
      {"trace_rate", {"1", "2"}, kInvalid, "one whole number"},
      {"trace_count", {"-2"}, kInvalid, "from -1 to 9223372036854775807"},
      {"log_frequency", {"-1"}, kInvalid, "from 0 to 4294967295"},
      {"trace_file", {"/etc/passwd"}, kUnserved, "--trace-file FILE"},
      {"trace_mode", {"opentelemetry"}, kUnserved, "can only be \"triton\""}};
  for (const Wrong& wrong : kWrong) {
    for (const char* const model : {"", "m"}) {
      // "log_frequency" comes first: nothing of a request is taken if one of it is refused.
      TraceValues values = {{"log_frequency", {"5"}}};
      values[wrong.name] = wrong.values;
      const Status set = settings_.Set(model, values);
      ASSERT_FALSE(set.has_value()) << wrong.name;
      EXPECT_EQ(set.error().code, wrong.code) << wrong.name;
      EXPECT_THAT(set.error().message, HasSubstr("'" + wrong.name + "'"));
      EXPECT_THAT(set.error().message, HasSubstr(wrong.allowed));
      EXPECT_EQ(settings_.Get(model), kDefaults) << wrong.name;
    }
  }
}

TEST_F(TraceSettingsTest, WhatIsSaidMayBeSetAgain) {
  Change({{"trace_level", {"TIMESTAMPS"}}, {"trace_count", {"4"}}});
  Change(settings_.Get(""));
  Change(settings_.Get("m"), "m");
  EXPECT_EQ(settings_.Get("m"), settings_.Get(""));
}

TEST(TraceSettingsOfOpenTelemetry, FollowTheCallerAndElseTheRate) {
  TraceSettings settings("http://collector:4318", TraceSettings::Mode::kOpenTelemetry);
  EXPECT_TRUE(settings.on());
  const TraceValues now = settings.Get("");
  EXPECT_THAT(now.at("trace_mode"), ElementsAre("opentelemetry"));
  EXPECT_THAT(now.at("trace_level"), ElementsAre("TIMESTAMPS"));
  EXPECT_THAT(now.at("trace_file"), ElementsAre(""));
  ASSERT_TRUE(settings.Set("", {{"trace_rate", {"2"}}, {"trace_count", {"3"}}}));
  EXPECT_TRUE(settings.Sample("m", TraceParent{.sampled = true}));
  EXPECT_FALSE(settings.Sample("m", TraceParent{.sampled = false}));
  EXPECT_FALSE(settings.Sample("m"));
  EXPECT_TRUE(settings.Sample("m")) << "the second without a parent";
  EXPECT_TRUE(settings.Sample("m", TraceParent{.sampled = true}));
  EXPECT_FALSE(settings.Sample("m", TraceParent{.sampled = true})) << "three were to be traced";
  EXPECT_FALSE(settings.on());
}

TEST(TraceSettingsWithoutAFile, NameTheOption) {
  TraceSettings settings("");
  const Status set = settings.Set("", {{"trace_level", {"TIMESTAMPS"}}});
  ASSERT_FALSE(set.has_value());
  EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(set.error().message, HasSubstr("start the server with --trace-file FILE"));
  EXPECT_TRUE(settings.Set("", {{"trace_level", {"OFF"}}, {"trace_file", {""}}}).has_value());
  EXPECT_FALSE(settings.on());
}

}  // namespace
}  // namespace tactus
