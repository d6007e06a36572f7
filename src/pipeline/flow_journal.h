// What a Flow was told and what it said, in order. Told the same again it must say the same, every
// word (`tactus replay`).
//
// A journal of pipelines is text, a line for each record, so that people can read it too:
//
//   tactus pipelines 2 COMMIT
//   p FLOW SLO DEADLINES ANSWER STAGES NAME                         a Flow of this pipeline begins,
//   s FLOW ROWS MOST COUNT GATHER DEADLINE NEED LEAST N AFTER... NAME       whose stages are these
//   b FLOW PIPELINE NOW DEADLINE WANTED ASIDE                        then what happened to it ...
//   S FLOW REQUEST STAGE ITEM DEADLINE                               ... and what it said of it
//   e LINES COMPLETE                                                 the last line
//
// Instants and durations are nanoseconds. COMPLETE = 0 says that the writer fell behind and
// stopped: what is there is a true beginning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/declaration.h"
#include "pipeline/pipeline.h"

namespace tactus {

struct FlowRecord {
  enum class Kind : char {
    // What it was told.
    kBegin = 'b',   // pipeline, now, deadline, wanted stages, whether aside of the window
    kAnswer = 'a',  // request, stage, item, now, rows
    kRefuse = 'r',  // request, stage, item, now, reason
    kLeave = 'l',   // request, now: nobody waits for it
    kNeed = 'n',    // pipeline, stage, duration: one for each stage of what it is to adopt
    // What it said.
    kStart = 'S',  // request, stage, item, deadline
    kLose = 'L',   // request, stage, item
    kStop = 'X',   // request, stage, item
    kEnd = 'E',    // request, outcome, stage, items, items lost, rows cut
  };
  static constexpr std::size_t kMostValues = 6;

  Kind kind = Kind::kBegin;
  std::span<const std::int64_t> values;
};

// Called by whoever drives the Flow, in the middle of it: must not call it.
class FlowJournal {
 public:
  virtual ~FlowJournal() = default;
  virtual void Append(const FlowRecord& record) = 0;
};

inline constexpr std::string_view kFlowJournalHead = "tactus pipelines ";
inline constexpr int kFlowJournalFormat = 2;

// Lines of a journal, each with its line feed.
std::string FlowHeadText(std::string_view commit);
std::string FlowText(std::uint32_t flow, const PipelineDeclaration& declaration,
                     const Pipeline& pipeline);
void AppendText(std::string& text, std::uint32_t flow, const FlowRecord& record);
std::string FlowEndText(std::uint64_t lines, bool complete);

}  // namespace tactus
