#include "engines/cuda/device_counters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

// NVML renews its counters after 100 ms at most.
constexpr Duration kGpmLeast = Millis(250);
// Its rates are of the last sixth of a second or of the last second, as the product has it.
constexpr Duration kRatesLeast = Millis(2100);

double ShareOf(double percent) { return std::clamp(percent / 100, 0.0, 1.0); }

class GpmCounters final : public DeviceCounters {
 public:
  GpmCounters(std::shared_ptr<const Nvml> nvml, nvmlDevice_t device)
      : nvml_(std::move(nvml)), device_(device) {}
  ~GpmCounters() override {
    for (const nvmlGpmSample_t sample : samples_) {
      if (sample != nullptr) (void)Ask(*nvml_, nvml_->free_sample, sample);
    }
  }
  GpmCounters(const GpmCounters&) = delete;
  GpmCounters& operator=(const GpmCounters&) = delete;

  Status Open() {
    nvmlGpmSupport_t support{};
    support.version = NVML_GPM_SUPPORT_VERSION;
    Status ok = Ask(*nvml_, nvml_->counts, device_, &support);
    if (ok && support.isSupportedDevice == 0) {
      return Fail(ErrorCode::kUnimplemented, "the device has no GPM counters");
    }
    for (nvmlGpmSample_t& sample : samples_) {
      if (ok) ok = Ask(*nvml_, nvml_->make_sample, &sample);
    }
    return ok ? Begin() : ok;  // whether they may be read shows only here
  }

  std::string source() const override {
    return "counted by the device (NVML's GPM): fma the time of FP32 or FP16 arithmetic, tensor "
           "that of the tensor cores, dram of the most that its memory passes";
  }
  Duration least() const override { return kGpmLeast; }
  Status Begin() override { return Ask(*nvml_, nvml_->sample, device_, samples_[0]); }

  Expected<Reading> Read() override {
    if (Status ok = Ask(*nvml_, nvml_->sample, device_, samples_[1]); !ok) {
      return std::unexpected(ok.error());
    }
    nvmlGpmMetricsGet_t asked{};
    asked.version = NVML_GPM_METRICS_GET_VERSION;
    asked.numMetrics = static_cast<unsigned>(kAsked.size());
    asked.sample1 = samples_[0];
    asked.sample2 = samples_[1];
    for (std::size_t i = 0; i < kAsked.size(); ++i) {
      asked.metrics[i].metricId = static_cast<unsigned>(kAsked[i].first);
    }
    if (Status ok = Ask(*nvml_, nvml_->metrics, &asked); !ok) return std::unexpected(ok.error());
    Reading reading;
    for (std::size_t i = 0; i < kAsked.size(); ++i) {
      const nvmlGpmMetric_t& metric = asked.metrics[i];
      if (metric.nvmlReturn != NVML_SUCCESS || std::isnan(metric.value)) continue;
      auto& share = reading[static_cast<std::size_t>(kAsked[i].second)];
      share = std::max(share.value_or(0), ShareOf(metric.value));
    }
    return reading;
  }

 private:
  static constexpr std::array<std::pair<nvmlGpmMetricId_t, Resource>, 4> kAsked = {
      {{NVML_GPM_METRIC_FP32_UTIL, Resource::kFma},
       {NVML_GPM_METRIC_FP16_UTIL, Resource::kFma},
       {NVML_GPM_METRIC_ANY_TENSOR_UTIL, Resource::kTensor},
       {NVML_GPM_METRIC_DRAM_BW_UTIL, Resource::kDram}}};

  const std::shared_ptr<const Nvml> nvml_;
  const nvmlDevice_t device_;
  std::array<nvmlGpmSample_t, 2> samples_{};
};

class RateCounters final : public DeviceCounters {
 public:
  RateCounters(std::shared_ptr<const Nvml> nvml, nvmlDevice_t device, std::string why)
      : nvml_(std::move(nvml)), device_(device), why_(std::move(why)) {}

  std::string source() const override {
    return fmt::format(
        "counted by the device (NVML's utilization rates; GPM: {}): dram the part of "
        "the time in which its memory was read or written",
        why_);
  }
  Duration least() const override { return kRatesLeast; }
  Status Begin() override { return {}; }
  Expected<Reading> Read() override {
    nvmlUtilization_t rates{};
    if (Status ok = Ask(*nvml_, nvml_->rates, device_, &rates); !ok) {
      return std::unexpected(ok.error());
    }
    Reading reading;
    reading[static_cast<std::size_t>(Resource::kDram)] = ShareOf(rates.memory);
    return reading;
  }

 private:
  const std::shared_ptr<const Nvml> nvml_;
  const nvmlDevice_t device_;
  const std::string why_;
};

}  // namespace

Expected<std::unique_ptr<DeviceCounters>> OpenDeviceCounters(std::shared_ptr<const Nvml> nvml,
                                                             const std::string& uuid) {
  const auto device = FindDevice(*nvml, uuid);
  if (!device) return std::unexpected(device.error());
  std::string why = "this driver has no such functions";
  if (nvml->has_counters()) {
    auto gpm = std::make_unique<GpmCounters>(nvml, *device);
    const Status opened = gpm->Open();
    if (opened) return gpm;
    why = opened.error().message;
  }
  auto rates = std::make_unique<RateCounters>(std::move(nvml), *device, why);
  if (const auto reads = rates->Read(); !reads) {
    return Fail(reads.error().code,
                fmt::format("the device tells nothing of what it does (GPM: {}; "
                            "{})",
                            why, reads.error().message));
  }
  return rates;
}

}  // namespace tactus
