#include "metrics/report.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using ::testing::HasSubstr;

const std::vector<Model> kModels = {
    {.name = "a", .slo = Millis(20), .exits = {{"1", 0.5}, {"2", 0.9}}},
    {.name = "b", .slo = Millis(50), .exits = {{"2", 0.7}}}};

RequestRecord Record(int arrival_ms, int latency_ms, Outcome outcome, std::uint32_t model = 0,
                     std::uint16_t exit = 0) {
  return {.arrival = kStart + Millis(arrival_ms),
          .ended = kStart + Millis(arrival_ms + latency_ms),
          .model = model,
          .exit = exit,
          .batch = 2,
          .outcome = outcome};
}

const std::vector<RequestRecord> kRecords = {
    Record(0, 10, Outcome::kMet),          Record(100, 30, Outcome::kLate, 0, 1),
    Record(200, 40, Outcome::kMet, 1),     Record(300, 0, Outcome::kShed, 1),
    Record(400, 0, Outcome::kCancelled),   Record(500, 5, Outcome::kMet, 0, 1),
    Record(999, 20, Outcome::kExpired, 1), Record(1000, 9, Outcome::kMet)};

// Worked by hand: 7 requests in [0, 1 s), of which 3 are met, 3 bad and 1 cancelled.
TEST(Summarize, CountsWhatArrivedInTheSpan) {
  const RunReport report = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  EXPECT_EQ(report.duration_s, 1);
  EXPECT_EQ(report.all.requests, 7);
  EXPECT_EQ(report.all.offered_rps, 7);
  EXPECT_EQ(report.all.goodput_rps, 3);
  EXPECT_DOUBLE_EQ(report.all.bad_ratio, 3 / 6.0);
  EXPECT_EQ(report.all.p50_ms, 10);
  EXPECT_EQ(report.all.p95_ms, 40);
  EXPECT_EQ(report.all.mean_batch, 2);
  EXPECT_DOUBLE_EQ(report.all.accuracy, (0.5 + 0.9 + 0.7 + 0.9) / 4);
  EXPECT_FALSE(report.all.measured_accuracy);
  EXPECT_EQ(report.all.outcomes[static_cast<int>(Outcome::kLate)], 1);
  ASSERT_EQ(report.models.size(), 2u);
  EXPECT_EQ(report.models[0].slo_ms, 20);
  EXPECT_EQ(report.models[0].figures.requests, 4);
  EXPECT_DOUBLE_EQ(report.models[0].figures.bad_ratio, 1 / 3.0);
  EXPECT_DOUBLE_EQ(report.models[1].figures.bad_ratio, 2 / 3.0);
}

// Without it the misses of important models would vanish among those of many others.
TEST(Summarize, SetsPrioritiesApartWhereModelsDiffer) {
  std::vector<Model> models = kModels;
  models[1].priority = 3;
  RunReport run = Summarize(kRecords, models, kStart, kStart + Seconds(1), 0);
  ASSERT_EQ(run.priorities.size(), 2u);
  EXPECT_EQ(run.priorities[0].priority, 1);
  EXPECT_DOUBLE_EQ(run.priorities[0].figures.bad_ratio, 1 / 3.0);
  EXPECT_EQ(run.priorities[1].priority, 3);
  EXPECT_DOUBLE_EQ(run.priorities[1].figures.bad_ratio, 2 / 3.0);
  run.policy = "p";
  run.prediction = PredictionSummary{.batches = 10,
                                     .p50 = 0.05,
                                     .p95 = 0.2,
                                     .p99 = 0.4,
                                     .overhead_p50 = 0.6,
                                     .overhead_p99 = 2.45};
  RunReport other = run;
  other.prediction->p99 = 0.6;
  other.prediction->overhead_p50 = 0.8;
  other.priorities[0].figures.bad_ratio = 0;
  const RunReport mean = Average(std::vector{run, other});
  EXPECT_DOUBLE_EQ(mean.prediction->p99, 0.5);
  EXPECT_DOUBLE_EQ(mean.prediction->overhead_p50, 0.7);
  EXPECT_EQ(mean.prediction->batches, 20);
  EXPECT_DOUBLE_EQ(mean.priorities[0].figures.bad_ratio, 1 / 6.0);
  const std::string table = ToTable(std::span(&run, 1), true);
  EXPECT_THAT(table, HasSubstr("viol. 3"));
  EXPECT_THAT(table, HasSubstr("66.67"));
  EXPECT_THAT(table, HasSubstr("off by 5.0 % at P50, 20.0 % at P95, 40.0 % at P99; "
                               "neighbours cost 60 % at P50, 245 % at P99"));
  const auto json = nlohmann::json::parse(ToJson({.runs = {run}}))["runs"][0];
  EXPECT_EQ(json["priorities"][1]["priority"], 3);
  EXPECT_EQ(json["prediction"]["p95"], 0.2);
  EXPECT_FALSE(json["prediction"].contains("percentiles"));
  run.prediction->percentiles = {{.percent = 99.5, .error = 0.3, .signed_error = -0.1}};
  const auto spread = nlohmann::json::parse(ToJson({.runs = {run}}))["runs"][0]["prediction"];
  EXPECT_EQ(spread["percentiles"][0]["percent"], 99.5);
  EXPECT_EQ(spread["percentiles"][0]["signed_error"], -0.1);
  const RunReport same = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  EXPECT_TRUE(same.priorities.empty());
  const auto plain = nlohmann::json::parse(ToJson({.runs = {same}}))["runs"][0];
  EXPECT_FALSE(plain.contains("priorities") || plain.contains("prediction"));
}

// A server may state no SLO: 0 ms would be one that nothing meets.
TEST(ToTable, AModelWithoutAnSloHasNone) {
  std::vector<Model> models = kModels;
  models[1].slo = {};
  RunReport run = Summarize(kRecords, models, kStart, kStart + Seconds(1), 0);
  run.policy = "p";
  std::string table = ToTable(std::span(&run, 1), true);
  EXPECT_THAT(table, HasSubstr("20, none"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\n *b +none"));
  models[0].slo = {};
  run = Summarize(kRecords, models, kStart, kStart + Seconds(1), 0);
  run.policy = "p";
  table = ToTable(std::span(&run, 1), false);
  EXPECT_THAT(table, ::testing::ContainsRegex("\np +none"));
}

// Who calls a server may not know its policy; a row without a name would be a riddle.
TEST(ToTable, ARunOfAnUnknownPolicyIsThatOfAllModels) {
  const RunReport run = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  const std::string table = ToTable(std::span(&run, 1), true);
  EXPECT_THAT(table, ::testing::ContainsRegex("^model +SLO"));
  EXPECT_THAT(table, ::testing::ContainsRegex("\nall +20"));
  EXPECT_THAT(table, HasSubstr("\nall: "));
}

// A figure over time is drawn from it: each request counts in the part in which it arrived, a batch
// in that in which it started.
TEST(Timeline, CountsEachPartOfTheRun) {
  std::vector<RequestRecord> records = kRecords;
  for (RequestRecord& record : records) record.started = record.arrival;
  records[3].batch = records[4].batch = records[6].batch = 0;  // these never ran
  const std::vector<Timeline> timelines = MakeTimeline(records, kModels, 1, 2);
  ASSERT_EQ(timelines.size(), 3u);
  EXPECT_EQ(timelines[1].model, "b");
  EXPECT_EQ(timelines[2].model, "");
  ASSERT_EQ(timelines[2].steps.size(), 2u);
  const TimelineStep& first = timelines[2].steps[0];
  EXPECT_DOUBLE_EQ(first.end_s, 0.5);
  EXPECT_DOUBLE_EQ(first.offered_rps, 5 / 0.5);
  EXPECT_DOUBLE_EQ(first.goodput_rps, 2 / 0.5);
  EXPECT_DOUBLE_EQ(first.bad_ratio, 1 - 2 / 5.0);
  EXPECT_DOUBLE_EQ(first.busy_lanes, (0.010 + 0.030 + 0.040) / 2 / 0.5);
  EXPECT_DOUBLE_EQ(timelines[2].steps[1].offered_rps, 3 / 0.5);  // the last came after the end
  EXPECT_DOUBLE_EQ(timelines[1].steps[0].goodput_rps, 1 / 0.5);
  RunReport run = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  run.timeline = timelines;
  const auto json = nlohmann::json::parse(ToJson({.runs = {run}}))["runs"][0]["timeline"];
  EXPECT_EQ(json[1]["model"], "b");
  EXPECT_TRUE(json[2]["model"].is_null());
  EXPECT_EQ(json[2]["end_s"], (std::vector{0.5, 1.0}));
  EXPECT_EQ(json[2]["offered_rps"], (std::vector{10.0, 6.0}));
  EXPECT_TRUE(Average(std::vector{run, run}).timeline.empty());
}

TEST(Summarize, JoinsExitsByNameShallowestFirst) {
  const RunReport report = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  ASSERT_EQ(report.all.exits.size(), 2u);
  EXPECT_EQ(report.all.exits[0].name, "1");
  EXPECT_DOUBLE_EQ(report.all.exits[0].share, 0.25);
  EXPECT_DOUBLE_EQ(report.all.exits[1].share, 0.75);
  ASSERT_EQ(report.models[1].figures.exits.size(), 1u);
  EXPECT_DOUBLE_EQ(report.models[1].figures.exits[0].share, 1);
}

// The order of records is the order of ending; what is skipped are the first to arrive.
TEST(Summarize, SkipsTheFirstToArrive) {
  std::vector<RequestRecord> records = kRecords;
  std::reverse(records.begin(), records.end());
  const RunReport report = Summarize(records, kModels, kStart, kStart + Seconds(1), 2);
  EXPECT_EQ(report.all.requests, 5);
  EXPECT_DOUBLE_EQ(report.duration_s, 0.8);
  EXPECT_EQ(report.all.outcomes[static_cast<int>(Outcome::kLate)], 0);
  EXPECT_EQ(Summarize(records, kModels, kStart, kStart + Seconds(1), 99).all.requests, 0);
  // Of requests that arrive together as many are skipped as need be.
  for (RequestRecord& record : records) record.arrival = kStart;
  EXPECT_EQ(Summarize(records, kModels, kStart, kStart + Seconds(1), 3).all.requests, 5);
}

TEST(Summarize, MeasuresAccuracyFromLabelledAnswers) {
  std::vector<RequestRecord> records = kRecords;
  records[0].correct = 1;
  records[1].correct = 0;
  records[2].correct = 1;
  const RunReport report = Summarize(records, kModels, kStart, kStart + Seconds(1), 0);
  EXPECT_DOUBLE_EQ(report.all.measured_accuracy.value(), 2 / 3.0);
}

// By hand: eight requests in two batches of 4, eight in one of 8; counted as batches, not as
// requests.
TEST(Summarize, CountsBatchesAndQueueing) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 16; ++i) {
    RequestRecord& record = records.emplace_back(Record(i, 30, Outcome::kMet));
    record.batch = i < 8 ? 4 : 8;
    record.started = record.arrival + Millis(i);
  }
  Summary all = Summarize(records, kModels, kStart, kStart + Seconds(1), 0).all;
  ASSERT_EQ(all.batch_sizes.size(), 2u);
  EXPECT_EQ(all.batch_sizes[0].size, 4);
  EXPECT_DOUBLE_EQ(all.batch_sizes[0].share, 2 / 3.0);
  EXPECT_EQ(all.batch_sizes[1].size, 8);
  EXPECT_EQ(BatchPercentile(all, 60), 4);
  EXPECT_EQ(BatchPercentile(all, 70), 8);
  EXPECT_EQ(BatchPercentile(all, 100), 8);
  EXPECT_EQ(BatchPercentile({}, 50), 0);
  EXPECT_EQ(all.queue_p50_ms, 7);
  EXPECT_EQ(all.queue_p99_ms, 15);
  // A client does not know when its request started.
  for (RequestRecord& record : records) record.started = kNever;
  all = Summarize(records, kModels, kStart, kStart + Seconds(1), 0).all;
  EXPECT_FALSE(all.queue_p50_ms);
}

TEST(LaneFigures, AreOverAllLanes) {
  RunReport run;
  run.lanes = {{1, 10}, {0.5, 3}, {0, 0}, {0, 0}};
  EXPECT_DOUBLE_EQ(BusyRatio(run), 0.375);
  EXPECT_DOUBLE_EQ(IdleRatio(run), 0.625);
  run.lanes = {{3, 10}, {0, 0}};  // three batches at once on one, and the other idle
  EXPECT_DOUBLE_EQ(IdleRatio(run), 0.5);
}

TEST(Summarize, OfNothingIsZero) {
  const RunReport report = Summarize({}, kModels, kStart, kStart + Seconds(1), 0);
  EXPECT_EQ(report.all.requests, 0);
  EXPECT_EQ(report.all.bad_ratio, 0);
  EXPECT_EQ(report.all.p99_ms, 0);
}

RunReport Whole() {
  RunReport report = Summarize(kRecords, kModels, kStart, kStart + Seconds(1), 0);
  report.policy = "edgeserving";
  report.scenario = "s\xff";  // bytes that are no text must not break the report
  report.source = "simulated";
  report.seed = 3;
  report.accuracy_limit = 0.8;
  report.accuracy_limit_by_rate = 0.75;
  report.settings["rate_rps"] = "100";
  report.lanes = {{0.5, 10}, {0.25, 6}};
  report.lanes_touched = 2;
  report.peak = {.rate_rps = 90, .seeds = 3, .staggered_bound_rps = 100, .fluid_limit_rps = 120};
  return report;
}

TEST(Average, IsTheMeanOverSeeds) {
  RunReport other = Whole();
  other.all.goodput_rps = 5;
  other.all.exits[0].share = 0.75;
  other.lanes[0].busy_ratio = 1;
  other.lanes_touched = 1;
  const std::vector<RunReport> runs = {Whole(), other};
  const RunReport mean = Average(runs);
  EXPECT_DOUBLE_EQ(mean.all.goodput_rps, 4);
  EXPECT_DOUBLE_EQ(mean.all.exits[0].share, 0.5);
  EXPECT_EQ(mean.all.requests, 14);
  EXPECT_DOUBLE_EQ(mean.lanes[0].busy_ratio, 0.75);
  EXPECT_EQ(mean.all.batch_sizes.size(), 1u);
  EXPECT_DOUBLE_EQ(mean.all.batch_sizes[0].share, 1);
  EXPECT_EQ(mean.lanes[1].batches, 12);
  EXPECT_DOUBLE_EQ(mean.lanes_touched, 1.5);  // not the lanes that some seed touched
  EXPECT_DOUBLE_EQ(mean.accuracy_limit.value(), 0.8);
  EXPECT_DOUBLE_EQ(mean.accuracy_limit_by_rate.value(), 0.75);
  EXPECT_DOUBLE_EQ(mean.models[0].figures.p50_ms, Whole().models[0].figures.p50_ms);
}

TEST(ReportJson, HoldsEveryFigureUnderItsName) {
  const auto json = nlohmann::json::parse(ToJson({{Whole()}, {{"speed", 2.5, ">= 2", true}}}));
  const auto& run = json.at("runs").at(0);
  EXPECT_EQ(run.at("policy"), "edgeserving");
  EXPECT_EQ(run.at("seed"), 3);
  EXPECT_EQ(run.at("settings").at("rate_rps"), "100");
  EXPECT_EQ(run.at("offered_rps"), 7);
  EXPECT_EQ(run.at("bad_ratio"), 0.5);
  EXPECT_EQ(run.at("exits").at("1"), 0.25);
  EXPECT_EQ(run.at("outcomes").at("met"), 3);
  EXPECT_EQ(run.at("accuracy_limit"), 0.8);
  EXPECT_EQ(run.at("accuracy_limit_by_rate"), 0.75);
  EXPECT_TRUE(run.at("measured_accuracy").is_null());
  EXPECT_EQ(run.at("models").at(1).at("name"), "b");
  EXPECT_EQ(run.at("models").at(1).at("requests"), 3);
  EXPECT_EQ(run.at("lanes").at(1).at("batches"), 6);
  EXPECT_EQ(run.at("lanes_touched"), 2);
  EXPECT_EQ(run.at("busy_ratio"), 0.375);
  EXPECT_EQ(run.at("idle_ratio"), 0.625);
  EXPECT_EQ(run.at("batch_sizes").at("2"), 1);
  EXPECT_EQ(run.at("peak").at("rate_rps"), 90);
  EXPECT_EQ(run.at("peak").at("of_staggered_bound"), 0.9);
  EXPECT_EQ(run.at("peak").at("of_fluid_limit"), 0.75);
  EXPECT_EQ(json.at("checks").at(0).at("ok"), true);
  EXPECT_FALSE(WriteJson({}, "/no/such/folder/x.json"));
}

TEST(ReportTable, IsAlignedAndFitsAPage) {
  RunReport long_name = Whole();
  long_name.policy = std::string(100, 'p');
  const std::vector<RunReport> runs = {Whole(), long_name};
  std::istringstream table(ToTable(runs, true));
  std::string header;
  std::getline(table, header);
  EXPECT_THAT(header, HasSubstr("goodput"));
  int rows = 0;
  for (std::string line; std::getline(table, line); ++rows) {
    EXPECT_LE(line.size(), rows < 7 ? 120u : 200u) << line;
    if (rows > 0 && rows < 7) {
      EXPECT_EQ(line.size(), header.size()) << line;
    }
  }
  EXPECT_EQ(rows, 1 + 2 * 3 + 1 + 2);  // units, figures, the long name, outcomes
  EXPECT_THAT(ToTable(runs, false), HasSubstr("20-50"));
  EXPECT_THAT(ToTable(runs, false), HasSubstr("50.00"));  // violations, in percent
  EXPECT_THAT(ToTable(runs, false), HasSubstr("25/75"));
}

// Whether a policy leaves lanes untouched says how many the load needs; of one lane it says
// nothing.
TEST(ReportTable, ShowsTheLanesTouchedWhereThereAreSeveral) {
  RunReport run = Whole();
  run.lanes_touched = 1.5;  // of two seeds
  std::istringstream table(ToTable(std::span(&run, 1), true));
  std::string what, unit, row, model;
  for (std::string* line : {&what, &unit, &row, &model}) std::getline(table, *line);
  const std::size_t end = unit.find("touched") + std::string("touched").size();
  ASSERT_LT(end, unit.size()) << unit;
  EXPECT_EQ(what.substr(end - 7, 7), "  lanes");
  EXPECT_EQ(row.substr(end - 7, 7), "    1.5");
  EXPECT_EQ(model.substr(end - 7, 7), "       ");
  run.lanes.pop_back();
  EXPECT_THAT(ToTable(std::span(&run, 1), true), Not(HasSubstr("touched")));
}

TEST(ReportTable, SaysOfEachCheckWhetherItHeld) {
  const Check checks[] = {{"fast", 3, ">= 2", true}, {"small", 9, "<= 5", false}};
  EXPECT_EQ(ToText(checks), "ok    fast: 3 (bar >= 2)\nMISS  small: 9 (bar <= 5)\n");
}

TEST(Provenance, IsKnown) {
  EXPECT_FALSE(BuildCommit().empty());
  EXPECT_THAT(MachineKind(), HasSubstr("core"));
}

}  // namespace
}  // namespace tactus
