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

  void Configured(std::shared_ptr<const ServedModels> served) override {
    served_.push_back(std::move(served));
  }
  void Launched(const Batch& batch) override {
    running_[batch.id.value()] = {
        {batch.model.value(), batch.exit.value(), static_cast<int>(batch.requests.size())},
        batch.lane,
        batch.start};
  }
  void Finished(BatchId id, const BatchReport& report) override {
    const auto found = running_.find(id.value());
    if (found == running_.end()) return;
    const Running ran = found->second;
    running_.erase(found);
    LaneTotals& lane = seen.lanes[ran.lane.value()];
    lane.busy += report.ended - report.started;
    ++lane.batches;
    if (report.status != BatchStatus::kOk) return;
    seen.took[ran.cell].push_back({ran.decided, free_.at(id.value()) - ran.decided});
  }
  void Answered(const Batch& batch, const BatchReport& report) override {
    recorder_.Complete(batch, report, learnt_.at(batch.id.value()));
  }
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override {
    if (reason == DropReason::kCancelled) {
      cancelled.insert(request.id.value());
    } else {
      recorder_.Reject(model, request, reason, now);
    }
  }

  std::vector<RequestRecord> TakeRecords() { return std::move(recorder_).Take(); }
  const std::vector<std::shared_ptr<const ServedModels>>& served() const { return served_; }

  Observed seen;
  std::unordered_set<std::uint64_t> cancelled;  // requests whose clients left

 private:
  struct Running {
    Observed::Cell cell;
    LaneId lane;
    TimePoint decided;
  };
  Recorder recorder_;
  std::vector<std::shared_ptr<const ServedModels>> served_;
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

bool AreAlike(const Model& a, const Model& b) {
  return a.name == b.name && a.exit_count() == b.exit_count();
}

// By id, what was served when the model was loaded last; null: it never was. An id that several
// models had cannot be told apart.
Expected<std::vector<std::shared_ptr<const ServedModels>>> ModelsOf(const Tale& tale) {
  std::vector<std::shared_ptr<const ServedModels>> models;
  for (const auto& each : tale.served()) {
    models.resize(std::max(models.size(), each->models.size()));
    for (std::size_t m = 0; m < each->models.size(); ++m) {
      if (!each->models[m].loaded) continue;
      if (models[m] != nullptr && !AreAlike(models[m]->models[m], each->models[m])) {
        return InvalidArgument(
            fmt::format("model '{}' was loaded where '{}' had been, with another name or other "
                        "exits, which is not simulated from a journal",
                        each->models[m].name, models[m]->models[m].name));
      }
      models[m] = each;
    }
  }
  return models;
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
    if (record.model >= seen.arrivals.size() || tale.cancelled.contains(record.id)) continue;
    seen.arrivals[record.model].push_back({{.arrival = record.at,
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
  auto models = ModelsOf(tale);
  if (!models) return std::unexpected(models.error());
  Observed& seen = tale.seen;
  seen.name = name;
  seen.models = *std::move(models);
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
