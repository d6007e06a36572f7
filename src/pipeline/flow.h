// The state machine of pipeline requests: what starts next and until when, what is given up, what
// nobody needs any more. Like the Dispatcher it has no thread, no clock and no I/O: a driver tells
// it what happened and when, and carries out what it says through the outbox. The simulator and the
// server drive the same Flow.
//
//   Flow flow(pipelines, outbox);
//   flow.Begin(0, now, now + Millis(100));  // outbox: Start(run, now, deadline), one or more
//   flow.Answered(run, 3, later);           // outbox: Start of what waited for it, or Ended
//
// What is started ends once: the driver reports each run that it was told to start as answered or
// refused, also one that it was told to cancel. Every request ends in one Ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/pipeline_outcome.h"
#include "core/request.h"
#include "pipeline/admission_window.h"
#include "pipeline/flow_journal.h"
#include "pipeline/item_progress.h"
#include "pipeline/pipeline.h"

namespace tactus {

// A request under way. Given again once it has ended and all its runs have.
using PipelineRequestId = Id<struct PipelineRequestTag>;

// One stage's work on one item of one request.
struct RunKey {
  PipelineRequestId request;
  StageRun run;

  bool operator==(const RunKey&) const = default;
};

// How a request begins under a rule that refuses what would be lost late (kSpare).
enum class PipelineEntry : std::uint8_t {
  kByWindow,  // it counts, and is refused where too many are under way
  kAside,     // neither: it has a priority of its own, and is not to wait for those without
};

struct PipelineEnd {
  PipelineRequestId request;
  std::uint32_t pipeline = 0;
  PipelineOutcome outcome = PipelineOutcome::kOnTime;
  TimePoint arrival;
  TimePoint ended;
  TimePoint deadline;
  StageId stage;  // whose answer was the last, or at which it was given up
  int items = 0;  // rows that stages ran for
  int items_lost = 0;
  int rows_cut = 0;
  bool not_admitted = false;  // as it came: too many were under way
};

// What the driver carries out. It does not call the Flow before the Flow's own call has returned.
class FlowOutbox {
 public:
  virtual ~FlowOutbox() = default;
  virtual void Start(const RunKey& run, TimePoint now, TimePoint deadline) = 0;
  // The row that this run works on is left out of the answer. Before the cancelling of what else
  // works on it.
  virtual void Lost(const RunKey& run, TimePoint now) = 0;
  // Nobody needs it any more.
  virtual void Cancel(const RunKey& run) = 0;
  // Before the cancelling of what it leaves behind.
  virtual void Ended(const PipelineEnd& end) = 0;
};

class Flow {
 public:
  // `outbox` outlives it.
  Flow(std::vector<Pipeline> pipelines, FlowOutbox& outbox);

  // Writes down from here on what it is told and what it says (pipeline/flow_journal.h). Before
  // the first request; `journal` outlives the Flow.
  void Record(FlowJournal* journal) { journal_ = journal; }

  // One that is unmeetable or not admitted has ended when this returns. `wanted`: the stages that
  // run, each with all that it waits for (PipelineGraph::WithAllBefore).
  PipelineRequestId Begin(std::uint32_t pipeline, TimePoint now, TimePoint deadline,
                          StageMask wanted = kAllStages,
                          PipelineEntry entry = PipelineEntry::kByWindow);
  // `rows`: of the answer, read where the stage demultiplies.
  void Answered(const RunKey& key, int rows, TimePoint now);
  // Not run: refused, cancelled or failed.
  void Refused(const RunKey& key, DropReason reason, TimePoint now);
  // Nobody waits for the request. Nothing where it has ended.
  void Cancel(PipelineRequestId request, TimePoint now);

  // By stage, what it has needed of late: by this time is divided from now on, never by less than
  // the stage takes at best. Read by the rules that redivide.
  void Adopt(std::uint32_t pipeline, std::span<const Duration> needs);

  std::span<const Pipeline> pipelines() const { return pipelines_; }
  // The progress of a request, also of one that has ended, until its id is given again.
  const ItemProgress& progress(PipelineRequestId request) const {
    return requests_[request.value()].progress;
  }
  // What a stage and those behind it take at best.
  Duration LeastFrom(std::uint32_t pipeline, StageId stage) const;
  // Requests that have not ended, or have runs that have not.
  std::size_t underway() const { return requests_.size() - free_.size(); }

 private:
  struct Request {
    std::uint32_t pipeline = 0;
    TimePoint arrival;
    TimePoint deadline;
    ItemProgress progress;
    std::size_t running = 0;  // started and not reported yet
    bool ended = false;
    AdmissionWindow::Place place;
    bool in_vain = false;  // it, or a row of it, was lost for want of time behind its first stage
  };
  struct Timing {                  // of a pipeline, by stage
    std::vector<Duration> need;    // read by rules that redivide: a stage's own, ...
    std::vector<Duration> behind;  // ... that of the longest path behind it
    std::vector<Duration> least_behind;
    AdmissionWindow window;  // kSpare
  };
  // Why a run has no answer that counts.
  enum class Cause { kWantOfTime, kOther };

  Request& At(PipelineRequestId id) { return requests_[id.value()]; }
  void Note(FlowRecord::Kind kind, std::initializer_list<std::int64_t> values) const {
    if (journal_ != nullptr) journal_->Append({kind, {values.begin(), values.size()}});
  }
  void TellStart(const RunKey& key, TimePoint now, TimePoint deadline);
  void TellCancel(const RunKey& key);
  bool Redivides(const Request& request) const;
  // True if even the fastest remaining stages would miss the deadline.
  bool IsUnmeetable(const Request& request, StageId stage, TimePoint from, bool answered) const;
  void Start(PipelineRequestId id, TimePoint now);
  void StartOne(const RunKey& key, TimePoint now);
  TimePoint StageDeadline(const Request& request, StageId stage, TimePoint now) const;
  bool Admit(Request& request, PipelineEntry entry);
  void Leave(const Request& request, PipelineOutcome outcome, TimePoint now);
  // Whether a row that fails leaves the others their answer.
  static bool IsRowAlone(const Pipeline& pipeline, StageId stage);
  // Takes the run back from the driver; whether anybody still wants its answer.
  bool TakeBack(const RunKey& key);
  // The run will not be answered in time, or not at all.
  void Fail(const RunKey& key, Cause cause, TimePoint now);
  void Complete(PipelineRequestId id, StageId stage, TimePoint now);
  void End(PipelineRequestId id, PipelineOutcome outcome, StageId stage, TimePoint now,
           bool not_admitted = false);
  void FreeIfDone(PipelineRequestId id);

  std::vector<Pipeline> pipelines_;
  std::vector<Timing> timing_;
  FlowOutbox& outbox_;
  FlowJournal* journal_ = nullptr;
  std::vector<Request> requests_;
  std::vector<PipelineRequestId> free_;
  std::vector<StageRun> ready_;
  std::vector<StageRun> cancelled_;
};

}  // namespace tactus
