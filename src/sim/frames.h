// The frames under way in a simulation: which requests they send when, and what becomes of them.
//
// A stage starts at the instant at which the last answer that it waits for is there. A frame whose
// request is refused, or answered after its stage's deadline with stages still to come, is dropped:
// what it has in the dispatcher is cancelled, nothing more of it starts. Every frame that arrives
// ends in one record.
#pragma once

#include <cstdint>
#include <vector>

#include "core/request.h"
#include "metrics/frames.h"
#include "pipeline/frame_progress.h"
#include "sim/event_heap.h"

namespace tactus {

// What frames ask of the world around them.
class FrameWorld {
 public:
  virtual ~FrameWorld() = default;
  virtual RequestId NextRequest() = 0;
  // To the dispatcher, which may refuse it at once.
  virtual void Send(ModelId model, const Request& request) = 0;
  virtual void Cancel(ModelId model, RequestId request) = 0;
};

class Frames {
 public:
  // Both outlive it. Stages that may start are events of `heap`.
  Frames(std::vector<Pipeline> pipelines, FrameWorld& world, EventHeap& heap)
      : pipelines_(std::move(pipelines)), world_(world), heap_(heap) {}

  // A frame of this pipeline.
  void Arrive(std::uint32_t pipeline, TimePoint now);
  // The event `subject` of class kStage.
  void Start(std::uint32_t subject, TimePoint now);
  // What became of a request that was sent; `at`: when its answer is there.
  void Answered(const Request& request, TimePoint at);
  void Refused(const Request& request, TimePoint now);
  // Cancels what dropped frames still have in the dispatcher, which must not be at work. True if
  // there was anything.
  bool Settle();

  // Of all frames that ended, in that order. All that arrived have, once nothing is left to happen.
  std::vector<FrameRecord> Take() &&;

 private:
  struct Sent {
    RequestId id;
    ModelId model;
  };
  struct Frame {
    std::uint32_t pipeline = 0;
    TimePoint arrival;
    FrameProgress progress;
    std::vector<Sent> sent;  // and not ended
    int starting = 0;        // stages whose event is on the heap
    bool dropped = false;
  };
  // A stage of a frame under way, in a number.
  struct Place {
    std::uint32_t frame;
    StageId stage;
  };
  static std::uint32_t Pack(Place place);
  static Place Unpack(std::uint64_t packed);

  void Send(Place place, TimePoint now);
  // The request's place, which it leaves.
  Place Forget(const Request& request);
  void Drop(Place place, TimePoint at);
  void Record(Place place, TimePoint ended, FrameOutcome outcome);

  const std::vector<Pipeline> pipelines_;
  FrameWorld& world_;
  EventHeap& heap_;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> free_;     // places in frames_
  std::vector<std::uint32_t> dropped_;  // and not done with
  std::vector<StageId> ready_;
  std::vector<Sent> cancelled_;
  std::vector<FrameRecord> records_;
};

}  // namespace tactus
