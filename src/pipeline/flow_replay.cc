#include "pipeline/flow_replay.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/flow.h"

namespace tactus {
namespace {

using Word = FlowRecord::Kind;
using Values = std::vector<std::int64_t>;

// Bounds on what a file may make us allocate or compute with.
constexpr std::int64_t kMostTime = std::int64_t{1} << 60;
constexpr std::int64_t kMostNeed = std::int64_t{1} << 54;
constexpr std::int64_t kMostRows = 1 << 30;
constexpr std::int64_t kMostFlows = 1 << 20;

struct Line {
  std::size_t number = 0;
  char kind = 0;
  Values values;          // that of the Flow first
  std::string_view rest;  // what is no number any more
};

struct Said {
  Word kind;
  Values values;

  bool operator==(const Said&) const = default;
};

std::string TextOf(const Said& said) {
  return fmt::format("{} {}", static_cast<char>(said.kind), fmt::join(said.values, " "));
}

bool IsWithin(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value >= low && value <= high;
}

Line Read(std::string_view text, std::size_t number) {
  Line line{.number = number, .kind = text.front(), .values = {}, .rest = text.substr(1)};
  while (line.rest.starts_with(' ')) {
    std::int64_t value = 0;
    const char* const end = line.rest.data() + line.rest.size();
    const auto [after, error] = std::from_chars(line.rest.data() + 1, end, value);
    if (error != std::errc{} || (after != end && *after != ' ')) break;
    line.values.push_back(value);
    line.rest.remove_prefix(static_cast<std::size_t>(after - line.rest.data()));
  }
  return line;
}

// One Flow of the journal, begun anew.
class Stage final : public FlowOutbox, public FlowJournal {
 public:
  // Null, or why this is none.
  const char* Declare(const Line& line) {
    const Values& v = line.values;
    if (v.size() < 5 || !IsWithin(v[1], 1, kMostTime) || !IsWithin(v[2], 0, 5) ||
        !IsWithin(v[3], 0, 1) || !IsWithin(v[4], 1, PipelineGraph::kMostStages)) {
      return "no pipeline looks like this";
    }
    pipeline_.slo = Nanos(v[1]);
    pipeline_.deadlines = static_cast<DeadlineRule>(v[2]);
    pipeline_.answer = static_cast<AnswerRule>(v[3]);
    wanted_stages_ = static_cast<std::size_t>(v[4]);
    return nullptr;
  }
  const char* AddStage(const Line& line) {
    const Values& v = line.values;
    const bool fits = v.size() >= 9 && declared_.size() < wanted_stages_ && IsWithin(v[1], 0, 1) &&
                      IsWithin(v[2], 1, PipelineLevels::kMostItems) &&
                      IsWithin(v[3], 1, PipelineLevels::kMostItems) &&
                      IsWithin(v[4], -1, PipelineGraph::kMostStages) &&
                      std::ranges::all_of(std::span(v).subspan(5, 3), [](std::int64_t ns) {
                        return IsWithin(ns, 0, kMostNeed);
                      });
    if (!fits || v[8] < 0 || v.size() < 9 + static_cast<std::size_t>(v[8])) {
      return "no stage looks like this";
    }
    StageDeclaration stage{.name = std::to_string(declared_.size())};
    stage.demultiply = v[1] == 1;
    stage.demultiply_most = static_cast<int>(v[2]);
    stage.count = static_cast<int>(v[3]);
    if (v[4] >= 0) stage.gather = std::to_string(v[4]);
    for (std::int64_t a = 0; a < v[8]; ++a) {
      stage.after.push_back(std::to_string(v[9 + static_cast<std::size_t>(a)]));
    }
    declared_.push_back(std::move(stage));
    pipeline_.stages.push_back({.name = declared_.back().name,
                                .model = ModelId{0},
                                .deadline = Nanos(v[5]),
                                .budget = {},
                                .need = Nanos(v[6]),
                                .least = Nanos(v[7])});
    return nullptr;
  }
  // Once all stages are there.
  Status Build() {
    if (flow_ != nullptr) return {};
    if (declared_.size() != wanted_stages_) return InvalidArgument("its stages are missing");
    auto graph = PipelineGraph::Make(declared_);
    if (!graph) return std::unexpected(graph.error());
    auto levels = PipelineLevels::Make(*graph, declared_);
    if (!levels) return std::unexpected(levels.error());
    pipeline_.graph = *std::move(graph);
    pipeline_.levels = *std::move(levels);
    std::vector<Pipeline> pipelines;
    pipelines.push_back(std::move(pipeline_));
    flow_ = std::make_unique<Flow>(std::move(pipelines), *this);
    flow_->Record(this);
    return {};
  }

  // Why no Flow could have been told this; null when it was told.
  const char* Tell(const Line& line, FlowReplayResult& result) {
    const std::span<const std::int64_t> v = std::span(line.values).subspan(1);
    ++result.events;
    switch (static_cast<Word>(line.kind)) {
      case Word::kBegin:
        ++result.requests;
        return Begin(v);
      case Word::kAnswer:
      case Word::kRefuse:
        return End(static_cast<Word>(line.kind), v);
      case Word::kLeave:
        if (v.size() != 2 || !IsWithin(v[0], 0, requests_ - 1) || !IsTime(v[1])) {
          return "no such request has begun";
        }
        flow_->Cancel(PipelineRequestId{static_cast<std::uint32_t>(v[0])}, At(v[1]));
        return nullptr;
      case Word::kNeed:
        return Need(v);
      default:
        return "a Flow is not told such a thing";
    }
  }

  // What it said last that the journal has not been compared with.
  std::deque<Said> said;

  void Append(const FlowRecord& record) override {
    const bool is_told = static_cast<char>(record.kind) >= 'a';
    if (!is_told) said.push_back({record.kind, {record.values.begin(), record.values.end()}});
  }
  void Start(const RunKey& run, TimePoint, TimePoint) override {
    requests_ = std::max(requests_, std::int64_t{run.request.value()} + 1);
    running_.insert(Of(run));
  }
  void Lost(const RunKey&, TimePoint) override {}
  void Cancel(const RunKey&) override {}
  void Ended(const PipelineEnd& end) override {
    requests_ = std::max(requests_, std::int64_t{end.request.value()} + 1);
  }

 private:
  using Run = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  static Run Of(const RunKey& key) {
    return {key.request.value(), key.run.stage.value(), key.run.item};
  }
  static bool IsTime(std::int64_t ns) { return IsWithin(ns, -kMostTime, kMostTime); }
  static TimePoint At(std::int64_t ns) { return TimePoint{Nanos(ns)}; }

  const char* Begin(std::span<const std::int64_t> v) {
    if (v.size() != 5 || v[0] != 0 || !IsTime(v[1]) || !IsTime(v[2]) || !IsWithin(v[4], 0, 1)) {
      return "no request begins like this";
    }
    const PipelineGraph& graph = flow_->pipelines()[0].graph;
    const auto wanted = static_cast<StageMask>(v[3]);
    const StageMask all = kAllStages >> (PipelineGraph::kMostStages - graph.size());
    if ((wanted & all) == 0 || graph.WithAllBefore(wanted & all) != (wanted & all)) {
      return "a stage is wanted, and not all that it waits for";
    }
    flow_->Begin(0, At(v[1]), At(v[2]), wanted, static_cast<PipelineEntry>(v[4]));
    return nullptr;
  }
  const char* End(Word kind, std::span<const std::int64_t> v) {
    if (v.size() != 5 || !IsTime(v[3])) return "no run ends like this";
    for (const std::int64_t each : v.first(3)) {
      if (!IsWithin(each, 0, UINT32_MAX)) return "no such run was started";
    }
    const RunKey key = {
        PipelineRequestId{static_cast<std::uint32_t>(v[0])},
        {StageId{static_cast<std::uint32_t>(v[1])}, static_cast<std::uint32_t>(v[2])}};
    if (running_.erase(Of(key)) == 0) return "no such run was started, or it has ended";
    if (kind == Word::kAnswer) {
      if (!IsWithin(v[4], 0, kMostRows)) return "no answer has so many rows";
      flow_->Answered(key, static_cast<int>(v[4]), At(v[3]));
    } else {
      if (!IsWithin(v[4], 0, static_cast<std::int64_t>(DropReason::kUnloaded))) {
        return "no run is refused for this reason";
      }
      flow_->Refused(key, static_cast<DropReason>(v[4]), At(v[3]));
    }
    return nullptr;
  }
  const char* Need(std::span<const std::int64_t> v) {
    if (v.size() != 3 || v[0] != 0 || v[1] != static_cast<std::int64_t>(needs_.size()) ||
        !IsWithin(v[2], 0, kMostNeed)) {
      return "stages' needs are out of order, or none";
    }
    needs_.push_back(Nanos(v[2]));
    if (needs_.size() < flow_->pipelines()[0].stages.size()) return nullptr;
    flow_->Adopt(0, needs_);
    needs_.clear();
    return nullptr;
  }

  Pipeline pipeline_;
  std::vector<StageDeclaration> declared_;
  std::size_t wanted_stages_ = 0;
  std::unique_ptr<Flow> flow_;
  std::set<Run> running_;  // started, and not reported yet
  std::vector<Duration> needs_;
  std::int64_t requests_ = 0;
};

class Replay {
 public:
  Replay(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Expected<FlowReplayResult> Run() {
    if (Status head = Head(); !head) return std::unexpected(head.error());
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      if (end == std::string_view::npos || ended_) break;
      const Line line = Read(text_.substr(0, std::max(end, std::size_t{1})), ++number_);
      text_.remove_prefix(end + 1);
      if (Status fine = Take(line); !fine) return std::unexpected(fine.error());
      if (result_.difference) return std::move(result_);
    }
    if (!text_.empty() && ended_) return Bad("something follows its end");
    if (!ended_) {  // its writer was killed, maybe within a line
      result_.complete = false;
      result_.cut_off = true;
    }
    if (result_.complete) CompareEnds();
    return std::move(result_);
  }

 private:
  Status Head() {
    const std::size_t end = text_.find('\n');
    if (!text_.starts_with(kFlowJournalHead) || end == std::string_view::npos) {
      return InvalidArgument(fmt::format("{}: is no journal of pipelines", where_));
    }
    const std::string_view head =
        text_.substr(kFlowJournalHead.size(), end - kFlowJournalHead.size());
    text_.remove_prefix(end + 1);
    ++number_;
    const std::string format = fmt::format("{} ", kFlowJournalFormat);
    if (!head.starts_with(format)) {
      return Bad(
          fmt::format("is of another format than {}; replay it with the tactus that wrote it",
                      kFlowJournalFormat));
    }
    result_.commit = head.substr(format.size());
    return {};
  }

  Status Take(const Line& line) {
    if (line.kind == 'e') {
      if (line.values.size() != 2 || line.values[0] != static_cast<std::int64_t>(number_ - 2)) {
        return Bad("lines are missing before its end");
      }
      ended_ = true;
      result_.complete = line.values[1] != 0;
      return {};
    }
    if (line.values.empty() || !IsWithin(line.values[0], 0, kMostFlows)) {
      return Bad("is damaged: no record begins like this");
    }
    const auto flow = static_cast<std::size_t>(line.values[0]);
    if (line.kind == 'p') return Declare(line, flow);
    if (flow >= flows_.size()) return Bad("no such pipeline was declared");
    Stage& stage = *flows_[flow];
    if (line.kind == 's') return Why(stage.AddStage(line));
    if (Status built = stage.Build(); !built) return Bad(built.error().message);
    if (line.kind < 'a') return Compare(line, stage);
    if (!stage.said.empty()) {
      Differ("something else", TextOf(stage.said.front()));
      return {};
    }
    return Why(stage.Tell(line, result_));
  }
  Status Declare(const Line& line, std::size_t flow) {
    if (flow != flows_.size()) return Bad("pipelines are numbered from 0 on");
    flows_.push_back(std::make_unique<Stage>());
    ++result_.pipelines;
    return Why(flows_.back()->Declare(line));
  }
  Status Compare(const Line& line, Stage& stage) {
    const Said journal{static_cast<Word>(line.kind), {line.values.begin() + 1, line.values.end()}};
    if (stage.said.empty()) {
      Differ(TextOf(journal), "nothing");
    } else if (stage.said.front() != journal) {
      Differ(TextOf(journal), TextOf(stage.said.front()));
    } else {
      stage.said.pop_front();
      ++result_.decisions;
    }
    return {};
  }
  void CompareEnds() {
    for (const auto& stage : flows_) {
      if (!stage->said.empty()) return Differ("nothing more", TextOf(stage->said.front()));
    }
  }
  void Differ(std::string_view journal, std::string_view now) {
    result_.difference = fmt::format("line {}: the journal has '{}', and this program decides '{}'",
                                     number_, journal, now);
  }
  Status Why(const char* wrong) const {
    if (wrong == nullptr) return {};
    return Bad(wrong);
  }
  std::unexpected<Error> Bad(std::string_view what) const {
    return InvalidArgument(fmt::format("{}:{}: {}", where_, number_, what));
  }

  std::string_view text_;
  const std::string_view where_;
  FlowReplayResult result_;
  std::vector<std::unique_ptr<Stage>> flows_;
  std::size_t number_ = 0;  // of the line
  bool ended_ = false;
};

}  // namespace

Expected<FlowReplayResult> ReplayFlows(std::string_view text, std::string_view where) {
  return Replay(text, where).Run();
}

}  // namespace tactus
