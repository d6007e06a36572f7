// The pipeline requests under way in a simulation: drives a Flow from the event heap. A stage
// starts at the instant at which the last answer that it waits for is there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/request.h"
#include "metrics/pipeline_record.h"
#include "pipeline/flow.h"
#include "sim/devices/row_draw.h"
#include "sim/world/event_heap.h"

namespace tactus {

// What pipeline requests ask of the world around them.
class PipelineWorld {
 public:
  virtual ~PipelineWorld() = default;
  virtual RequestId NextRequest() = 0;
  // To the dispatcher, which may refuse it at once.
  virtual void Send(ModelId model, const Request& request) = 0;
  virtual void Cancel(ModelId model, RequestId request) = 0;
  // A pipeline's request ended at `at`; `call`: as of Arrive; `answered`: in time or late. Returns
  // when its client knows.
  virtual TimePoint PipelineEnded(std::uint32_t pipeline, std::uint32_t call, bool answered,
                                  TimePoint at) = 0;
};

class PipelineRequests final : private FlowOutbox {
 public:
  // World and heap outlive it. Runs that may start are events of `heap`.
  PipelineRequests(std::vector<Pipeline> pipelines, RowDraw rows, PipelineWorld& world,
                   EventHeap& heap)
      : flow_(std::move(pipelines), *this),
        arrived_(flow_.pipelines().size()),
        rows_(std::move(rows)),
        world_(world),
        heap_(heap) {}

  Duration slo(std::uint32_t pipeline) const { return flow_.pipelines()[pipeline].slo; }
  // A request to this pipeline, which its client sent at `sent`. `call` is the world's name for it.
  void Arrive(std::uint32_t pipeline, TimePoint sent, TimePoint deadline, TimePoint now,
              std::uint32_t call = 0);
  // One that the server refused by its header.
  void RefuseUnread(std::uint32_t pipeline, TimePoint sent, TimePoint told);
  // The event `subject` of class kStage.
  void Start(std::uint32_t subject, TimePoint now);
  // What became of a request that was sent; `at`: when its answer is there.
  void Answered(const Request& request, TimePoint at);
  void Refused(const Request& request, DropReason reason, TimePoint now);
  // Cancels what the Flow no longer needs of the dispatcher, which must not be at work. True if
  // there was anything.
  bool Settle(TimePoint now);

  // Records of all that ended, in that order. All that arrived have, once nothing is left to
  // happen.
  std::vector<PipelineRecord> Take(TimePoint now) &&;

 private:
  // A run that the Flow started. Its place is free again once it has ended and is on no heap.
  struct Run {
    RunKey key;
    ModelId model;
    TimePoint deadline;
    RequestId sent;  // invalid: not yet
    bool queued = false;
    bool cancelled = false;
    bool ended = false;
  };
  struct Underway {
    std::uint32_t pipeline = 0;
    TimePoint sent;
    std::uint32_t call = 0;
    std::uint64_t arrival = 0;        // its number among the pipeline's
    std::vector<std::uint32_t> runs;  // places in runs_ of those that have not ended
  };

  void Start(const RunKey& run, TimePoint now, TimePoint deadline) override;
  void Lost(const RunKey&, TimePoint) override {}  // Ended counts them
  void Cancel(const RunKey& run) override;
  void Ended(const PipelineEnd& end) override;

  void Send(std::uint32_t place, TimePoint now);
  Underway& At(PipelineRequestId id);
  // The run ends here.
  RunKey End(std::uint32_t place);

  Flow flow_;
  std::vector<std::uint64_t> arrived_;  // by pipeline
  const RowDraw rows_;
  PipelineWorld& world_;
  EventHeap& heap_;
  std::vector<Underway> underway_;  // by PipelineRequestId
  std::vector<Run> runs_;
  std::vector<std::uint32_t> free_;       // places in runs_
  std::vector<std::uint32_t> cancelled_;  // places that may have ended since
  std::vector<std::uint32_t> at_once_;    // what the request that now arrives begins with
  std::optional<Underway> arriving_;      // a request that has no place yet
  std::vector<PipelineRecord> records_;
};

}  // namespace tactus
