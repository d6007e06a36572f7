#include "workload/scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kFull = R"([scenario]
name = "n"
about = "a"
duration_s = 30
warmup_s = 1.5
warmup_requests = 7
seed = 9
policy = "edgeserving:batch=1"
expiry = "unmeetable"
queue_capacity = 100
profile = "../p.json"
percentile = 99
jitter_ms = 0.25
decision_cost_us = 3
follow = "stalls"

[lanes]
count = 2
slots = 3

[contention]
capacity = [1, 2, 0.5, 1, 1]
crosstalk = 0.1
tail = 0
priority_weight = 3
preemption_ms = 0.2
drift = 0.15

[drift]
from_s = 10
factor = 1.3
stall_ms = 0
every_ms = 500

[autoscale]
interval_s = 5
window_s = 20
start_delay_s = 0.5
initial = 2
least = 1
bad_threshold = 0.02
idle_threshold = 0.3
idle_kept = 0.25

[arrivals]
process = "gamma"
rate_rps = 60
cv = 2
popularity = "ratio"

[[models]]
name = "a"
slo_ms = 20
max_batch = 4
ratio = 3
priority = 2
exits = ["1", "4"]
accuracy = [0.5, 1]

[[models]]
name = "b.c"
profile_as = "a"
ratio = 2

[[models]]
name = "d"
rate_rps = 5
)";

Scenario Full() {
  auto scenario = ParseScenario(kFull, "/s/dir/file.toml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return *scenario;
}

TEST(Scenario, ReadsEveryKey) {
  const Scenario s = Full();
  EXPECT_EQ(s.name, "n");
  EXPECT_EQ(s.about, "a");
  EXPECT_EQ(s.duration_s, 30);
  EXPECT_EQ(s.warmup_s, 1.5);
  EXPECT_EQ(s.warmup_requests, 7);
  EXPECT_EQ(s.seed, 9u);
  EXPECT_EQ(s.policy, "edgeserving:batch=1");
  EXPECT_EQ(s.expiry, "unmeetable");
  EXPECT_EQ(s.queue_capacity, 100);
  EXPECT_EQ(s.profile, "/s/p.json");
  EXPECT_EQ(s.percentile, 99);
  EXPECT_EQ(s.jitter_ms, 0.25);
  EXPECT_EQ(s.decision_cost_us, 3);
  EXPECT_EQ(s.lanes, 2);
  EXPECT_EQ(s.slots, 3);
  EXPECT_THAT(s.capacity, ElementsAre(1, 2, 0.5, 1, 1));
  EXPECT_EQ(s.crosstalk, 0.1);
  EXPECT_EQ(s.tail, 0);
  EXPECT_EQ(s.priority_weight, 3);
  EXPECT_EQ(s.preemption_ms, 0.2);
  EXPECT_EQ(s.drift, 0.15);
  EXPECT_EQ(s.follow, "stalls");
  EXPECT_EQ(s.drift_from_s, 10);
  EXPECT_EQ(s.drift_factor, 1.3);
  EXPECT_EQ(s.drift_stall_ms, 0);
  EXPECT_EQ(s.drift_every_ms, 500);
  EXPECT_EQ(s.scale_interval_s, 5);
  EXPECT_EQ(s.scale_window_s, 20);
  EXPECT_EQ(s.scale_start_delay_s, 0.5);
  EXPECT_EQ(s.scale_initial, 2);
  EXPECT_EQ(s.scale_least, 1);
  EXPECT_EQ(s.bad_threshold, 0.02);
  EXPECT_EQ(s.idle_threshold, 0.3);
  EXPECT_EQ(s.idle_kept, 0.25);
  EXPECT_EQ(s.process, ArrivalProcess::kGamma);
  EXPECT_EQ(s.rate_rps, 60);
  EXPECT_EQ(s.cv, 2);
  EXPECT_EQ(s.popularity, Popularity::kRatio);
  ASSERT_EQ(s.models.size(), 3u);
  EXPECT_EQ(s.models[0].slo_ms, 20);
  EXPECT_EQ(s.models[0].max_batch, 4);
  EXPECT_EQ(s.models[0].priority, 2);
  EXPECT_EQ(s.models[1].priority, 1);
  EXPECT_THAT(s.models[0].exits, ElementsAre("1", "4"));
  EXPECT_THAT(s.models[0].accuracy, ElementsAre(0.5, 1));
  EXPECT_EQ(s.models[1].profile_as, "a");
  EXPECT_EQ(s.models[2].profile_as, "d");
}

// Shares that are not what they seem would be planned for and run as others.
TEST(Scenario, DevicesInShares) {
  const auto parse = [](const std::string& plan, const std::string& rest = "") {
    return ParseScenario("[plan]\n" + plan + "\n" + rest + "[[models]]\nname = \"a\"\n", "f.toml");
  };
  const auto s =
      parse("shares = [20, 80]\nexponent = 0.5\nutilization_base = \"device\"\nmemory_mb = 11000");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_THAT(Shares(*s), ElementsAre(0.2, 0.8, 1));
  EXPECT_EQ(s->plan_exponent, 0.5);
  EXPECT_EQ(s->plan_utilization_base, "device");
  EXPECT_EQ(s->plan_memory_mb, 11000);
  EXPECT_THAT(parse("utilization_base = \"all\"").error().message, HasSubstr("largest-batch"));
  EXPECT_THAT(Shares(Full()), ElementsAre(1));
  EXPECT_THAT(parse("shares = [80, 20]").error().message, HasSubstr("[plan] shares must ascend"));
  EXPECT_THAT(parse("shares = [20, 20]").error().message, HasSubstr("[plan] shares must ascend"));
  EXPECT_THAT(parse("shares = [20, 100]").error().message, HasSubstr("numbers from 1 to 99"));
  EXPECT_THAT(parse("shares = [20, 50, 70]").error().message,
              HasSubstr("f.toml: [plan] shares: no share is the complement of 20 %"));
  EXPECT_THAT(parse("shares = [50]", "[lanes]\nslots = 2\n").error().message,
              HasSubstr("leave out [[lane_kinds]] and slots, or [plan]"));
}

// Eager policies take the first free lane: it must be the quickest, wherever it stands in the file.
TEST(Scenario, LanesOfSeveralKindsGoFromQuickToSlow) {
  const auto s = ParseScenario(R"([lanes]
count = 6
[[lane_kinds]]
name = "old"
count = 1
speed = 0.5
[[lane_kinds]]
name = "new"
count = 2
speed = 2.5
[[models]]
name = "m"
)",
                               "s.toml");
  ASSERT_TRUE(s) << s.error().message;
  const auto kinds = [](const Scenario& scenario) {
    std::string text;
    for (const LaneKind& kind : LaneKinds(scenario)) {
      text += std::to_string(kind.count) + kind.name + "*" +
              std::to_string(kind.speed).substr(0, 3) + " ";
    }
    return text;
  };
  EXPECT_EQ(kinds(*s), "2new*2.5 3plain*1.0 1old*0.5 ");
  Scenario changed = *s;
  ASSERT_TRUE(Override(changed, "lanes.count", "3"));
  ASSERT_TRUE(Override(changed, "lane_kinds.old.speed", "3"));
  EXPECT_EQ(kinds(changed), "1old*3.0 2new*2.5 ");
  const auto error = [&](std::string_view key, std::string_view value) {
    const auto set = Override(changed, key, value);
    return set ? "none" : set.error().message;
  };
  EXPECT_THAT(error("lanes.count", "2"), HasSubstr("declare 3 lanes, but [lanes] count is 2"));
  EXPECT_THAT(error("lane_kinds.new.name", "plain"),
              HasSubstr("two lane kinds are called 'plain'"));
  EXPECT_THAT(error("lane_kinds.new.speed", "0"), HasSubstr("must be a number from 0.001 to 1000"));
  EXPECT_THAT(error("lane_kinds.fast.speed", "2"), HasSubstr("[[lane_kinds]] have no 'fast'"));
  EXPECT_THAT(error("capacity", "1+1+1+1+1"), HasSubstr("[contention] needs lanes of one kind"));
}

TEST(Scenario, NeedsNoMoreThanAModel) {
  const auto s = ParseScenario("[[models]]\nname = 'm'\n", "/x/quick.toml");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->name, "quick");
  EXPECT_EQ(s->process, ArrivalProcess::kPoisson);
}

// A mistake is answered with its line and column, and with what would be right.
TEST(Scenario, NamesThePlaceOfEachMistake) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"[scenario\n", "f.toml:1:10: not valid TOML"},
      {"[scenario]\nduration_s = \"x\"\n", "f.toml:2:14: duration_s: must be a number from 0.001"},
      {"[scenario]\nduration_s = 0\n", "f.toml:2:14: duration_s: must be a number"},
      {"[scenario]\nduration_s = nan\n", "f.toml:2:14: duration_s: must be a number"},
      {"[scenario]\ndurations = 3\n",
       "f.toml:2:13: durations: unknown in [scenario] (did you mean 'duration_s'?); it may hold "
       "name"},
      {"[plan]\nuse_of = 1\n", "use_of: is called utilization_base now"},  // RENAMED
      {"[scenario]\nseed = 1.5\n", "f.toml:2:8: seed: must be a whole number"},
      {"[scenario]\nseed = -1\n", "f.toml:2:8: seed: must be a whole number"},
      {"[scenario]\nexpiry = 'soon'\n",
       "f.toml:2:10: expiry: must be one of never, passed, unmeetable"},
      {"[scenario]\npolicy = true\n", "f.toml:2:10: policy: no key takes a boolean"},
      {"[arrivals]\nprocess = 'poison'\n", "must be one of poisson, gamma, uniform, trace"},
      {"[lane]\ncount = 1\n", "f.toml:1:1: [lane]: unknown"},
      {"lanes = 3\n", "f.toml:1:9: [lanes]: must be a table"},
      {"[lanes]\ncount = 0\n", "f.toml:2:9: count: must be a whole number from 1 to 4096"},
      {"models = 3\n", "f.toml:1:10: models: write each as [[models]]"},
      {"[[models]]\nslo_ms = 3\n", "f.toml:1:1: [[models]]: needs a name"},
      {"[[models]]\nname = ''\n", "f.toml:2:8: name: must not be an empty string"},
      {"[[models]]\nname = 'a'\nexits = [1]\n", "f.toml:3:9: exits: must be a list of strings"},
      {"[[models]]\nname = 'a'\naccuracy = [2]\n",
       "f.toml:3:12: accuracy: must be a list of numbers"},
      {"[scenario]\nname = 'x'\n", "f.toml: has no [[models]]"},
      {"[[models]]\nname = 'a'\n[[models]]\nname = 'a'\n", "f.toml: model 'a' is there twice"},
      {"[scenario]\nwarmup_s = 20\n[[models]]\nname = 'a'\n", "must be less than duration_s"},
      {"[arrivals]\nprocess = 'trace'\n[[models]]\nname = 'a'\n", "needs a file"},
      {"[autoscale]\ninterval_s = 1\ninitial = 2\n[[models]]\nname = 'a'\n",
       "starts with 2 lanes and keeps 1; [lanes] count = 1"},
      {"[autoscale]\ninterval_s = 1\nidle_threshold = 0.05\n[[models]]\nname = 'a'\n",
       "idle_kept (0.1) must not exceed idle_threshold (0.05)"},
      {"[contention]\ncapacity = [1, 1]\n[[models]]\nname = 'a'\n",
       "[contention] capacity names 2 resources; it must name all 5: l1, l2, dram, tensor, fma"},
      {"[contention]\ncapacity = [1, 1, 1, 1, 0]\n", "f.toml:2:12: capacity: must be a list"},
      {"[drift]\nfactor = 0\n", "f.toml:2:10: factor: must be a number from 0.1 to 100"},
      {"[drift]\nstall_ms = 20\nevery_ms = 20\n[[models]]\nname = 'a'\n",
       "[drift] stall_ms (20) must be less than every_ms (20): nothing would ever run"},
      {"[drift]\nstall_ms = 20\n[contention]\ncapacity = [1, 1, 1, 1, 1]\n[[models]]\nname = "
       "'a'\n",
       "cannot be simulated together with [contention]"},
      {"[scenario]\nfollow = 'maybe'\n", "follow: must be one of auto, yes, stalls, no"},
      {"[[models]]\nname = 'a'\npriority = 0\n",
       "f.toml:3:12: priority: must be a whole number from 1 to 1000000"},
      {"[[models]]\nname = 'a'\npriority = 1000001\n",
       "f.toml:3:12: priority: must be a whole number from 1 to 1000000"},
      {"[arrivals]\nrate_rps = 0\n[[models]]\nname = 'a'\n", "nothing would arrive"},
      {"[[models]]\nname = 'a'\nexits = ['1']\naccuracy = [0.1, 0.2]\n",
       "1 exits and 2 accuracies"},
  };
  for (const auto& c : cases) {
    const auto scenario = ParseScenario(c.text, "f.toml");
    ASSERT_FALSE(scenario) << c.text;
    EXPECT_THAT(scenario.error().message, StartsWith("f.toml:"));
    EXPECT_THAT(scenario.error().message, HasSubstr(c.message));
  }
  EXPECT_EQ(LoadScenario("/no/such.toml").error().code, ErrorCode::kNotFound);
}

TEST(Scenario, RatesFollowThePopularity) {
  Scenario s = Full();
  s.popularity = Popularity::kEqual;
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(20), DoubleEq(20), DoubleEq(5)));
  s.popularity = Popularity::kRatio;  // 3 : 2 : 1, but the last states its own rate
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(30), DoubleEq(20), DoubleEq(5)));
  s.popularity = Popularity::kZipf;
  s.zipf = 1;
  s.models[2].rate_rps.reset();
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(60 * 6 / 11.0), DoubleEq(60 * 3 / 11.0),
                                    DoubleEq(60 * 2 / 11.0)));
}

TEST(Override, ChangesOneKey) {
  Scenario s = Full();
  ASSERT_TRUE(Override(s, "rate_rps", "200"));
  EXPECT_EQ(s.rate_rps, 200);
  ASSERT_TRUE(Override(s, "lanes", "3"));
  EXPECT_EQ(s.lanes, 3);
  ASSERT_TRUE(Override(s, "lanes.count", "4"));
  EXPECT_EQ(s.lanes, 4);
  ASSERT_TRUE(Override(s, "policy", "all-final"));
  EXPECT_EQ(s.policy, "all-final");
  ASSERT_TRUE(Override(s, "process", "uniform"));
  EXPECT_EQ(s.process, ArrivalProcess::kUniform);
  ASSERT_TRUE(Override(s, "models.b.c.slo_ms", "30"));
  EXPECT_EQ(s.models[1].slo_ms, 30);
  ASSERT_TRUE(Override(s, "models.*.slo_ms", "40"));
  EXPECT_EQ(s.models[0].slo_ms, 40);
  EXPECT_EQ(s.models[2].slo_ms, 40);
  ASSERT_TRUE(Override(s, "models.d.exits", "2+4"));
  EXPECT_THAT(s.models[2].exits, ElementsAre("2", "4"));
  ASSERT_TRUE(Override(s, "slots", "1"));
  ASSERT_TRUE(Override(s, "plan.shares", "20,50,80"));
  EXPECT_THAT(s.plan_shares, ElementsAre(20, 50, 80));
  ASSERT_TRUE(Override(s, "plan.shares", "50"));
  EXPECT_THAT(s.plan_shares, ElementsAre(50));
  ASSERT_TRUE(Override(s, "models.d.profile_as", "17"));
  EXPECT_EQ(s.models[2].profile_as, "17");
}

TEST(Override, LeavesTheScenarioAloneWhenItFails) {
  Scenario s = Full();
  const auto error = [&](std::string_view key, std::string_view value) {
    const auto set = Override(s, key, value);
    return set ? std::string("accepted") : set.error().message;
  };
  EXPECT_THAT(error("rate", "1"), HasSubstr("rate: a scenario has no such key (did you mean "
                                            "'rate_rps'?); the keys are"));
  EXPECT_THAT(error("rate_rps", "fast"), HasSubstr("rate_rps: must be a number from 0"));
  EXPECT_THAT(error("slots", "1.5"), HasSubstr("slots: must be a whole number"));
  EXPECT_THAT(error("models.x.slo_ms", "1"), HasSubstr("[[models]] have no 'x'"));
  EXPECT_THAT(error("models.*.slo", "1"), HasSubstr("[[models]] have no 'slo'"));
  EXPECT_THAT(error("models.a", "1"), HasSubstr("models.NAME.KEY"));
  EXPECT_THAT(error("models.*.name", "same"), HasSubstr("is there twice"));
  EXPECT_THAT(error("duration_s", "1"), HasSubstr("must be less than duration_s"));
  EXPECT_THAT(error("percentile", "42"), HasSubstr("42: a profile holds 50, 95"));
  EXPECT_EQ(s.models[1].name, "b.c");
  EXPECT_EQ(s.duration_s, 30);
}

// A shorter run needs a shorter warm-up, whichever of the two the command line names first.
TEST(Override, TakesSeveralKeysInAnyOrder) {
  const std::vector<Setting> settings = {{"duration_s", "1"}, {"warmup_s", "0"}};
  for (const bool reversed : {false, true}) {
    Scenario s = Full();
    const std::vector<Setting> order =
        reversed ? std::vector(settings.rbegin(), settings.rend()) : settings;
    const auto set = Override(s, order);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(s.duration_s, 1);
    EXPECT_EQ(s.warmup_s, 0);
  }
  Scenario s = Full();
  const std::vector<Setting> wrong = {{"seed", "7"}, {"duration_s", "1"}, {"lanes.count", "4"}};
  const auto set = Override(s, wrong);
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("duration_s: warmup_s (1.5) must be less than"));
  EXPECT_EQ(s.seed, Full().seed) << "all or none";
  const std::vector<Setting> unknown = {{"seed", "7"}, {"rate", "1"}};
  EXPECT_FALSE(Override(s, unknown));
  EXPECT_EQ(s.seed, Full().seed);
}

// A sweep along a rate that nobody reads would show the same row under every label.
TEST(Override, RefusesATotalRateWhereEveryModelHasItsOwn) {
  Scenario s = Full();
  ASSERT_TRUE(Override(s, "models.*.rate_rps", "7"));
  const auto set = Override(s, "rate_rps", "200");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("every model states its own rate"));
  EXPECT_NE(s.rate_rps, 200);
  ASSERT_TRUE(Override(s, "models.a.rate_rps", ""));  // one shares the total: now it counts
  EXPECT_TRUE(Override(s, "rate_rps", "200"));
}

// Without this a rate of 0 stands for a share of the total: a run "without d" serves it.
TEST(Override, ARateOfNothingBringsNoRequests) {
  Scenario s = Full();
  ASSERT_TRUE(Override(s, "models.d.rate_rps", "0"));
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(30), DoubleEq(20), 0));
  ASSERT_TRUE(Override(s, "models.a.rate_rps", "0"));
  EXPECT_THAT(Rates(s), ElementsAre(0, DoubleEq(20), 0)) << "the others keep their rates";
  ASSERT_TRUE(Override(s, "models.d.rate_rps", ""));
  EXPECT_THAT(Rates(s), ElementsAre(0, DoubleEq(20), DoubleEq(10)));
  const auto none = Override(s, "models.*.rate_rps", "0");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "models.*.rate_rps: nothing would arrive: every rate is 0");
}

ProfileFile TwoExits() {
  ProfileFile profile;
  ProfiledModel& model = profile.models.emplace_back();
  model.name = "a";
  model.max_batch = 8;
  for (const char* name : {"1", "4"}) {
    model.exits.push_back({.name = name, .accuracy = 0.3, .cells = std::vector<ProfileCell>(8)});
  }
  return profile;
}

// One profile can serve several models, each with exits, batches and accuracies of its own.
TEST(SelectProfile, CutsTheProfileToWhatEachModelWants) {
  auto s = ParseScenario(R"([[models]]
name = "x"
profile_as = "a"
max_batch = 4
exits = ["4"]
accuracy = [0.9]
[[models]]
name = "y"
profile_as = "a"
)",
                         "f.toml");
  ASSERT_TRUE(s) << s.error().message;
  const auto selected = SelectProfile(*s, TwoExits());
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_EQ(selected->models[0].name, "x");
  EXPECT_EQ(selected->models[0].exits.size(), 1u);
  EXPECT_EQ(selected->models[0].exits[0].cells.size(), 4u);
  EXPECT_EQ(selected->models[1].exits.size(), 2u);
  const auto models = MakeModels(*s, TwoExits());
  EXPECT_EQ((*models)[0].max_batch, 4);
  EXPECT_EQ((*models)[0].exits[0].accuracy, 0.9);
  EXPECT_EQ((*models)[1].max_batch, 8);
  EXPECT_EQ((*models)[1].exits[0].accuracy, 0.3);
  s->models[1].exits = {"2"};
  EXPECT_FALSE(SelectProfile(*s, TwoExits()));
  s->models[1].exits.clear();
  s->models[1].max_batch = 9;
  EXPECT_THAT(SelectProfile(*s, TwoExits()).error().message, HasSubstr("batches 1 to 8"));
  s->models[1].max_batch = 0;
  s->models[1].profile_as = "z";
  EXPECT_THAT(SelectProfile(*s, TwoExits()).error().message, HasSubstr("no model 'z'"));
}

// Lanes that are for some models only, and lanes that die.
TEST(Scenario, LanesArePinnedToModelsAndMayDie) {
  const std::string models =
      "[lanes]\ncount = 2\n[[models]]\nname = \"a\"\n[[models]]\nname = \"b\"\n";
  const auto error = [&](const std::string& more) {
    const auto scenario = ParseScenario(models + more, "s.toml");
    return scenario ? std::string("accepted") : scenario.error().message;
  };
  const auto pinned =
      ParseScenario(models +
                        "[[lane_kinds]]\nname = \"k\"\ncount = 1\nmodels = [\"b\"]\n"
                        "[[lane_faults]]\nlane = 1\nat_s = 2\nback_s = 3\n",
                    "s.toml");
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(LaneKinds(*pinned)[0].models, std::vector<std::string>{"b"});
  EXPECT_TRUE(LaneKinds(*pinned)[1].models.empty());
  EXPECT_EQ(pinned->lane_faults[0].back_s, 3);
  EXPECT_THAT(error("[[lane_kinds]]\nname = \"k\"\ncount = 1\nmodels = [\"a\", \"x\"]\n"),
              HasSubstr("s.toml:10:16: models: the scenario has no model 'x'; it has a, b"));
  EXPECT_THAT(error("[[lane_kinds]]\nname = \"k\"\ncount = 2\nmodels = [\"a\"]\n"),
              HasSubstr("no lane may run model 'b'; name it in the models of"));
  EXPECT_THAT(error("[[lane_faults]]\nlane = 2\n"), HasSubstr("there are lanes 0 to 1"));
  EXPECT_THAT(error("[[lane_faults]]\nlane = 0\nat_s = 2\nback_s = 1\n"),
              HasSubstr("back_s (1) must be after at_s (2)"));
  EXPECT_THAT(error("[autoscale]\ninterval_s = 1\n[[lane_faults]]\nlane = 0\n"),
              HasSubstr("leave them out, or [autoscale]"));
  Scenario changed = *pinned;
  EXPECT_FALSE(Override(changed, "lane_kinds.k.models", "x"));
}

}  // namespace
}  // namespace tactus
