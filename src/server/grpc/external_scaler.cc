#include "server/grpc/external_scaler.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

namespace tactus {

using externalscaler::IsActiveResponse;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// One StreamIsActive call: a message at its start and one for each change. Owns itself: gRPC's last
// word is OnDone.
class ActiveStream final : public grpc::ServerWriteReactor<IsActiveResponse> {
 public:
  explicit ActiveStream(ExternalScalerRpcs& owner) : owner_(owner) {}

  void Tell(bool active) {
    Step([&] { active_ = active; });
  }
  void End(grpc::Status status) {
    Step([&] {
      if (!ended_) ended_ = std::move(status);
    });
  }

  void OnWriteDone(bool ok) override {
    Step([&] {
      writing_ = false;
      if (!ok && !ended_) ended_ = grpc::Status::CANCELLED;
    });
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    owner_.Forget(this);
    delete this;
  }

 private:
  // Changes the state under the lock, then does what it asks for without: one write at a time, the
  // newest state only, and nothing after the end.
  template <class Change>
  void Step(Change change) {
    bool write = false;
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      change();
      if (writing_ || finished_) return;
      if (ended_) {
        finish = finished_ = true;
      } else if (active_ && active_ != told_) {
        told_ = active_;
        message_.set_result(*active_);
        write = writing_ = true;
      }
    }
    if (write) StartWrite(&message_);
    if (finish) Finish(*ended_);
  }

  ExternalScalerRpcs& owner_;
  std::mutex mutex_;  // guards what follows
  IsActiveResponse message_;
  std::optional<bool> active_;
  std::optional<bool> told_;
  std::optional<grpc::Status> ended_;  // never changes once it is set
  bool writing_ = false;
  bool finished_ = false;
};

namespace {

struct Metric {
  std::string_view name;
  double (*value)(const LaneAdvice& advice);
};
// The first is the one to scale by. Their names are those of the metrics page.
constexpr std::array kMetrics{
    Metric{"tactus_autoscale_advice_lanes", [](const LaneAdvice& a) { return double(a.advised); }},
    Metric{"tactus_autoscale_bad_ratio", [](const LaneAdvice& a) { return a.reading.bad_ratio; }},
    Metric{"tactus_autoscale_idle_ratio", [](const LaneAdvice& a) { return a.reading.idle_ratio; }},
};

std::string KnownMetrics() {
  std::string all;
  for (const Metric& metric : kMetrics) {
    all += all.empty() ? "" : ", ";
    all += metric.name;
  }
  return all;
}

grpc::Status NoAdvice() {
  return {grpc::StatusCode::UNIMPLEMENTED,
          "this server gives no autoscale advice: it was started with --autoscale-interval-seconds "
          "0; with 1 it looks at its load once a second"};
}

ServerUnaryReactor* End(CallbackServerContext* context, const grpc::Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace

ExternalScalerRpcs::ExternalScalerRpcs(LoadSampler* sampler) : sampler_(sampler) {
  if (sampler_ == nullptr) return;
  sampler_->Follow([this](const LoadSample& sample) { TellAll(sample.active()); });
}

ExternalScalerRpcs::~ExternalScalerRpcs() {
  if (sampler_ != nullptr) sampler_->Follow({});
}

// The lock keeps the streams: what they start here ends on a thread of gRPC's, which then waits.
void ExternalScalerRpcs::TellAll(bool active) {
  const std::lock_guard lock(mutex_);
  for (ActiveStream* stream : streams_) stream->Tell(active);
}

void ExternalScalerRpcs::EndStreams() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (ActiveStream* stream : streams_) {
    stream->End({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
  }
}

void ExternalScalerRpcs::Forget(ActiveStream* stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

ServerUnaryReactor* ExternalScalerRpcs::IsActive(CallbackServerContext* context,
                                                 const externalscaler::ScaledObjectRef*,
                                                 IsActiveResponse* response) {
  if (sampler_ == nullptr) return End(context, NoAdvice());
  response->set_result(sampler_->latest().active());
  return End(context, grpc::Status::OK);
}

grpc::ServerWriteReactor<IsActiveResponse>* ExternalScalerRpcs::StreamIsActive(
    CallbackServerContext*, const externalscaler::ScaledObjectRef*) {
  auto* const stream = new ActiveStream(*this);
  const bool active = sampler_ != nullptr && sampler_->latest().active();
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  if (sampler_ == nullptr) {
    stream->End(NoAdvice());
  } else if (ended_) {
    stream->End({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
  } else {
    stream->Tell(active);
  }
  return stream;
}

ServerUnaryReactor* ExternalScalerRpcs::GetMetricSpec(
    CallbackServerContext* context, const externalscaler::ScaledObjectRef*,
    externalscaler::GetMetricSpecResponse* response) {
  if (sampler_ == nullptr) return End(context, NoAdvice());
  const int lanes = sampler_->latest().advice.reading.lanes;
  externalscaler::MetricSpec& spec = *response->add_metricspecs();
  spec.set_metricname(std::string(kMetrics[0].name));
  spec.set_targetsize(lanes);
  spec.set_targetsizefloat(lanes);
  return End(context, grpc::Status::OK);
}

ServerUnaryReactor* ExternalScalerRpcs::GetMetrics(CallbackServerContext* context,
                                                   const externalscaler::GetMetricsRequest* request,
                                                   externalscaler::GetMetricsResponse* response) {
  if (sampler_ == nullptr) return End(context, NoAdvice());
  for (const Metric& metric : kMetrics) {
    if (metric.name != request->metricname()) continue;
    const double value = metric.value(sampler_->latest().advice);
    externalscaler::MetricValue& answer = *response->add_metricvalues();
    answer.set_metricname(request->metricname());
    answer.set_metricvalue(std::llround(value));
    answer.set_metricvaluefloat(value);
    return End(context, grpc::Status::OK);
  }
  return End(context, {grpc::StatusCode::INVALID_ARGUMENT,
                       fmt::format("unknown metric '{}'; there are: {}", request->metricname(),
                                   KnownMetrics())});
}

}  // namespace tactus
