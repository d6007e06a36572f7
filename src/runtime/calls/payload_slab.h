// A fixed number of records of calls that wait or run. The dispatcher sees each row of a call as a
// Request whose payload names the record and the row.
//
// One thread at a time owns a record: the front end's fills it, a turn of the dispatcher keeps it
// while rows wait or run (a lane worker reads the rows' inputs), the thread that answers frees it.
// The rings and combiners between them order the accesses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/held_bytes.h"
#include "base/ids.h"
#include "base/ring.h"
#include "core/engine.h"
#include "core/request.h"
#include "runtime/models/served_model.h"
#include "service/inference_service.h"

namespace tactus {

// How one row of a call ended.
struct CallRow {
  Outcome outcome = Outcome::kMet;        // kMet stands for "has an answer" until the reply
  DropReason reason = DropReason::kShed;  // when it has none
  std::shared_ptr<const BatchOutput> output;
  std::shared_ptr<const Error> error;  // when the engine failed
  bool no_batch = false;               // since what the model takes for a batch is none
  std::uint32_t position = 0;          // its place in the batch
  std::uint32_t batch = 0;             // rows in the batch; 0: it never ran
  std::uint32_t deaths = 0;            // of lanes that ran it
  ExitId exit{0};
  TimePoint started;
  TimePoint ended;
  Duration gather{}, infer{}, scatter{};
};

struct PendingCall {
  // The front end's.
  InferCall call;
  std::shared_ptr<ServedModel> model;
  std::vector<Shape> row_shapes;  // by input
  std::vector<TensorView> views;  // row r, input i at r * inputs + i
  std::vector<CallRow> rows;
  std::uint32_t shape_class = 0;
  std::size_t bytes = 0;
  TimePoint received;
  TimePoint deadline;
  TimePoint expected_end;  // of its last batch, as it was decided; before the first, of nothing

  // The dispatch loop's.
  RequestId first_request;            // row r is first_request + r
  std::uint32_t rows_waiting = 0;     // rows that the dispatcher has not ended
  std::uint32_t rows_held = 0;        // rows in batches that run: an engine may read their inputs
  std::uint32_t open_generation = 0;  // which call the dispatcher holds; 0: none
  PendingCall* next_step = nullptr;   // of a pipeline too, ended by the same batch

  std::uint32_t index = 0;
  std::uint32_t generation = 1;  // rises with each use
  std::atomic<std::uint32_t> cancelled_generation{0};
  std::atomic<std::uint32_t> next_free{0};

  CallId id() const { return (std::uint64_t{generation} << 32) | index; }
  RowInputs inputs(std::size_t row) const {
    const std::size_t n = row_shapes.size();
    return {std::span(views).subspan(row * n, n), call.keepalive};
  }
};

class PayloadSlab {
 public:
  explicit PayloadSlab(std::size_t calls, std::size_t bytes);

  // Null when all records are taken, or `bytes` of inputs more would exceed the limit, in which the
  // answers that are held count too, but not against a call that has `begun`. Lock-free.
  PendingCall* Acquire(std::size_t bytes, bool begun = false);
  // Drops the call and all it holds; its id is dead.
  void Release(PendingCall& pending);

  PendingCall& at(std::uint32_t index) { return calls_[index]; }
  std::size_t capacity() const { return capacity_; }
  // Bytes of the inputs of calls that wait or run.
  std::size_t input_bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Bytes of answers that somebody holds: front ends do, until the last client has its part.
  const std::shared_ptr<HeldBytes::Count>& answers() const { return answers_; }

  static std::uint64_t Payload(std::uint32_t index, std::uint32_t row) {
    return (std::uint64_t{index} << 32) | row;
  }
  static std::uint32_t IndexOf(std::uint64_t payload) { return payload >> 32; }
  static std::uint32_t RowOf(std::uint64_t payload) { return static_cast<std::uint32_t>(payload); }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  const std::size_t capacity_;
  const std::size_t byte_limit_;
  const std::unique_ptr<PendingCall[]> calls_;
  // Free records as a stack: index below, and a count of changes above it, so that a stack that
  // changed and changed back is not taken for the old one.
  alignas(kCacheLine) std::atomic<std::uint64_t> free_;
  alignas(kCacheLine) std::atomic<std::size_t> bytes_{0};
  const std::shared_ptr<HeldBytes::Count> answers_ = std::make_shared<HeldBytes::Count>(0);
};

}  // namespace tactus
