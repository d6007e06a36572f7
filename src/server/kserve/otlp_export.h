// Traces to a collector of OpenTelemetry: OTLP over HTTP, as protobuf.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/expected.h"
#include "http_client/post.h"
#include "server/kserve/trace.h"

namespace tactus {

struct OtlpAddress {
  HttpEndpoint endpoint;
  std::string path;
};

// "http://collector:4318": the port is 4318 and the path /v1/traces where none is said. An error
// for anything else, "https://" too.
Expected<OtlpAddress> ParseOtlpUrl(std::string_view url);

// The body of a POST: a span of kind SERVER for each trace, in its caller's trace or in one of its
// own, and under it "queue" and "compute" where it ran once, and an ensemble's steps. `since_1970`:
// added to instants.
std::string OtlpBody(std::span<const Trace> traces, std::chrono::nanoseconds since_1970,
                     const std::function<std::uint64_t()>& random);

// A thread of its own sends what has come in a second, or kMostInOne traces. What a collector has
// no time for (429, 502, 503, 504, no answer) is sent again after 2 s, 4 s and so on up to 30.
class OtlpExporter final : public TraceSink {
 public:
  static constexpr std::size_t kMostInOne = 512;
  static constexpr std::size_t kMostWaiting = 4096;

  // `say`: as TraceFile's.
  OtlpExporter(OtlpAddress to, std::function<void(const std::string&)> say);
  // Sends the rest, once.
  ~OtlpExporter() override;

  // Drops the trace, and counts it as lost, if kMostWaiting wait.
  void Add(Trace trace) override;
  std::uint64_t lost() const;

 private:
  void Run();
  // False: to be sent again.
  bool Send(const std::vector<Trace>& traces, Duration timeout);
  void Lose(std::uint64_t traces, const std::string& why);

  const OtlpAddress to_;
  const std::function<void(const std::string&)> say_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Trace> waiting_;
  bool stop_ = false;
  std::uint64_t lost_ = 0;
  std::thread thread_;
};

}  // namespace tactus
