#include "server/grpc/external_scaler.h"

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "external_scaler.pb.h"
#include "server/grpc/unary_method.h"

namespace tactus {
namespace {

using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;

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

Status NoAdvice() {
  return Fail(ErrorCode::kUnimplemented,
              "this server gives no autoscale advice: it was started with "
              "--autoscale-interval-seconds 0; with 1 it looks at its load once a second");
}

std::string Said(const LoadSample& sample) {
  IsActiveResponse response;
  response.set_result(sample.active());
  return response.SerializeAsString();
}

Status MetricSpecOf(const LoadSample& sample, externalscaler::GetMetricSpecResponse& response) {
  const int lanes = sample.advice.reading.lanes;
  externalscaler::MetricSpec& spec = *response.add_metricspecs();
  spec.set_metricname(std::string(kMetrics[0].name));
  spec.set_targetsize(lanes);
  spec.set_targetsizefloat(lanes);
  return {};
}

Status MetricsOf(const LoadSample& sample, const std::string& name,
                 externalscaler::GetMetricsResponse& response) {
  for (const Metric& metric : kMetrics) {
    if (metric.name != name) continue;
    const double value = metric.value(sample.advice);
    externalscaler::MetricValue& answer = *response.add_metricvalues();
    answer.set_metricname(name);
    answer.set_metricvalue(std::llround(value));
    answer.set_metricvaluefloat(value);
    return {};
  }
  return InvalidArgument(fmt::format("unknown metric '{}'; there are: {}", name, KnownMetrics()));
}

}  // namespace

ExternalScalerRpcs::ExternalScalerRpcs(LoadSampler* sampler) : sampler_(sampler) {
  if (sampler_ == nullptr) {
    active_.EndStreams(EndOf(NoAdvice(), false));
    return;
  }
  active_.Tell("", Said(sampler_->latest()));
  sampler_->Follow([this](const LoadSample& sample) { active_.Tell("", Said(sample)); });
}

ExternalScalerRpcs::~ExternalScalerRpcs() {
  if (sampler_ != nullptr) sampler_->Follow({});
}

void ExternalScalerRpcs::EndStreams() {
  active_.EndStreams(EndOf(Fail(ErrorCode::kUnavailable, "the server is stopping"), false));
}

void ExternalScalerRpcs::AddTo(RpcMethods& methods, const CallGate& gate) const {
  const auto add = [&](const char* name, RpcMethod method) {
    methods.emplace(fmt::format("/externalscaler.ExternalScaler/{}", name), std::move(method));
  };
  add("IsActive",
      Unary<ScaledObjectRef, IsActiveResponse>(
          gate, kSmallMessage, false, [this](const ScaledObjectRef&, IsActiveResponse& response) {
            if (sampler_ == nullptr) return NoAdvice();
            response.set_result(sampler_->latest().active());
            return Status();
          }));
  add("StreamIsActive",
      active_.Watch(kTinyMessage, [](const Message&) -> Expected<std::string> { return ""; }));
  add("GetMetricSpec",
      Unary<ScaledObjectRef, externalscaler::GetMetricSpecResponse>(
          gate, kSmallMessage, false,
          [this](const ScaledObjectRef&, externalscaler::GetMetricSpecResponse& response) {
            return sampler_ == nullptr ? NoAdvice() : MetricSpecOf(sampler_->latest(), response);
          }));
  add("GetMetrics", Unary<externalscaler::GetMetricsRequest, externalscaler::GetMetricsResponse>(
                        gate, kSmallMessage, false,
                        [this](const externalscaler::GetMetricsRequest& request,
                               externalscaler::GetMetricsResponse& response) {
                          if (sampler_ == nullptr) return NoAdvice();
                          return MetricsOf(sampler_->latest(), request.metricname(), response);
                        }));
}

}  // namespace tactus
