// The parts of `./run bench gpu`: each measures one thing, prints what it saw and adds its checks,
// and runs of the server where it made some. An error: it could not be measured.
#pragma once

#include "base/expected.h"
#include "device/kernel_net.h"
#include "device/served_nets.h"
#include "metrics/report.h"

namespace tactus {

// What the parts share.
struct Bench {
  const BenchDevice& device;
  const BenchOptions& options;
  Report& report;

  void Add(Check check) const { report.checks.push_back(std::move(check)); }
};

// %smid of two lanes with shares; urgent work behind other work; the engine beside a raw loop.
Status MeasureParts(const Bench& bench);
Status MeasurePriorities(const Bench& bench);
Status MeasureEngine(const Bench& bench);
// The device's counters of its own work beside what kernels are known to do.
Status MeasureUses(const Bench& bench);
// Pairs in two halves of the device, pairs and fours on streams of the whole, and the linear model.
Status MeasureInterference(const Bench& bench);
// Strait beside its rivals in the mixes of its Figure 5, on streams with priorities.
Status MeasureStrait(const Bench& bench);
// Plans of gpu-lets on parts of the device beside plans that share it by time, in the mixes of
// gpu-lets' Table 5.
Status MeasureShares(const Bench& bench);
// Symphony's deferral beside eager batches, on a net whose batches pay.
Status MeasureDeferred(const Bench& bench);
// EdgeServing's Figure 4, on nets with early exits, and on ResNets, which an engine for models
// runs.
Status MeasureExits(const Bench& bench);
Status MeasureResNets(const Bench& bench);
// The simulator beside the device.
Status MeasureTwin(const Bench& bench);

}  // namespace tactus
