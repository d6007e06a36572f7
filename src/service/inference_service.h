// A service that answers inference calls, as front ends (HTTP, gRPC, the in-process driver) see it:
// look a model up, hand in a call, get one reply. The service may be the runtime of this process
// (runtime/runtime.h), or anything else with this interface.
// Thread-safe and, where not said otherwise, non-blocking; front ends own their threads, the
// service owns its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "service/infer_call.h"

namespace tactus {

// Counters of the statistics extension, by model version; cumulative, nanoseconds.
struct DurationCount {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};
struct ModelStatistics {
  std::string name;
  std::int64_t version = 1;
  bool emulated = false;                // see ServedBy
  bool batching_stopped = false;        // BatchOrigin::kDisproved
  std::uint64_t last_inference_ms = 0;  // Unix time
  std::uint64_t inference_count = 0;    // rows
  std::uint64_t execution_count = 0;    // batches
  std::uint64_t pending = 0;            // calls that came and were not answered yet
  DurationCount success, fail, queue, compute_input, compute_infer, compute_output;
  struct BatchSize {
    std::uint64_t batch_size = 0;
    DurationCount compute_input, compute_infer, compute_output;
  };
  std::vector<BatchSize> batches;
  // The corrected latency over the profiled one, by lane class; empty if the profile is not
  // followed.
  std::vector<double> latency_ratios;
};

struct ModelState {
  std::string name;
  std::int64_t version = 1;
  std::string state;   // READY, LOADING, UNLOADING, UNAVAILABLE
  std::string reason;  // why it is unavailable
};

class InferenceService {
 public:
  virtual ~InferenceService() = default;

  // The ready model, or NotFound / Unavailable with the text for the client. `version` < 0: latest.
  virtual Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                          std::int64_t version) const = 0;
  // Whether calls of the model are answered now, for probes: an error as of Find, or kUnavailable
  // with the reason where the model may be called and nobody could run it at the moment.
  virtual Status ModelReady(std::string_view model, std::int64_t version) const {
    const auto found = Find(model, version);
    return found ? Status() : std::unexpected(found.error());
  }
  // Some steps of another node's pipeline, to be run here as one: what a call of them looks like,
  // for Infer. `described`: as StepGroup::described. kUnimplemented where it cannot be run here.
  virtual Expected<std::shared_ptr<const ModelSpec>> Enter(std::string_view /*described*/) const {
    return Fail(ErrorCode::kUnimplemented, "steps of pipelines do not run as one here");
  }
  // Takes the call; replies exactly once. The id is good for Cancel until then.
  virtual CallId Infer(InferCall&& call) = 0;
  // The client left: removes the call from the queue. The reply still comes, with kCancelled.
  virtual void Cancel(CallId call) = 0;

  virtual bool Live() const = 0;
  virtual bool Ready() const = 0;  // every model that should be loaded is
  virtual std::vector<ModelState> Index() const = 0;
  // Blocking: call them from a thread that may wait (seconds), never from an I/O thread.
  // `config` is a ModelConfig as JSON that replaces the folder's, or empty.
  virtual Status Load(const std::string& model, const std::string& config) = 0;
  virtual Status Unload(const std::string& model) = 0;
  // Also the models that an ensemble's steps run and no other loaded ensemble's do.
  virtual Status UnloadWithSteps(const std::string& model) { return Unload(model); }
  // Empty name: all models. Version < 0: all versions.
  virtual Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                            std::int64_t version) const = 0;
};

}  // namespace tactus
