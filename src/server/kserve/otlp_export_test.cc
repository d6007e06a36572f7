#include "server/kserve/otlp_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "otlp_trace.pb.h"

namespace tactus {
namespace {

using std::chrono::nanoseconds;

TEST(ParseOtlpUrl, FillsInPortAndPath) {
  const auto text = [](std::string_view url) {
    const auto to = ParseOtlpUrl(url);
    return to ? to->endpoint.text() + to->path : "error";
  };
  EXPECT_EQ(text("http://collector"), "collector:4318/v1/traces");
  EXPECT_EQ(text("http://127.0.0.1:5000/"), "127.0.0.1:5000/v1/traces");
  EXPECT_EQ(text("http://[::1]"), "[::1]:4318/v1/traces");
  EXPECT_EQ(text("http://[::1]:80/my/traces"), "[::1]:80/my/traces");
}

TEST(ParseOtlpUrl, RefusesWhatIsNone) {
  for (const std::string url : {"", "collector:4318", "https://collector:4318", "http://",
                                "http://:4318", "http://collector:0", "http://collector:x"}) {
    const auto to = ParseOtlpUrl(url);
    ASSERT_FALSE(to) << url;
    EXPECT_THAT(to.error().message, testing::HasSubstr("write http://HOST:4318"));
  }
}

Trace Ran() {
  const auto at = [](int ns) { return Trace::Instant(nanoseconds(ns)); };
  Trace trace;
  trace.model = "m";
  trace.version = 3;
  trace.request_id = "seven";
  trace.parent = TraceParent{.trace = {1, 2}, .span = {3, 4}, .sampled = true};
  trace.batch = 4;
  trace.exit = "final";
  trace.received = at(100);
  trace.queued = at(110);
  trace.compute = Trace::Compute{at(150), at(180)};
  trace.answered = at(190);
  return trace;
}

otlp::ScopeSpans Spans(const std::vector<Trace>& traces) {
  std::uint64_t next = 1;
  otlp::ExportTraceServiceRequest request;
  EXPECT_TRUE(request.ParseFromString(OtlpBody(traces, nanoseconds(1000), [&] { return next++; })));
  EXPECT_EQ(request.resource_spans_size(), 1);
  return request.resource_spans(0).scope_spans(0);
}

TEST(OtlpBody, HasASpanOfTheCallersTraceAndTwoBelowIt) {
  const otlp::ScopeSpans spans = Spans({Ran()});
  ASSERT_EQ(spans.spans_size(), 3);
  const otlp::Span& call = spans.spans(0);
  EXPECT_EQ(call.name(), "infer m");
  EXPECT_EQ(call.kind(), otlp::Span::SERVER);
  EXPECT_EQ(call.trace_id(), std::string({1, 2}) + std::string(14, '\0'));
  EXPECT_EQ(call.parent_span_id(), std::string({3, 4}) + std::string(6, '\0'));
  EXPECT_EQ(call.start_time_unix_nano(), 1100U);
  EXPECT_EQ(call.end_time_unix_nano(), 1190U);
  EXPECT_EQ(call.status().code(), otlp::Status::UNSET);
  std::map<std::string, std::string> said;
  for (const auto& each : call.attributes()) said[each.key()] = each.value().ShortDebugString();
  EXPECT_EQ(said["tactus.outcome"], R"(string_value: "met")");
  EXPECT_EQ(said["tactus.batch"], "int_value: 4");
  EXPECT_EQ(said["tactus.request_id"], R"(string_value: "seven")");
  for (const auto& [place, name, start, end] :
       {std::tuple(1, "queue", 1110U, 1150U), std::tuple(2, "compute", 1150U, 1180U)}) {
    const otlp::Span& part = spans.spans(place);
    EXPECT_EQ(part.name(), name);
    EXPECT_EQ(part.trace_id(), call.trace_id());
    EXPECT_EQ(part.parent_span_id(), call.span_id());
    EXPECT_NE(part.span_id(), call.span_id());
    EXPECT_EQ(part.start_time_unix_nano(), start);
    EXPECT_EQ(part.end_time_unix_nano(), end);
  }
}

TEST(OtlpBody, AnEnsemblesStepsLieBelowItsCall) {
  Trace trace = Ran();
  trace.compute.reset();
  trace.steps = {{.step = "find",
                  .began = trace.queued,
                  .ended = trace.answered,
                  .outcome = Outcome::kExpired,
                  .batch = 2,
                  .queue_us = 7,
                  .exit = {}}};
  const otlp::ScopeSpans spans = Spans({trace});
  ASSERT_EQ(spans.spans_size(), 2);
  const otlp::Span& step = spans.spans(1);
  EXPECT_EQ(step.name(), "step find");
  EXPECT_EQ(step.parent_span_id(), spans.spans(0).span_id());
  EXPECT_EQ(step.start_time_unix_nano(), 1110U);
  EXPECT_EQ(step.status().message(), "expired");
}

TEST(OtlpBody, ACallWithoutAParentHasATraceOfItsOwn) {
  Trace alone = Ran();
  alone.parent.reset();
  alone.compute.reset();
  alone.outcome = Outcome::kShed;
  const otlp::ScopeSpans spans = Spans({alone, alone});
  ASSERT_EQ(spans.spans_size(), 2) << "it did not run";
  EXPECT_EQ(spans.spans(0).trace_id().size(), 16U);
  EXPECT_NE(spans.spans(0).trace_id(), spans.spans(1).trace_id());
  EXPECT_TRUE(spans.spans(0).parent_span_id().empty());
  EXPECT_EQ(spans.spans(0).status().code(), otlp::Status::ERROR);
  EXPECT_EQ(spans.spans(0).status().message(), "shed");
}

}  // namespace
}  // namespace tactus
