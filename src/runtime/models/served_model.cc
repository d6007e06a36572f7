#include "runtime/models/served_model.h"

namespace tactus {

ModelStatistics ModelCounters::Read() const {
  ModelStatistics out;
  out.last_inference_ms = last_inference_ms.load(std::memory_order_relaxed);
  out.inference_count = inferences.load(std::memory_order_relaxed);
  out.execution_count = executions.load(std::memory_order_relaxed);
  out.success = success.Read();
  out.fail = fail.Read();
  out.queue = queue.Read();
  out.compute_input = compute_input.Read();
  out.compute_infer = compute_infer.Read();
  out.compute_output = compute_output.Read();
  for (const auto& ratio : ratios) {
    const std::uint32_t thousandths = ratio.load(std::memory_order_relaxed);
    if (thousandths > 0) out.latency_ratios.push_back(thousandths / 1000.0);
  }
  for (std::size_t b = 1; b < batches.size(); ++b) {
    const ModelCounters::Batch& batch = batches[b];
    if (batch.compute_infer.Read().count == 0) continue;
    out.batches.push_back(
        {b, batch.compute_input.Read(), batch.compute_infer.Read(), batch.compute_output.Read()});
  }
  return out;
}

}  // namespace tactus
