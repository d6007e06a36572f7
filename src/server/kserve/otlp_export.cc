#include "server/kserve/otlp_export.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/host_port.h"
#include "base/rng.h"
#include "otlp_trace.pb.h"
#include "platform/process.h"
#include "server/kserve/json_text.h"

namespace tactus {
namespace {

constexpr std::chrono::seconds kGather{1};
constexpr std::chrono::seconds kLongestPause{30};
constexpr Duration kTimeout = Seconds(10);
constexpr Duration kLastTimeout = Seconds(1);
constexpr std::chrono::seconds kLastOnes{1};

// Proto's strings are UTF-8: one that is not would cost the whole body.
std::string Text(std::string_view text) { return std::string(text.substr(0, Utf8Prefix(text))); }

template <class Holder>
otlp::AnyValue& Attribute(Holder& holder, std::string_view key) {
  otlp::KeyValue& attribute = *holder.add_attributes();
  attribute.set_key(key.data(), key.size());
  return *attribute.mutable_value();
}

// A span of the same trace.
class SpanMaker {
 public:
  SpanMaker(otlp::ScopeSpans& spans, std::string trace_id, std::chrono::nanoseconds since_1970,
            const std::function<std::uint64_t()>& random)
      : spans_(spans), trace_id_(std::move(trace_id)), since_1970_(since_1970), random_(random) {}

  otlp::Span& Add(std::string_view name, std::string_view parent, Trace::Instant start,
                  Trace::Instant end) {
    otlp::Span& span = *spans_.add_spans();
    span.set_trace_id(trace_id_);
    const std::uint64_t id = std::max<std::uint64_t>(random_(), 1);  // 0 is none
    span.set_span_id(std::string(reinterpret_cast<const char*>(&id), sizeof id));
    span.set_parent_span_id(std::string(parent));
    span.set_name(Text(name));
    span.set_kind(otlp::Span::INTERNAL);
    span.set_start_time_unix_nano(At(start));
    span.set_end_time_unix_nano(At(end));
    return span;
  }

 private:
  std::uint64_t At(Trace::Instant instant) const {
    return static_cast<std::uint64_t>((instant.time_since_epoch() + since_1970_).count());
  }

  otlp::ScopeSpans& spans_;
  const std::string trace_id_;
  const std::chrono::nanoseconds since_1970_;
  const std::function<std::uint64_t()>& random_;
};

std::string Bytes(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string NewTraceId(const std::function<std::uint64_t()>& random) {
  const std::uint64_t id[] = {std::max<std::uint64_t>(random(), 1), random()};
  return {reinterpret_cast<const char*>(id), sizeof id};
}

bool IsServersFault(Outcome outcome) {
  return outcome == Outcome::kError || outcome == Outcome::kShed || outcome == Outcome::kExpired;
}

void AddHow(otlp::Span& span, Outcome outcome, int batch, const std::string& exit) {
  Attribute(span, "tactus.outcome").set_string_value(std::string(Name(outcome)));
  if (batch > 0) Attribute(span, "tactus.batch").set_int_value(batch);
  if (!exit.empty()) Attribute(span, "tactus.exit").set_string_value(Text(exit));
  if (!IsServersFault(outcome)) return;
  span.mutable_status()->set_code(otlp::Status::ERROR);
  span.mutable_status()->set_message(std::string(Name(outcome)));
}

void AddSpans(const Trace& trace, SpanMaker make) {
  const std::string parent = trace.parent ? Bytes(trace.parent->span) : "";
  otlp::Span& whole = make.Add("infer " + trace.model, parent, trace.received, trace.answered);
  whole.set_kind(otlp::Span::SERVER);
  Attribute(whole, "tactus.model").set_string_value(Text(trace.model));
  Attribute(whole, "tactus.version").set_int_value(trace.version);
  if (!trace.request_id.empty()) {
    Attribute(whole, "tactus.request_id").set_string_value(Text(trace.request_id));
  }
  if (trace.emulated) Attribute(whole, "tactus.emulated").set_bool_value(true);
  AddHow(whole, trace.outcome, trace.batch, trace.exit);
  const std::string id = whole.span_id();  // a further span may move this one
  for (const StepRun& run : trace.steps) {
    otlp::Span& step = make.Add("step " + run.step, id, run.began, run.ended);
    AddHow(step, run.outcome, run.batch, run.exit);
    Attribute(step, "tactus.queue_us").set_int_value(run.queue_us);
  }
  if (!trace.compute) return;
  make.Add("queue", id, trace.queued, trace.compute->start);
  make.Add("compute", id, trace.compute->start, trace.compute->end);
}

std::chrono::nanoseconds Since1970() {
  return std::chrono::system_clock::now().time_since_epoch() -
         std::chrono::steady_clock::now().time_since_epoch();
}

bool IsBusy(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

}  // namespace

Expected<HttpUrl> ParseOtlpUrl(std::string_view url) {
  auto to = ParseHttpUrl(url, 4318);
  if (!to) {
    return InvalidArgument(
        fmt::format("'{}' is no address of a collector: write http://HOST:4318, where it takes "
                    "OTLP over HTTP (https is not spoken: let a collector on this machine do that)",
                    url));
  }
  if (to->path.size() <= 1) to->path = "/v1/traces";
  return *std::move(to);
}

std::string OtlpBody(std::span<const Trace> traces, std::chrono::nanoseconds since_1970,
                     const std::function<std::uint64_t()>& random) {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans& resource = *request.add_resource_spans();
  Attribute(*resource.mutable_resource(), "service.name").set_string_value("tactus");
  otlp::ScopeSpans& spans = *resource.add_scope_spans();
  spans.mutable_scope()->set_name("tactus");
  for (const Trace& trace : traces) {
    std::string id = trace.parent ? Bytes(trace.parent->trace) : NewTraceId(random);
    AddSpans(trace, SpanMaker(spans, std::move(id), since_1970, random));
  }
  return request.SerializeAsString();
}

std::size_t SpansOf(const Trace& trace) { return 1 + trace.steps.size() + (trace.compute ? 2 : 0); }

OtlpExporter::OtlpExporter(HttpUrl to, std::function<void(const std::string&)> say,
                           std::function<void(std::uint64_t)> lost)
    : to_(std::move(to)),
      say_(std::move(say)),
      tell_lost_(std::move(lost)),
      thread_([this] { Run(); }) {}

OtlpExporter::~OtlpExporter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.request_stop();
  changed_.notify_all();
  thread_.join();
  if (lost_ > 0) Say(fmt::format("{} spans were lost", lost_));
}

void OtlpExporter::Add(Trace trace) {
  const std::size_t spans = SpansOf(trace);
  bool full = false;
  bool enough = false;
  {
    const std::lock_guard lock(mutex_);
    full = spans_ + spans > kMostSpans;
    if (!full) {
      enough = spans_ < kSpansInOne && spans_ + spans >= kSpansInOne;
      spans_ += spans;
      waiting_.push_back(std::move(trace));
    }
  }
  if (full) Lose(spans, "the collector is away, or too slow for so many; trace fewer calls");
  if (enough) changed_.notify_all();
}

void OtlpExporter::Say(const std::string& what) const {
  say_(fmt::format("--otlp {}: {}", to_.endpoint.text(), what));
}

void OtlpExporter::Lose(std::uint64_t spans, const std::string& why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = lost_ == 0;
    lost_ += spans;
  }
  tell_lost_(spans);
  if (first) Say(fmt::format("{}; serving goes on without these spans", why));
}

bool OtlpExporter::Send(const Body& body, bool last) {
  const auto reply =
      PostOnce(to_.endpoint, to_.path, "application/x-protobuf", body.bytes,
               last ? kLastTimeout : kTimeout, last ? std::stop_token() : stopped_.get_token());
  if (!reply || IsBusy(reply->status)) {
    const std::string why =
        reply ? fmt::format("the collector answers {}", reply->status) : reply.error().message;
    if (!std::exchange(away_, true) && !stopped_.stop_requested()) {
      Say(fmt::format("{}: spans wait; see that a collector takes OTLP over HTTP there", why));
    }
    return false;
  }
  away_ = false;
  otlp::ExportTraceServiceResponse taken;
  if (reply->status / 100 != 2) {
    Lose(body.spans, fmt::format("the collector answers {} for POST {}", reply->status, to_.path));
  } else if (taken.ParseFromString(reply->body) && taken.partial_success().rejected_spans() > 0) {
    Lose(static_cast<std::uint64_t>(taken.partial_success().rejected_spans()),
         "the collector refuses some: " + taken.partial_success().error_message().substr(0, 300));
  }
  return true;
}

OtlpExporter::Body OtlpExporter::Take(std::unique_lock<std::mutex>& lock) {
  // Traces of several servers meet in one collector.
  thread_local Rng random = Rng::Stream(UniqueNumber(), "spans");
  Body body;
  std::vector<Trace> traces;
  while (!waiting_.empty() && body.spans < kSpansInOne) {
    traces.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    body.spans += SpansOf(traces.back());
  }
  if (traces.empty()) return body;
  lock.unlock();
  body.bytes = OtlpBody(traces, Since1970(), [] { return random.Next(); });
  lock.lock();
  return body;
}

void OtlpExporter::Run() {
  std::chrono::seconds pause = kGather;
  Body body;
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    changed_.wait_for(lock, pause,
                      [&] { return stop_ || (pause == kGather && spans_ >= kSpansInOne); });
    last = stop_;
    const auto end = std::chrono::steady_clock::now() + kLastOnes;
    do {
      if (body.bytes.empty()) body = Take(lock);
      if (body.bytes.empty()) break;
      lock.unlock();
      const bool sent = Send(body, last);
      lock.lock();
      pause = sent ? kGather : std::min(2 * pause, kLongestPause);
      if (!sent) break;
      spans_ -= std::exchange(body, Body()).spans;
    } while (last ? std::chrono::steady_clock::now() < end : !stop_ && spans_ >= kSpansInOne);
  }
  const std::size_t left = spans_;
  lock.unlock();
  if (left > 0) Lose(left, "the server stops, and the collector has not taken all");
}

}  // namespace tactus
