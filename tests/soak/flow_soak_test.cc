// Random pipelines of every rule with random answers, refusals, engines that fail, models that are
// unloaded, clients that leave and late news of all of them: every pipeline request must end
// exactly once, no run may start before what it waits for is there, and nothing may be left in the
// Flow. A million of them: ./run soak flows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chance.h"
#include "pipeline/flow.h"
#include "pipeline/flow_replay.h"
#include "pipeline/made_pipeline_test.h"
#include "soak_options.h"

namespace tactus {
namespace {

constexpr int kRequestsOfALife = 100;
constexpr int kMostRows = 3;

PipelineDeclaration AnyDeclaration(Chance& chance) {
  PipelineDeclaration declaration;
  declaration.name = "p";
  declaration.slo = Millis(chance.Whole(10, 100));
  declaration.deadlines = std::array{DeadlineRule::kLatency, DeadlineRule::kEqual,
                                     DeadlineRule::kWhole,   DeadlineRule::kRedivide,
                                     DeadlineRule::kPersist, DeadlineRule::kSpare}[chance.Below(6)];
  declaration.answer = chance.OneIn(2) ? AnswerRule::kEach : AnswerRule::kAll;
  const int stages = chance.Whole(1, 8);
  std::vector<std::string> demultiplying;
  for (int s = 0; s < stages; ++s) {
    StageDeclaration& stage = declaration.stages.emplace_back();
    stage.name = std::to_string(s);
    for (int other = 0; other < s; ++other) {
      if (chance.OneIn(3)) stage.after.push_back(std::to_string(other));
    }
    if (!demultiplying.empty() && chance.OneIn(3)) {
      stage.gather = demultiplying[chance.Below(demultiplying.size())];
    }
    stage.demultiply_most = kMostRows;
    stage.demultiply = chance.OneIn(4);
    if (stage.demultiply) demultiplying.push_back(stage.name);
    if (!stage.demultiply && chance.OneIn(4)) stage.count = chance.Whole(2, 3);
  }
  return declaration;
}

PipelineDeclaration AnyValid(Chance& chance) {
  PipelineDeclaration declaration = AnyDeclaration(chance);
  while (!Validate(declaration)) declaration = AnyDeclaration(chance);
  return declaration;
}

// Written down as a server does.
class Recorder final : public FlowJournal {
 public:
  Recorder(const PipelineDeclaration& declaration, const Pipeline& pipeline)
      : head_(FlowText(0, declaration, pipeline)) {}
  void Append(const FlowRecord& record) override { AppendText(text_, 0, record); }
  std::string Whole() const {
    const std::string lines = head_ + text_;
    return FlowHeadText("none") + lines +
           FlowEndText(static_cast<std::uint64_t>(std::ranges::count(lines, '\n')), true);
  }

 private:
  const std::string head_;
  std::string text_;
};

// What is known of one request by plain means: every item that there is, and each run's fate.
class Witness {
 public:
  Witness(const Pipeline& pipeline, StageMask wanted)
      : pipeline_(pipeline), wanted_(wanted), items_(pipeline.levels.size()) {
    Add(PipelineLevels::kRoot, 0);
  }

  void Answered(StageRun run, int rows) {
    done_.insert(run);
    const LevelId opened = pipeline_.levels.opened_by(run.stage);
    if (!opened.valid()) return;
    opened_.insert({opened, run.item});
    for (int i = 0; i < std::min(rows, kMostRows); ++i) Add(opened, run.item);
  }
  // Whatever happens of its row is nobody's concern any more.
  void Lost(StageRun run) {
    LevelId level = pipeline_.levels.of(run.stage);
    std::uint32_t item = run.item;
    while (pipeline_.levels.fixed(level) > 0) {
      item = items_[level.value()][item];
      level = Outer(level);
    }
    lost_.insert({level, item});
  }
  // All that the run waits for is answered, or lost.
  bool MayStart(StageRun run) const {
    if (!IsIn(wanted_, run.stage)) return false;
    const PipelineLevels& levels = pipeline_.levels;
    for (const StageId before : pipeline_.graph.before(run.stage)) {
      const LevelId meeting = levels.Meeting(before, run.stage);
      LevelId level = levels.of(run.stage);
      std::uint32_t item = run.item;
      for (; level != meeting; level = Outer(level)) item = items_[level.value()][item];
      if (!IsComplete(before, level, item)) return false;
    }
    return true;
  }
  bool IsComplete() const {
    for (StageId::rep s = 0; s < pipeline_.stages.size(); ++s) {
      const bool complete = IsComplete(StageId{s}, PipelineLevels::kRoot, 0);
      if (IsIn(wanted_, StageId{s}) && !complete) return false;
    }
    return true;
  }

 private:
  LevelId Outer(LevelId level) const {
    const auto path = pipeline_.levels.path(level);
    return path[path.size() - 2];
  }
  void Add(LevelId level, std::uint32_t around) {
    items_[level.value()].push_back(around);
    const auto item = static_cast<std::uint32_t>(items_[level.value()].size() - 1);
    for (const LevelId inner : pipeline_.levels.inner(level)) {
      if (pipeline_.levels.fixed(inner) == 0) continue;
      opened_.insert({inner, item});
      for (int i = 0; i < pipeline_.levels.fixed(inner); ++i) Add(inner, item);
    }
  }
  bool IsComplete(StageId stage, LevelId level, std::uint32_t item) const {
    if (lost_.contains({level, item})) return true;
    const auto path = pipeline_.levels.path(pipeline_.levels.of(stage));
    const std::size_t depth = pipeline_.levels.depth(level);
    if (depth + 1 == path.size()) return done_.contains({stage, item});
    const LevelId inner = path[depth + 1];
    if (!opened_.contains({inner, item})) return false;
    const auto& items = items_[inner.value()];
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (items[i] == item && !IsComplete(stage, inner, i)) return false;
    }
    return true;
  }

  const Pipeline& pipeline_;
  const StageMask wanted_;
  std::vector<std::vector<std::uint32_t>> items_;       // by level: what each lies in
  std::set<std::pair<LevelId, std::uint32_t>> opened_;  // inside which item
  std::set<std::pair<LevelId, std::uint32_t>> lost_;
  std::set<StageRun> done_;
};

// Carries out what the Flow says, in any order, and holds it to what it promises.
class Life final : public FlowOutbox {
 public:
  explicit Life(Chance& chance)
      : chance_(chance),
        declaration_(AnyValid(chance)),
        flow_({PipelineOf(declaration_, Millis(1))}, *this),
        pipeline_(flow_.pipelines()[0]),
        recorder_(declaration_, pipeline_) {
    flow_.Record(&recorder_);
  }

  void Live() {
    int begun = 0;
    while ((begun < kRequestsOfALife || !runs_.empty()) && !::testing::Test::HasFailure()) {
      now_ += Micros(chance_.Whole(0, 3000));
      if (begun < kRequestsOfALife && (runs_.empty() || chance_.OneIn(8))) {
        ++begun;
        Begin();
      } else if (chance_.OneIn(60)) {
        flow_.Cancel(runs_[chance_.Below(runs_.size())].key.request, now_);
      } else if (chance_.OneIn(100)) {
        Break();
      } else if (chance_.OneIn(200)) {
        Adopt();
      } else {
        Report(chance_.Below(runs_.size()));
      }
    }
    EXPECT_EQ(ended, begun);
    EXPECT_TRUE(open_.empty());
    EXPECT_EQ(flow_.underway(), 0u);
    const auto again = ReplayFlows(recorder_.Whole(), "journal");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_FALSE(again->difference) << *again->difference;
    EXPECT_EQ(again->requests, static_cast<std::uint64_t>(begun));
  }

  void Start(const RunKey& key, TimePoint now, TimePoint deadline) override {
    Note();
    EXPECT_EQ(now, now_);
    EXPECT_LE(now, deadline);
    for (const Run& run : runs_) EXPECT_NE(run.key, key) << "it runs already";
    EXPECT_TRUE(At(key.request).MayStart(key.run)) << "before what it waits for";
    runs_.push_back({key});
  }
  void Lost(const RunKey& key, TimePoint now) override {
    EXPECT_EQ(now, now_);
    EXPECT_TRUE(pipeline_.answer == AnswerRule::kEach && pipeline_.levels.IsOfRows(key.run.stage));
    if (answered_ && answered_->key == key) answered_.reset();  // it came too late to count
    Note();
    At(key.request).Lost(key.run);
  }
  void Cancel(const RunKey& key) override {
    for (Run& run : runs_) {
      if (run.key != key) continue;
      EXPECT_FALSE(run.cancelled);
      run.cancelled = true;
      return;
    }
    ADD_FAILURE() << "cancelled what does not run";
  }
  void Ended(const PipelineEnd& end) override {
    Note();
    if (end.not_admitted) {
      EXPECT_EQ(pipeline_.deadlines, DeadlineRule::kSpare);
      EXPECT_TRUE(beginning_) << "refused after it had begun";
      EXPECT_EQ(end.outcome, PipelineOutcome::kDropped);
      At(end.request);  // nothing else is heard of it
      ++not_admitted;
    }
    const auto at = open_.find(end.request);
    ASSERT_NE(at, open_.end()) << "a request ended twice, or before it began";
    if (end.outcome == PipelineOutcome::kOnTime || end.outcome == PipelineOutcome::kLate) {
      EXPECT_TRUE(at->second.IsComplete());
      EXPECT_EQ(end.outcome == PipelineOutcome::kOnTime, end.ended <= end.deadline);
      rows_lost += end.items_lost;
    }
    open_.erase(at);
    ++ended;
    ++outcomes[static_cast<std::size_t>(end.outcome)];
  }

  int ended = 0;
  std::array<int, 4> outcomes{};
  int rows_lost = 0;
  int not_admitted = 0;
  int unloaded = 0;  // runs refused as their model was away, or had failed

 private:
  struct Run {
    RunKey key;
    bool cancelled = false;
  };
  struct Answer {
    RunKey key;
    int rows = 0;
  };

  // Of one that begins: the first that is heard of it.
  Witness& At(PipelineRequestId id) {
    if (beginning_ && !open_.contains(id)) {
      beginning_ = false;
      EXPECT_TRUE(held_.insert(id).second) << "an id that is still in use";
      open_.try_emplace(id, pipeline_, wanted_);
    }
    return open_.at(id);
  }

  void Begin() {
    beginning_ = true;
    wanted_ = kAllStages;
    if (chance_.OneIn(3)) {
      const auto output = chance_.Below(pipeline_.stages.size());
      wanted_ = pipeline_.graph.WithAllBefore(StageMask{1} << output);
    }
    const PipelineEntry entry = chance_.OneIn(5) ? PipelineEntry::kAside : PipelineEntry::kByWindow;
    const PipelineRequestId id = flow_.Begin(0, now_, now_ + pipeline_.slo, wanted_, entry);
    EXPECT_TRUE(held_.contains(id));
    Release();
  }

  void Report(std::size_t place) {
    const Run run = runs_[place];
    runs_[place] = runs_.back();
    runs_.pop_back();
    if (now_ < away_until_[run.key.run.stage.value()]) {
      ++unloaded;
      flow_.Refused(run.key, DropReason::kUnloaded, now_);
    } else if (run.cancelled ? chance_.OneIn(3) : !chance_.OneIn(10)) {
      const int rows = chance_.Whole(0, kMostRows + 1);
      if (!run.cancelled) answered_ = {run.key, rows};
      flow_.Answered(run.key, rows, now_);
      Note();
    } else {
      const DropReason reason = run.cancelled
                                    ? DropReason::kCancelled
                                    : std::array{DropReason::kExpired, DropReason::kShed,
                                                 DropReason::kQueueFull}[chance_.Below(3)];
      flow_.Refused(run.key, reason, now_);
    }
    Release();
  }

  // A stage's engine fails, or its model is unloaded: all its runs end at once, and for a while
  // each that starts does.
  void Break() {
    const StageId stage = runs_[chance_.Below(runs_.size())].key.run.stage;
    if (chance_.OneIn(2)) away_until_[stage.value()] = now_ + Millis(chance_.Whole(0, 10));
    std::vector<RunKey> broken;
    for (const Run& run : runs_) {
      if (run.key.run.stage == stage) broken.push_back(run.key);
    }
    for (const RunKey& key : broken) {
      std::erase_if(runs_, [&](const Run& run) { return run.key == key; });
      ++unloaded;
      flow_.Refused(key, DropReason::kUnloaded, now_);
      Release();
    }
  }
  void Adopt() {
    std::vector<Duration> needs;
    for (std::size_t s = 0; s < pipeline_.stages.size(); ++s) {
      needs.push_back(Micros(chance_.Whole(0, 20'000)));
    }
    flow_.Adopt(0, needs);
  }

  // The answer counts, as the Flow did not say that it came too late.
  void Note() {
    if (!answered_) return;
    const Answer answer = *answered_;
    answered_.reset();
    const auto at = open_.find(answer.key.request);
    if (at != open_.end()) at->second.Answered(answer.key.run, answer.rows);
  }

  // Ids whose request has ended and that nothing runs for any more.
  void Release() {
    std::set<PipelineRequestId> running;
    for (const Run& run : runs_) running.insert(run.key.request);
    std::erase_if(
        held_, [&](PipelineRequestId id) { return !open_.contains(id) && !running.contains(id); });
    EXPECT_EQ(flow_.underway(), held_.size());
  }

  Chance& chance_;
  const PipelineDeclaration declaration_;
  Flow flow_;
  const Pipeline& pipeline_;
  Recorder recorder_;
  StageMask wanted_ = kAllStages;  // of the request that begins
  TimePoint now_ = kStart;
  std::array<TimePoint, PipelineGraph::kMostStages> away_until_{};  // by stage
  std::vector<Run> runs_;                                           // started and not reported
  std::optional<Answer> answered_;                                  // that the Flow is being told
  bool beginning_ = false;
  std::set<PipelineRequestId> held_;
  std::map<PipelineRequestId, Witness> open_;
};

TEST(FlowSoak, EveryPipelineRequestEndsOnceAndLeavesNothing) {
  const Seeds seeds = SeedsOf(RequestsOf(200 * kRequestsOfALife) / kRequestsOfALife);
  std::array<std::int64_t, 4> outcomes{};
  std::int64_t requests = 0, rows_lost = 0, not_admitted = 0, unloaded = 0;
  std::uint64_t lives = 0;
  for (; seeds.More(lives) && !HasFailure(); ++lives) {
    SCOPED_TRACE(Again(seeds.first + lives));
    SeededChance chance(seeds.first + lives, "soak/flow");
    Life life(chance);
    life.Live();
    for (std::size_t o = 0; o < outcomes.size(); ++o) outcomes[o] += life.outcomes[o];
    requests += life.ended;
    rows_lost += life.rows_lost;
    not_admitted += life.not_admitted;
    unloaded += life.unloaded;
  }
  for (const std::int64_t n : outcomes) EXPECT_GT(n, 0) << "no seed had such an end";
  EXPECT_GT(rows_lost, 0);
  EXPECT_GT(not_admitted, 0);
  EXPECT_GT(unloaded, 0);
  std::printf("%s\n",
              fmt::format("{} pipeline requests in {} lives, each ended once: {} on time, {} late, "
                          "{} dropped (of which {} as they came), {} cancelled; {} runs met a "
                          "model that had failed or was away",
                          requests, lives, outcomes[0], outcomes[1], outcomes[2], not_admitted,
                          outcomes[3], unloaded)
                  .c_str());
}

}  // namespace
}  // namespace tactus
