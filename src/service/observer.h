// What a service tells those who watch it: metrics exporters, the recorder of `tactus measure`.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/expected.h"
#include "core/batch.h"
#include "core/model_spec.h"
#include "metrics/recorder.h"

namespace tactus {

// A finished batch: what was predicted and what happened.
struct BatchRecord {
  LaneId lane;
  ExitId exit;
  int batch = 0;           // rows that ran
  TimePoint decided;       // when the policy chose it
  TimePoint expected_end;  // decided + profiled latency
  TimePoint started;       // when the lane began: started - decided is the launch overhead
  TimePoint ended;         // when the engine was done
  TimePoint learnt;        // when the dispatcher knew: learnt - ended is the finish overhead
  BatchStatus status = BatchStatus::kOk;
  // Where it failed and its rows were run again, each alone: what became of them. Given up: late by
  // then, or nobody waited.
  struct Apart {
    int answered = 0;
    int failed = 0;
    int given_up = 0;
  } apart = {};
  // Time of its kernels beside neighbours over time alone, where the policy predicted it; 0 where
  // it did not, or the batch had no neighbour.
  double predicted_slowdown = 0;
  double measured_slowdown = 0;
  std::uint32_t cut_jpegs = 0;  // BatchOutput::cut_jpegs

  Duration predicted() const { return expected_end - decided; }
  Duration actual() const { return ended - started; }
};

// Called on threads of the service and of those that call Infer, several at once; must be quick and
// must not throw.
class Observer {
 public:
  virtual ~Observer() = default;

  // An accepted call ended, whatever its outcome; just before its reply. `record.model` is the
  // service's ModelId; a call of several rows counts its shallowest exit and its last batch. The
  // reply follows on the same thread.
  virtual void OnAnswered(const ModelSpec&, const RequestRecord&, int /*rows*/) {}
  // The same of a call that is a step of a pipeline's: its client's call is the pipeline's.
  virtual void OnStepAnswered(const ModelSpec& model, const RequestRecord& record, int rows) {
    OnAnswered(model, record, rows);
  }
  // A call was refused before it entered a queue (no such model, no room, stopping).
  virtual void OnRefused(std::string_view /*model*/, ErrorCode) {}
  virtual void OnBatch(const ModelSpec&, const BatchRecord&) {}
};

}  // namespace tactus
