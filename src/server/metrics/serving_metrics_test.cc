// What a scrape shows after known events.
#include "server/metrics/serving_metrics.h"

#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics/runtime_families.h"

namespace tactus {
namespace {

using testing::HasSubstr;
using testing::Not;

ModelSpec Spec(const std::string& name, Duration slo) {
  ModelSpec spec;
  spec.name = name;
  spec.version = 2;
  spec.slo = slo;
  spec.exits = {{"early", "", 0.5}, {"final", "", 0.9}};
  return spec;
}

// A call that arrived at 1 s and took `latency`, half of it in the queue.
RequestRecord Answered(Duration latency, Outcome outcome, std::uint16_t exit = 1) {
  RequestRecord r;
  r.arrival = kStart + Seconds(1);
  r.started = r.arrival + latency / 2;
  r.ended = r.arrival + latency;
  r.deadline = r.arrival + Millis(33);
  r.exit = exit;
  r.outcome = outcome;
  return r;
}

// The value of the one line that begins with `series`, or -1.
double Value(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  return -1;
}

TEST(ServingMetrics, CountsCallsByOutcomeAndAnswersByExit) {
  ServingMetrics metrics({});
  const ModelSpec m = Spec("m", Millis(33));
  metrics.OnAnswered(m, Answered(Millis(10), Outcome::kMet, 1), 3);
  metrics.OnAnswered(m, Answered(Millis(10), Outcome::kMet, 0), 1);
  metrics.OnAnswered(m, Answered(Millis(40), Outcome::kLate, 0), 1);
  metrics.OnAnswered(m, Answered(Millis(5), Outcome::kExpired), 1);
  const std::string text = metrics.Text();
  const auto requests = [&](const std::string& outcome) {
    return Value(text,
                 "tactus_requests_total{model=\"m\",outcome=\"" + outcome + "\",version=\"2\"}");
  };
  EXPECT_EQ(requests("met"), 2);
  EXPECT_EQ(requests("late"), 1);
  EXPECT_EQ(requests("expired"), 1);
  EXPECT_EQ(requests("cancelled"), 0);  // there from the start, so that rates begin at zero
  EXPECT_EQ(Value(text, R"(tactus_exit_total{exit="early",model="m",version="2"})"), 2);
  EXPECT_EQ(Value(text, R"(tactus_exit_total{exit="final",model="m",version="2"})"), 1);
  EXPECT_EQ(Value(text, R"(tactus_rows_total{model="m",version="2"})"), 5);
  EXPECT_EQ(Value(text, R"(tactus_queue_seconds_count{model="m",version="2"})"), 3);
}

// 33 ms is no edge of its own; a call of exactly 33 ms is within the SLO, one nanosecond more is
// not.
TEST(ServingMetrics, TheSloIsABucketEdge) {
  ServingMetrics metrics({});
  const ModelSpec m = Spec("m", Millis(33));
  metrics.OnAnswered(m, Answered(Millis(33), Outcome::kMet), 1);
  metrics.OnAnswered(m, Answered(Millis(33) + Nanos(1), Outcome::kLate), 1);
  const std::string text = metrics.Text();
  const auto within = [&](const std::string& outcome) {
    return Value(text, "tactus_request_duration_seconds_bucket{model=\"m\",outcome=\"" + outcome +
                           "\",version=\"2\",le=\"0.033\"}");
  };
  EXPECT_EQ(within("met"), 1);
  EXPECT_EQ(within("late"), 0);
  // And 0 is an edge of the slack: one call had none left, one was late.
  EXPECT_EQ(Value(text, R"(tactus_deadline_slack_seconds_bucket{model="m",version="2",le="0"})"),
            2);
}

TEST(ServingMetrics, EveryHistogramHasTheSlosThatWereKnown) {
  ServingMetrics metrics({.slos = {Millis(33), Millis(77)}});
  metrics.OnAnswered(Spec("m", Millis(33)), Answered(Millis(1), Outcome::kMet), 1);
  EXPECT_THAT(metrics.Text(), HasSubstr("le=\"0.077\""));
}

TEST(ServingMetrics, BatchesShowTheirSizeAndTheirPredictionsError) {
  ServingMetrics metrics({});
  BatchRecord batch;
  batch.batch = 5;
  batch.decided = kStart + Seconds(1);
  batch.expected_end = batch.decided + Millis(10);
  batch.started = batch.decided + Micros(30);
  batch.ended = batch.started + Millis(13);  // 0.3 beyond its profile
  batch.learnt = batch.ended + Micros(5);
  metrics.OnBatch(Spec("m", Millis(33)), batch);
  const std::string text = metrics.Text();
  EXPECT_EQ(Value(text, R"(tactus_batch_size_bucket{model="m",version="2",le="4"})"), 0);
  EXPECT_EQ(Value(text, R"(tactus_batch_size_bucket{model="m",version="2",le="5"})"), 1);
  const std::string error = R"(tactus_prediction_error_ratio_bucket{model="m",version="2",le=)";
  EXPECT_EQ(Value(text, error + "\"0.2\"}"), 0);
  EXPECT_EQ(Value(text, error + "\"0.5\"}"), 1);
  EXPECT_EQ(Value(text, "tactus_launch_overhead_seconds_bucket{le=\"2e-05\"}"), 0);
  EXPECT_EQ(Value(text, "tactus_launch_overhead_seconds_bucket{le=\"5e-05\"}"), 1);
}

// Without these nobody sees on a running server whether what strait predicts comes true.
TEST(ServingMetrics, PredictedAndMeasuredSlowdownsStandSideBySide) {
  ServingMetrics metrics({.predicts_slowdowns = true});
  const ModelSpec m = Spec("m", Millis(33));
  BatchRecord batch;
  batch.batch = 1;
  metrics.OnBatch(m, batch);  // had no neighbour
  batch.predicted_slowdown = 1.5;
  batch.measured_slowdown = 2;  // off by a quarter
  metrics.OnBatch(m, batch);
  batch.measured_slowdown = 1.25;  // and by a fifth the other way
  metrics.OnBatch(m, batch);
  batch.status = BatchStatus::kFailed;
  metrics.OnBatch(m, batch);
  const std::string text = metrics.Text();
  const auto of = [&](const std::string& what) {
    return Value(text, "tactus_slowdown_" + what + "{model=\"m\",version=\"2\"}");
  };
  EXPECT_EQ(of("predicted_ratio_count"), 2);
  EXPECT_EQ(of("predicted_ratio_sum"), 3);
  EXPECT_EQ(of("measured_ratio_count"), 2);
  EXPECT_EQ(of("measured_ratio_sum"), 3.25);
  EXPECT_NEAR(of("error_ratio_sum"), 0.25 + 0.2, 1e-9);
  const std::string error = R"(tactus_slowdown_error_ratio_bucket{model="m",version="2",le=)";
  EXPECT_EQ(Value(text, error + "\"0.15\"}"), 0);
  EXPECT_EQ(Value(text, error + "\"0.3\"}"), 2);

  ServingMetrics other({});  // its policy predicts nothing
  other.OnBatch(m, batch);
  EXPECT_THAT(other.Text(), Not(HasSubstr("tactus_slowdown")));
}

// Without it nobody sees that clients send rows that fail the batches of others.
TEST(ServingMetrics, RowsThatRanApartAreCountedByResult) {
  ServingMetrics metrics({});
  const ModelSpec m = Spec("m", Millis(33));
  BatchRecord batch;
  batch.batch = 8;
  batch.status = BatchStatus::kFailed;
  metrics.OnBatch(m, batch);
  batch.apart = {.answered = 5, .failed = 2, .given_up = 1};
  metrics.OnBatch(m, batch);
  const std::string text = metrics.Text();
  const auto of = [&](const std::string& result) {
    return Value(text,
                 R"(tactus_rows_apart_total{model="m",result=")" + result + R"(",version="2"})");
  };
  EXPECT_EQ(of("answered"), 5);
  EXPECT_EQ(of("failed"), 2);
  EXPECT_EQ(of("given_up"), 1);
}

// Clients choose the names they ask for; a label for each would let them fill the memory.
TEST(ServingMetrics, RefusalsMakeNoSeriesForEachName) {
  ServingMetrics metrics({});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics, t] {
      for (int i = 0; i < 100; ++i) {
        metrics.OnRefused("m" + std::to_string(t * 100 + i), ErrorCode::kResourceExhausted);
      }
    });
  }
  threads.clear();
  const std::string text = metrics.Text();
  EXPECT_EQ(Value(text, R"(tactus_refused_total{reason="resource_exhausted"})"), 400);
  EXPECT_THAT(text, Not(HasSubstr("m17")));
}

RuntimeReading Reading() {
  RuntimeReading reading;
  reading.pending = 7;
  reading.calls = 4;
  reading.uptime = Seconds(10);
  reading.lanes = {{Seconds(5), 50}, {Seconds(1), 10}};
  reading.models = {{"m", 2, "READY", ""}, {"n", 1, "UNAVAILABLE", "no file"}};
  ModelStatistics s;
  s.name = "m";
  s.version = 2;
  s.inference_count = 12;
  s.success = {9, 9'000'000};
  s.latency_ratios = {1, 1.25};
  reading.statistics = {s};
  reading.input_bytes = 100;
  reading.answer_bytes = 200;
  reading.arenas = {{"m", 2, 4000, 3000}};
  return reading;
}

TEST(ServingMetrics, GaugesAreReadAtEachScrapeUntilTheRuntimeIsGone) {
  ServingMetrics metrics({.version = "1", .commit = "c", .policy = "p"});
  RuntimeReading reading = Reading();
  metrics.Watch([&] { return reading; });
  std::string text = metrics.Text();
  EXPECT_EQ(Value(text, "tactus_pending_requests"), 7);
  EXPECT_EQ(Value(text, R"(tactus_pending_bytes{tensors="inputs"})"), 100);
  EXPECT_EQ(Value(text, R"(tactus_pending_bytes{tensors="answers"})"), 200);
  EXPECT_EQ(Value(text, R"(tactus_engine_arena_bytes{model="m",version="2"})"), 4000);
  EXPECT_EQ(Value(text, R"(tactus_engine_arena_in_use_bytes{model="m",version="2"})"), 3000);
  EXPECT_EQ(Value(text, R"(tactus_lane_busy_ratio{lane="0"})"), 0.5);
  EXPECT_EQ(Value(text, R"(tactus_lane_batches_total{lane="1"})"), 10);
  EXPECT_EQ(Value(text, R"(tactus_model_ready{model="m",version="2"})"), 1);
  EXPECT_EQ(Value(text, R"(tactus_model_ready{model="n",version="1"})"), 0);
  EXPECT_EQ(Value(text, R"(tactus_latency_ratio{model="m",version="2",lane_class="1"})"), 1.25);
  EXPECT_EQ(Value(text, R"(tactus_build_info{commit="c",policy="p",version="1"})"), 1);
  EXPECT_GT(Value(text, "process_resident_memory_bytes"), 0);
  EXPECT_GE(Value(text, "tactus_heap_in_use_bytes"), 0);
  EXPECT_THAT(text, Not(HasSubstr("nv_")));
  // Two seconds later lane 0 was busy for one of them.
  reading.uptime = Seconds(12);
  reading.lanes[0].busy = Seconds(6);
  EXPECT_EQ(Value(metrics.Text(), R"(tactus_lane_busy_ratio{lane="0"})"), 0.5);
  metrics.Watch({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("tactus_pending_requests")));
}

TEST(ServingMetrics, TheAdviceIsShownWithWhatItFollowsFrom) {
  ServingMetrics metrics({});
  RuntimeReading reading = Reading();
  metrics.Watch([&] { return reading; });
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("tactus_autoscale")));  // nobody samples the load
  reading.advice = {.advised = 5,
                    .reading = {.lanes = 4, .requests = 80, .bad_ratio = 0.2, .idle_ratio = 0.1}};
  std::string text = metrics.Text();
  EXPECT_EQ(Value(text, "tactus_autoscale_advice_lanes"), 5);
  EXPECT_EQ(Value(text, "tactus_autoscale_lanes"), 4);
  EXPECT_EQ(Value(text, "tactus_autoscale_bad_ratio"), 0.2);
  EXPECT_EQ(Value(text, "tactus_autoscale_idle_ratio"), 0.1);
  EXPECT_EQ(Value(text, "tactus_autoscale_window_calls"), 80);
  reading.statistics[0].emulated = true;
  EXPECT_EQ(Value(metrics.Text(), R"(tactus_autoscale_advice_lanes{emulated="true"})"), 5);
}

TEST(ServingMetrics, LanesThatDrainAreShownWithForHowLong) {
  ServingMetrics metrics({});
  RuntimeReading reading = Reading();
  metrics.Watch([&] { return reading; });
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("tactus_plan_drain")));  // there is no plan
  reading.layout = {.plan = std::make_shared<const Plan>(), .draining = 2, .drain = Millis(1500)};
  EXPECT_EQ(Value(metrics.Text(), "tactus_plan_draining_lanes"), 2);
  EXPECT_EQ(Value(metrics.Text(), "tactus_plan_drain_seconds"), 1.5);
}

// Without these, nobody would see at which stage a camera's frames are lost.
TEST(ServingMetrics, AStreamsFramesAreShownByStageAndReason) {
  ServingMetrics metrics({});
  RuntimeReading reading = Reading();
  reading.streams = {{.stream = "door",
                      .read = 12,
                      .ended = {{"queue", "newer", 7}, {"answer", "served", 5}},
                      .reconnects = 2,
                      .running = true,
                      .webhook = {{"sent", 4}, {"missed", 1}}}};
  metrics.Watch([&] { return reading; });
  const std::string text = metrics.Text();
  EXPECT_EQ(Value(text, R"(tactus_stream_frames_read_total{stream="door"})"), 12);
  const std::string frames = R"(tactus_stream_frames_total{stream="door",stage=)";
  EXPECT_EQ(Value(text, frames + R"("queue",reason="newer"})"), 7);
  EXPECT_EQ(Value(text, frames + R"("answer",reason="served"})"), 5);
  EXPECT_EQ(Value(text, R"(tactus_stream_reconnects_total{stream="door"})"), 2);
  EXPECT_EQ(Value(text, R"(tactus_stream_running{stream="door"})"), 1);
  EXPECT_EQ(Value(text, R"(tactus_stream_webhook_total{stream="door",outcome="missed"})"), 1);
}

// Without these, a source's page would not say that its frames are lost on the way.
TEST(ServingMetrics, StepsOnOtherNodesAreShownByStepAndNode) {
  ServingMetrics metrics({});
  RuntimeReading reading = Reading();
  metrics.Watch([&] { return reading; });
  EXPECT_EQ(metrics.Text().find("tactus_remote_step"), std::string::npos);
  reading.remote = {{.pipeline = "street",
                     .step = "find+read",
                     .node = "near",
                     .answered = 5,
                     .failed = 2,
                     .bytes_out = 4000,
                     .bytes_in = 300,
                     .there = Millis(1500),
                     .link = Millis(250)}};
  const std::string text = metrics.Text();
  const std::string step = R"({pipeline="street",step="find+read",node="near",)";
  EXPECT_EQ(Value(text, "tactus_remote_step_calls_total" + step + R"(outcome="answered"})"), 5);
  EXPECT_EQ(Value(text, "tactus_remote_step_calls_total" + step + R"(outcome="failed"})"), 2);
  EXPECT_EQ(Value(text, "tactus_remote_step_bytes_total" + step + R"(direction="out"})"), 4000);
  EXPECT_EQ(Value(text, "tactus_remote_step_bytes_total" + step + R"(direction="in"})"), 300);
  EXPECT_EQ(Value(text, "tactus_remote_step_seconds_total" + step + R"(part="there"})"), 1.5);
  EXPECT_EQ(Value(text, "tactus_remote_step_seconds_total" + step + R"(part="link"})"), 0.25);
}

// Figures of an emulated device must not pass for measured ones on somebody's dashboard.
TEST(ServingMetrics, AnEmulatedModelsSeriesSaySo) {
  ServingMetrics metrics({.triton_names = true});
  RuntimeReading reading = Reading();
  reading.statistics[0].emulated = true;
  metrics.Watch([&] { return reading; });
  ModelSpec m = Spec("m", Millis(33));
  m.platform = "emulated";
  metrics.OnAnswered(m, Answered(Millis(10), Outcome::kMet), 1);
  const std::string text = metrics.Text();
  EXPECT_EQ(Value(text, R"(tactus_model_emulated{model="m",version="2"})"), 1);
  EXPECT_EQ(Value(text, R"(tactus_rows_total{emulated="true",model="m",version="2"})"), 1);
  EXPECT_EQ(Value(text, R"(nv_inference_count{model="m",version="2",emulated="true"})"), 12);
}

// The advice must count what did not fit, and nothing that clients did to themselves.
TEST(ServingMetrics, CallsAreGoodOrBadOrNoLoad) {
  ServingMetrics metrics({});
  const ModelSpec m = Spec("m", Millis(33));
  for (const Outcome outcome : {Outcome::kMet, Outcome::kLate, Outcome::kShed, Outcome::kExpired,
                                Outcome::kError, Outcome::kCancelled}) {
    metrics.OnAnswered(m, Answered(Millis(10), outcome), 1);
  }
  metrics.OnRefused("m", ErrorCode::kResourceExhausted);  // no room
  metrics.OnRefused("m", ErrorCode::kInvalidArgument);
  metrics.OnRefused("m", ErrorCode::kUnavailable);  // stopping, or the model is being replaced
  EXPECT_EQ(metrics.calls().good, 1);
  EXPECT_EQ(metrics.calls().bad, 5);
}

// Without this, advice and the live page take a pipeline's call for as many as it has steps.
TEST(ServingMetrics, StepsOfPipelinesCountForTheirModelsOnly) {
  ServingMetrics metrics({});
  const ModelSpec m = Spec("m", Millis(33));
  metrics.OnAnswered(m, Answered(Millis(10), Outcome::kMet), 1);
  metrics.OnStepAnswered(m, Answered(Millis(10), Outcome::kMet), 1);
  metrics.OnStepAnswered(m, Answered(Millis(40), Outcome::kLate), 1);
  EXPECT_EQ(metrics.calls().good, 1);
  EXPECT_EQ(metrics.calls().bad, 0);
  const std::pair<std::string, std::int64_t> key("m", 2);
  EXPECT_EQ(metrics.of_clients()[key], (OutcomeCounts{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(metrics.of_steps()[key], (OutcomeCounts{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(Value(metrics.Text(), R"(tactus_requests_total{model="m",outcome="met",version="2"})"),
            2);
}

TEST(ServingMetrics, TritonsNamesStandBesideOursWhenAskedFor) {
  ServingMetrics metrics({.triton_names = true});
  metrics.Watch([] { return Reading(); });
  metrics.OnAnswered(Spec("m", Millis(33)), Answered(Millis(5), Outcome::kShed), 1);
  metrics.OnAnswered(Spec("m", Millis(33)), Answered(Millis(5), Outcome::kExpired), 1);
  const std::string text = metrics.Text();
  EXPECT_EQ(Value(text, R"(nv_inference_request_success{model="m",version="2"})"), 9);
  EXPECT_EQ(Value(text, R"(nv_inference_count{model="m",version="2"})"), 12);
  EXPECT_EQ(Value(text, R"(nv_inference_request_duration_us{model="m",version="2"})"), 9000);
  const std::string failure = R"(nv_inference_request_failure{model="m",version="2",reason=)";
  EXPECT_EQ(Value(text, failure + "\"REJECTED\"}"), 2);
  EXPECT_EQ(Value(text, failure + "\"BACKEND\"}"), 0);
}

TEST(BusyRatio, ForgetsWhatIsOlderThanItsWindow) {
  BusyRatio ratio;
  ratio.Update(Seconds(100), {{Seconds(90), 0}});
  EXPECT_THAT(ratio.Update(Seconds(105), {{Seconds(91), 0}}), testing::ElementsAre(0.2));
  // The reading at 100 s is gone; busy from 105 to 112 s for 3.5 of 7.
  EXPECT_THAT(ratio.Update(Seconds(112), {{FromSeconds(94.5), 0}}), testing::ElementsAre(0.5));
}

}  // namespace
}  // namespace tactus
