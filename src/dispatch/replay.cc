#include "dispatch/replay.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include <fmt/format.h>

namespace tactus {
namespace {

using Kind = JournalRecord::Kind;

bool IsEvent(Kind kind) { return kind <= Kind::kStep || kind == Kind::kHolding; }

// No clock of a server or a simulation gets so far, and sums of such instants and latencies stay
// within 64 bits.
constexpr Duration kLongestClock = Seconds(std::int64_t{20} * 366 * 24 * 3600);

bool WithinClock(TimePoint at) {
  return at >= kStart - kLongestClock && at <= kStart + kLongestClock;
}

double Millis(TimePoint at) { return ToMillis(at - kStart); }

// The world of a replay: batches run as long as the journal says.
class Stage final : public Outbox, public Journal {
 public:
  Stage(const JournalFile& journal, Policy& policy, ReplayWatch& watch)
      : journal_(journal),
        watch_(watch),
        dispatcher_(journal.header.options, journal.header.lanes, policy, *this, this) {}

  Expected<ReplayResult> Run() {
    while (next_ < journal_.records.size() && !result_.difference) {
      if (const char* nonsense = Change()) {
        return InvalidArgument(fmt::format("before record {}: {}", next_, nonsense));
      }
      const JournalRecord& record = journal_.records[next_];
      if (!IsEvent(record.kind)) {
        Differ("the replay came to rest before this");
        break;
      }
      if (const char* nonsense = Nonsense(record)) {
        return InvalidArgument(fmt::format("record {} ({}): {}", next_, ToText(record), nonsense));
      }
      ++result_.events;
      Feed(record);
    }
    return result_;
  }

  // Every record that the new dispatcher writes must be the next one of the journal.
  void Append(const JournalRecord& record) noexcept override {
    if (result_.difference) return;
    if (next_ >= journal_.records.size()) {
      // An incomplete journal may end in the middle of a step.
      if (journal_.complete) Differ("the replay went on: " + ToText(record));
      return;
    }
    if (record != journal_.records[next_]) return Differ("the replay had: " + ToText(record));
    result_.decisions += !IsEvent(record.kind);
    ++next_;
  }

  void Launch(const Batch& batch) override {
    running_[batch.id] = batch.lane;
    watch_.Launched(batch);
  }
  void Abort(LaneId, BatchId) override {}
  void Reject(ModelId model, const Request& request, DropReason reason) override {
    watch_.GivenUp(model, request, reason, std::max(now_, request.arrival));
  }
  void Complete(const Batch& batch, const BatchReport& report) override {
    watch_.Answered(batch, report);
  }

 private:
  // Why no dispatcher could have gone through what changed here; null when it could, and did.
  const char* Change() {
    for (; change_ < journal_.changes.size() && journal_.changes[change_].at == next_; ++change_) {
      const JournalFile::Changed& to = journal_.changes[change_].to;
      if (const auto* served_models = std::get_if<std::shared_ptr<const ServedModels>>(&to)) {
        dispatcher_.Configure(*served_models);  // gives up what waits for models that are gone
        watch_.Configured(*served_models);
      } else if (const auto* plan = std::get_if<std::shared_ptr<const Plan>>(&to)) {
        dispatcher_.Adopt(*plan);
        result_.plans += *plan != nullptr;
      } else {
        const auto& share = std::get<LaneShare>(to);
        const Lane& lane = dispatcher_.view().lanes[share.lane.value()];
        if (lane.open || !lane.batches.empty()) return "a lane that serves gets another share";
        dispatcher_.SetLaneShare(share.lane, share.lane_class, share.fraction);
      }
    }
    return nullptr;
  }

  // Why no dispatcher could have seen this event; null when it could.
  const char* Nonsense(const JournalRecord& record) const {
    constexpr const char* kBeyond = "an instant more than 20 years from the start";
    const bool ends = record.kind == Kind::kFinish;
    // A request without a limit has none within any clock.
    const bool due = ends || record.kind == Kind::kArrive;
    if (!WithinClock(record.at) || !WithinClock(record.ended)) return kBeyond;
    if (due && record.deadline != kNever && !WithinClock(record.deadline)) return kBeyond;
    if (ends && (record.deadline == kNever || !WithinClock(kStart + record.upload))) return kBeyond;
    const auto lanes = journal_.header.lanes.size();
    switch (record.kind) {
      case Kind::kArrive:
        if (record.model >= dispatcher_.view().models.size()) return "no such model";
        return record.id >= next_request_ ? nullptr : "request ids must rise";
      case Kind::kFinish: {
        const auto found = running_.find(BatchId{record.id});
        if (found == running_.end() || found->second != LaneId{record.lane}) {
          return "this batch does not run on this lane";
        }
        return record.detail <= static_cast<std::uint8_t>(BatchStatus::kLost) ? nullptr
                                                                              : "no such status";
      }
      case Kind::kLane:
        return record.lane < lanes ? nullptr : "no such lane";
      case Kind::kHolding:
        if (record.lane >= lanes) return "no such lane";
        return record.model < dispatcher_.view().models.size() ? nullptr : "no such model";
      case Kind::kStep:
        return record.at >= now_ ? nullptr : "time runs backwards";
      default:
        return nullptr;
    }
  }

  void Feed(const JournalRecord& record) {
    switch (record.kind) {
      case Kind::kArrive: {
        next_request_ = record.id + 1;
        const Request request{.id = RequestId{record.id},
                              .arrival = record.at,
                              .deadline = record.deadline,
                              .shape = record.shape,
                              .priority = record.priority};
        watch_.Arrived(ModelId{record.model}, request);
        return dispatcher_.Arrive(ModelId{record.model}, request);
      }
      case Kind::kFinish: {
        const BatchReport report{record.deadline, record.ended,
                                 static_cast<BatchStatus>(record.detail), record.upload};
        running_.erase(BatchId{record.id});
        watch_.Finished(BatchId{record.id}, report);
        return dispatcher_.Finish(LaneId{record.lane}, BatchId{record.id}, report, record.at);
      }
      case Kind::kCancel:
        return dispatcher_.Cancel(ModelId{record.model}, RequestId{record.id});
      case Kind::kLane:
        watch_.LaneOpened(LaneId{record.lane}, record.detail != 0, now_);
        return dispatcher_.SetLaneOpen(LaneId{record.lane}, record.detail != 0);
      case Kind::kHolding:
        watch_.LaneHolds(LaneId{record.lane}, ModelId{record.model}, record.detail != 0, now_);
        return dispatcher_.SetLaneHolds(LaneId{record.lane}, ModelId{record.model},
                                        record.detail != 0);
      case Kind::kStep:
        now_ = record.at;
        dispatcher_.Step(record.at);
        return;
      default:
        return;
    }
  }

  void Differ(const std::string& what) {
    constexpr std::size_t kAround = 6;
    std::string text = fmt::format("the first difference is at record {}; {}\n", next_, what);
    const std::size_t first = next_ < kAround ? 0 : next_ - kAround;
    const std::size_t last = std::min(next_ + kAround / 2, journal_.records.size());
    for (std::size_t i = first; i < last; ++i) {
      text += fmt::format("{} [{}] {}\n", i == next_ ? "->" : "  ", i, ToText(journal_.records[i]));
    }
    result_.difference = std::move(text);
  }

  const JournalFile& journal_;
  ReplayWatch& watch_;
  ReplayResult result_;
  std::size_t next_ = 0;    // the record that must come next
  std::size_t change_ = 0;  // that comes next
  std::uint64_t next_request_ = 0;
  TimePoint now_{Duration::min()};
  std::unordered_map<BatchId, LaneId> running_;
  Dispatcher dispatcher_;
};

}  // namespace

Expected<ReplayResult> Replay(const JournalFile& journal, Policy& policy, ReplayWatch* watch) {
  ReplayWatch nobody;
  return Stage(journal, policy, watch != nullptr ? *watch : nobody).Run();
}

std::string ToText(const JournalRecord& r) {
  switch (r.kind) {
    case Kind::kArrive:
      return fmt::format("arrive model {} request {} at {:.6f} ms, deadline {:.6f} ms", r.model,
                         r.id, Millis(r.at), Millis(r.deadline));
    case Kind::kFinish:
      return fmt::format(
          "finish batch {} on lane {} at {:.6f} ms, ran {:.6f} to {:.6f} ms, status {}", r.id,
          r.lane, Millis(r.at), Millis(r.deadline), Millis(r.ended), r.detail);
    case Kind::kCancel:
      return fmt::format("cancel model {} request {}", r.model, r.id);
    case Kind::kLane:
      return fmt::format("{} lane {}", r.detail != 0 ? "open" : "close", r.lane);
    case Kind::kStep:
      return fmt::format("step at {:.6f} ms", Millis(r.at));
    case Kind::kDispatch:
      return fmt::format("dispatch model {} exit {} batch of {} to lane {}", r.model, r.exit,
                         r.count, r.lane);
    case Kind::kDrop:
      return fmt::format("drop {} of model {}, reason {}", r.count, r.model, r.detail);
    case Kind::kPreempt:
      return fmt::format("preempt batch {} on lane {}", r.id, r.lane);
    case Kind::kWait:
      if (r.at == kNever) return "wait for an event";
      return fmt::format("wait until {:.6f} ms", Millis(r.at));
    case Kind::kRatio:
      return fmt::format("batches of model {} on lane class {} count as {:.3f} times profiled",
                         r.model, r.lane, r.count / 1000.0);
    case Kind::kReserve:
      return fmt::format("leave {:.6f} ms for stalls", static_cast<double>(r.id) * 1e-6);
    case Kind::kHolding:
      return fmt::format("lane {} {} model {}", r.lane, r.detail != 0 ? "has" : "lacks", r.model);
  }
  return "no record";
}

}  // namespace tactus
