// Metric families as they are made of readings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

namespace tactus {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

inline MetricFamily Family(std::string name, std::string help, MetricType type) {
  return {.name = std::move(name), .help = std::move(help), .type = type, .metric = {}};
}

// To a family of counters or of gauges.
inline void Add(MetricFamily& family, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

}  // namespace tactus
