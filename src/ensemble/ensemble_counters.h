// What became of the calls of one ensemble version; kept while the models of its steps come and go.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "service/inference_service.h"

namespace tactus {

class EnsembleCounters {
 public:
  // Answered: `queue` and `execution` as the steps had them, added up over all of them.
  void Answered(int rows, Duration total, Duration queue, Duration execution,
                std::chrono::milliseconds since_1970) {
    Add(success_, total);
    Add(queue_, queue);
    Add(execution_, execution);
    rows_.fetch_add(static_cast<std::uint64_t>(rows), std::memory_order_relaxed);
    last_.store(static_cast<std::uint64_t>(since_1970.count()), std::memory_order_relaxed);
  }
  void Failed(Duration total) { Add(fail_, total); }

  ModelStatistics Read() const {
    ModelStatistics out;
    out.last_inference_ms = last_.load(std::memory_order_relaxed);
    out.inference_count = rows_.load(std::memory_order_relaxed);
    out.success = Of(success_);
    out.fail = Of(fail_);
    out.queue = Of(queue_);
    out.compute_infer = Of(execution_);
    out.execution_count = out.success.count;
    // The steps' own statistics tell these.
    out.compute_input = out.compute_output = {out.success.count, 0};
    return out;
  }

 private:
  struct Counter {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> ns{0};
  };
  static void Add(Counter& counter, Duration each) {
    counter.count.fetch_add(1, std::memory_order_relaxed);
    const auto ns = each.count() < 0 ? 0 : static_cast<std::uint64_t>(each.count());
    counter.ns.fetch_add(ns, std::memory_order_relaxed);
  }
  static DurationCount Of(const Counter& counter) {
    return {counter.count.load(std::memory_order_relaxed),
            counter.ns.load(std::memory_order_relaxed)};
  }

  Counter success_, fail_, queue_, execution_;
  std::atomic<std::uint64_t> rows_{0};
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace tactus
