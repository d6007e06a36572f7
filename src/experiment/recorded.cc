#include "experiment/recorded.h"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "dispatch/replay.h"
#include "metrics/recorder.h"
#include "policies/registry.h"

namespace tactus {
namespace {

bool AreAlike(const Model& a, const Model& b) {
  return a.name == b.name && a.exit_count() == b.exit_count();
}

// What the replay tells: every request's end, and what every batch took.
class Tale final : public ReplayWatch {
 public:
  explicit Tale(const JournalFile& journal) : recorder_(journal.records.size() / 4) {
    seen.setting = journal.header;
    seen.lanes.resize(journal.header.lanes.size());
    TimePoint step = kNever;
    for (const JournalRecord& record : std::views::reverse(journal.records)) {
      if (record.kind == JournalRecord::Kind::kStep) step = record.at;
      if (record.kind != JournalRecord::Kind::kFinish) continue;
      learnt_[record.id] = record.at;
      free_[record.id] = step == kNever ? record.at : std::max(step, record.at);
    }
  }

  // A model that was loaded again is the same; another one in its place is not.
  void Configured(std::shared_ptr<const ServedModels> served) override {
    places_.resize(std::max(places_.size(), served->models.size()));
    for (std::uint32_t id = 0; id < served->models.size(); ++id) {
      const Model& model = served->models[id];
      if (!model.loaded) continue;
      std::optional<std::uint32_t>& place = places_[id];
      if (!place || !AreAlike(seen.models[*place].model(), model)) {
        place = static_cast<std::uint32_t>(seen.models.size());
        seen.models.emplace_back();
      }
      seen.models[*place] = {served, id};
    }
  }
  void Arrived(ModelId model, const Request& request) override {
    if (const auto place = places_.at(model.value())) of[request.id.value()] = *place;
  }
  void Launched(const Batch& batch) override {
    running_[batch.id.value()] = {
        {PlaceOf(batch), batch.exit.value(), static_cast<int>(batch.requests.size())},
        batch.lane,
        batch.start};
  }
  void Finished(BatchId id, const BatchReport& report) override {
    const auto found = running_.find(id.value());
    if (found == running_.end()) return;
    const Running ran = found->second;
    running_.erase(found);
    LaneTotals& lane = seen.lanes[ran.lane.value()];
    // As a simulated batch: from its decision until its lane was free for another.
    const Duration took = free_.at(id.value()) - ran.decided;
    lane.busy += took;
    ++lane.batches;
    if (report.status == BatchStatus::kOk) seen.took[ran.cell].push_back({ran.decided, took});
  }
  void Answered(const Batch& batch, const BatchReport& report) override {
    Batch placed = batch;
    placed.model = ModelId{PlaceOf(batch)};
    recorder_.Complete(placed, report, learnt_.at(batch.id.value()));
  }
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override {
    if (reason == DropReason::kCancelled) {
      cancelled.insert(request.id.value());
    } else {
      const auto place = of.find(request.id.value());
      recorder_.Reject(place == of.end() ? model : ModelId{place->second}, request, reason, now);
    }
  }

  std::vector<RequestRecord> TakeRecords() { return std::move(recorder_).Take(); }

  Observed seen;
  std::unordered_map<std::uint64_t, std::uint32_t> of;  // by request: which of seen.models
  std::unordered_set<std::uint64_t> cancelled;          // requests whose clients left

 private:
  struct Running {
    Observed::Cell cell;
    LaneId lane;
    TimePoint decided;
  };
  std::uint32_t PlaceOf(const Batch& batch) const {
    return batch.requests.empty() ? 0 : of.at(batch.requests.front().id.value());
  }

  Recorder recorder_;
  std::vector<std::optional<std::uint32_t>> places_;  // by id, in seen.models, of who has it now
  std::unordered_map<std::uint64_t, Running> running_;
  std::unordered_map<std::uint64_t, TimePoint> learnt_;  // by batch: when its end was known ...
  std::unordered_map<std::uint64_t, TimePoint> free_;    // ... and its lane was given another
};

Status CheckLanes(const JournalFile& journal) {
  const bool planned = std::ranges::any_of(journal.changes, [](const JournalFile::Change& change) {
    return !std::holds_alternative<std::shared_ptr<const ServedModels>>(change.to);
  });
  if (!planned) return CheckLanesAlike(journal.header.lanes);
  return InvalidArgument("its lanes " + std::string(kLanesNotSimulated));
}

// When what counts begins and ends.
std::pair<TimePoint, TimePoint> WindowOf(const JournalFile& journal, std::optional<Duration> last) {
  TimePoint first = kNever;
  TimePoint end = kStart;
  for (const JournalRecord& record : journal.records) {
    if (record.kind != JournalRecord::Kind::kArrive) continue;
    first = std::min(first, record.at);
    end = std::max(end, record.at);
  }
  if (last && first != kNever) first = std::max(first, end - *last);
  return {first, end};
}

// What arrived is known to the dispatcher at its next step.
void AddArrivals(const JournalFile& journal, Tale& tale) {
  Observed& seen = tale.seen;
  seen.arrivals.resize(seen.models.size());
  TimePoint known = kStart;
  for (const JournalRecord& record : std::views::reverse(journal.records)) {
    if (record.kind == JournalRecord::Kind::kStep) known = record.at;
    if (record.kind != JournalRecord::Kind::kArrive) continue;
    const auto of = tale.of.find(record.id);
    if (of == tale.of.end() || tale.cancelled.contains(record.id)) continue;
    seen.arrivals[of->second].push_back({{.arrival = record.at,
                                          .deadline = record.deadline,
                                          .shape = record.shape,
                                          .priority = record.priority},
                                         std::max(known, record.at)});
  }
  for (auto& model : seen.arrivals) {
    std::ranges::reverse(model);
    // The end of a journal that was cut off has no step.
    TimePoint last = kStart;
    for (RecordedRequest& each : model) last = each.known = std::max(each.known, last);
  }
}

}  // namespace

Expected<RecordedRun> ReadRecorded(const JournalFile& journal, const std::string& name,
                                   std::optional<Duration> last) {
  if (Status can = CheckLanes(journal); !can) return std::unexpected(can.error());
  auto policy = MakePolicy(journal.header.policy);
  if (!policy) return std::unexpected(policy.error());
  Tale tale(journal);
  const auto replayed = Replay(journal, **policy, &tale);
  if (!replayed) return std::unexpected(replayed.error());
  if (replayed->difference) {
    return InvalidArgument(
        fmt::format("this program decides otherwise than the one that wrote it (commit {})",
                    journal.header.commit));
  }
  Observed& seen = tale.seen;
  seen.name = name;
  std::tie(seen.first, seen.end) = WindowOf(journal, last);
  constexpr Duration kLongest = Seconds(std::int64_t{24} * 3600);
  if (seen.end - kStart > kLongest) {
    return InvalidArgument(
        "it is longer than a day; write a journal anew (--journal) to try a part");
  }
  AddArrivals(journal, tale);
  seen.records = tale.TakeRecords();
  return RunOf(seen);
}

}  // namespace tactus
