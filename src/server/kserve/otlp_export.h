// Traces to a collector of OpenTelemetry: OTLP over HTTP, as protobuf.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/expected.h"
#include "http_client/post.h"
#include "server/kserve/trace.h"

namespace tactus {

// "http://collector:4318": the port is 4318 and the path /v1/traces where none is said. An error
// for anything else, "https://" too.
Expected<HttpUrl> ParseOtlpUrl(std::string_view url);

// The body of a POST: a span of kind SERVER for each trace, in its caller's trace or in one of its
// own, and under it "queue" and "compute" where it ran once, and an ensemble's steps. `since_1970`:
// added to instants.
std::string OtlpBody(std::span<const Trace> traces, std::chrono::nanoseconds since_1970,
                     const std::function<std::uint64_t()>& random);

// Spans that a trace is.
std::size_t SpansOf(const Trace& trace);

// A thread of its own sends what has come in a second, or kSpansInOne spans. What a collector has
// no time for (429, 502, 503, 504, no answer) is sent again, the same bytes, after 2 s, 4 s and so
// on up to 30: a collector that took it and could not say so has it twice, with the same ids.
class OtlpExporter final : public TraceSink {
 public:
  static constexpr std::size_t kSpansInOne = 2048;
  static constexpr std::size_t kMostSpans = 16384;  // that wait or are under way

  // `say`: as TraceFile's. `lost`: told of spans that the collector does not get.
  OtlpExporter(HttpUrl to, std::function<void(const std::string&)> say,
               std::function<void(std::uint64_t)> lost);
  // Sends the rest, as far as that goes in two seconds or so.
  ~OtlpExporter() override;

  // Beyond kMostSpans the trace is lost.
  void Add(Trace trace) override;

 private:
  // Spans as they go out.
  struct Body {
    std::string bytes;  // empty: there is none
    std::size_t spans = 0;
  };

  void Run();
  // Those that came first.
  Body Take(std::unique_lock<std::mutex>& lock);
  // False: to be sent again.
  bool Send(const Body& body, bool last);
  void Lose(std::uint64_t spans, const std::string& why);
  void Say(const std::string& what) const;

  const HttpUrl to_;
  const std::function<void(const std::string&)> say_;
  const std::function<void(std::uint64_t)> tell_lost_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Trace> waiting_;
  std::size_t spans_ = 0;  // with those under way
  bool stop_ = false;
  std::uint64_t lost_ = 0;
  bool away_ = false;  // the thread's: the collector has not answered
  std::stop_source stopped_;
  std::thread thread_;
};

}  // namespace tactus
