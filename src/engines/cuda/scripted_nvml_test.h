// NVIDIA's management library as a script: what it counts is what a test says, and it fails what it
// is told to fail.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "engines/cuda/nvml.h"

namespace tactus::testing {

class ScriptedNvml {
 public:
  ScriptedNvml() { Fill(); }
  ScriptedNvml(const ScriptedNvml&) = delete;
  ScriptedNvml& operator=(const ScriptedNvml&) = delete;

  // Good while this lives.
  std::shared_ptr<const Nvml> nvml() const { return table_; }

  std::map<std::string, nvmlReturn_t> fails;  // by function
  std::map<unsigned, double> percents;        // by nvmlGpmMetricId_t; the others are not known
  bool has_gpm = true;                        // the device
  nvmlUtilization_t rates{.gpu = 100, .memory = 30};
  std::string uuid = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0";
  std::set<nvmlGpmSample_t> samples;  // that were made and not freed
  int looks = 0;                      // samples taken

  // As a library that is too old for them.
  void WithoutCounters() {
    table_->counts.call = nullptr;
    table_->sample.call = nullptr;
  }

 private:
  template <class... P, class Body>
  void Set(DriverFunction<nvmlReturn_t(P...)>& function, Body body) {
    function.call = [this, name = std::string(function.name), body](P... arguments) {
      const auto failure = fails.find(name);
      return failure == fails.end() ? body(arguments...) : failure->second;
    };
  }

  void Fill() {
    table_->error_text.call = [](nvmlReturn_t code) {
      return code == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "Some Error";
    };
    Set(table_->init, [] { return NVML_SUCCESS; });
    Set(table_->find, [this](const char* wanted, nvmlDevice_t* device) {
      *device = reinterpret_cast<nvmlDevice_t>(this);
      return wanted == uuid ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    });
    Set(table_->power_limit, [](nvmlDevice_t, unsigned* milliwatts) {
      *milliwatts = 700'000;
      return NVML_SUCCESS;
    });
    Set(table_->rates, [this](nvmlDevice_t, nvmlUtilization_t* out) {
      *out = rates;
      return NVML_SUCCESS;
    });
    Set(table_->counts, [this](nvmlDevice_t, nvmlGpmSupport_t* support) {
      if (support->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      support->isSupportedDevice = has_gpm ? 1 : 0;
      return NVML_SUCCESS;
    });
    Set(table_->make_sample, [this](nvmlGpmSample_t* sample) {
      *sample = reinterpret_cast<nvmlGpmSample_t>(next_ += 16);
      samples.insert(*sample);
      return NVML_SUCCESS;
    });
    Set(table_->free_sample, [this](nvmlGpmSample_t sample) {
      return samples.erase(sample) == 1 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    });
    Set(table_->sample, [this](nvmlDevice_t, nvmlGpmSample_t sample) {
      ++looks;
      return samples.contains(sample) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    });
    Set(table_->metrics, [this](nvmlGpmMetricsGet_t* asked) {
      if (asked->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      if (!samples.contains(asked->sample1) || !samples.contains(asked->sample2)) {
        return NVML_ERROR_INVALID_ARGUMENT;
      }
      for (unsigned i = 0; i < asked->numMetrics; ++i) {
        nvmlGpmMetric_t& metric = asked->metrics[i];
        const auto known = percents.find(metric.metricId);
        metric.nvmlReturn = known == percents.end() ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
        metric.value = known == percents.end() ? 0 : known->second;
      }
      return NVML_SUCCESS;
    });
  }

  const std::shared_ptr<Nvml> table_ = std::make_shared<Nvml>();
  std::uintptr_t next_ = 0;
};

}  // namespace tactus::testing
