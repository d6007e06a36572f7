// What a journal says about requests that were not answered in time: what ran while they waited,
// and what would have saved them. A replay (dispatch/replay.h) tells it what happened.
//
//   Hindsight hindsight(journal->header.lanes);
//   Replay(*journal, **policy, &hindsight);
//   hindsight.Conclude();
//   for (const Miss& miss : hindsight.Worst(10, "")) fmt::print("{}", TextOf(miss, hindsight));
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/serving_time.h"
#include "core/batch.h"
#include "core/plan.h"
#include "dispatch/dispatcher.h"
#include "dispatch/replay.h"

namespace tactus {

// Why a request was not answered in time. The first that holds, in this order.
enum class MissCause : std::uint8_t {
  kFailed,     // its engine failed, or its lane died for good
  kUnloaded,   // its model went away, or the server stopped
  kQueueFull,  // its model's queue held all it may hold
  kTooShort,   // the model's quickest run takes longer than the request had
  kSlowRun,    // it ran, and its batch took more than 1.2 times what was expected
  kBatch,      // it ran in a batch, and would have been in time alone
  kExit,       // it ran, and would have been in time at the shallowest exit
  kNoLane,     // it waited while no lane took its batches: they had died, their servers had gone
  kBusy,       // it waited while at least 0.9 of the time of the lanes that took batches was taken
  kWaited,     // it waited, though lanes were idle
};
inline constexpr int kMissCauses = 10;

// A batch as it ran. `ended` is kNever where the journal ends before it does.
struct RanBatch {
  const std::string* model = nullptr;  // its name, the Hindsight's
  const std::string* exit = nullptr;
  LaneId lane;
  int rows = 0;
  int priority = 1;  // the highest of its requests; 1 is the highest of all
  TimePoint decided, started, ended = kNever;
  Duration expected{};  // from its decision to its end
};

struct Miss {
  RequestId request;
  ModelId id;
  const std::string* model = nullptr;  // as RanBatch
  int priority = 1;
  TimePoint arrival, deadline;
  TimePoint end;  // its answer, or the instant at which it was given up
  Outcome outcome = Outcome::kLate;
  MissCause cause = MissCause::kWaited;
  Duration lacked{};               // a deadline so much later would have been kept at the earliest
  Duration quickest{}, deepest{};  // what it takes alone: at the shallowest exit, at the deepest
  double busy = 0;                 // share of the lanes' time that was taken while it waited
  std::optional<RanBatch> batch;   // where it ran
};

// Of all models of one name.
struct ModelMisses {
  std::uint64_t in_time = 0, late = 0, expired = 0, shed = 0, failed = 0;
  std::array<std::uint64_t, kMissCauses> causes{};
  std::uint64_t batches = 0;  // that ran to their end
  std::uint64_t slow = 0;     // of them, those that took more than 1.2 times what was expected

  std::uint64_t missed() const { return late + expired + shed + failed; }
};

class Hindsight final : public ReplayWatch {
 public:
  explicit Hindsight(std::vector<LaneSpec> lanes);

  void Configured(std::shared_ptr<const ServedModels> served) override;
  void LaneOpened(LaneId lane, bool open, TimePoint now) override;
  void LaneHolds(LaneId lane, ModelId model, bool holds, TimePoint now) override;
  void Launched(const Batch& batch) override;
  void Finished(BatchId batch, const BatchReport& report) override;
  void Answered(const Batch& batch, const BatchReport& report) override;
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override;

  // After the replay: finds what each miss was due to. Then the following may be asked.
  void Conclude();
  const std::map<std::string, ModelMisses>& models() const { return models_; }
  // Those that were furthest from their deadlines, of `model` or, where it is empty, of all.
  std::vector<Miss> Worst(std::size_t count, const std::string& model) const;
  // What ran, at least in part, while the request waited; in order.
  std::vector<RanBatch> Meanwhile(const Miss& miss) const;

 private:
  // Alone or in a batch, on the lane where it is quickest.
  Duration LatencyOf(ModelId model, ExitId exit, int rows) const;
  Miss MissOf(ModelId model, const Request& request, TimePoint end, Outcome outcome);
  void Add(Miss miss, MissCause cause);
  // Of the time between, what the lanes' slots had to give the model; 0: no lane took its batches.
  Duration Offered(ModelId model, TimePoint from, TimePoint to) const;
  double BusyOf(const Miss& miss) const;
  const std::string* Kept(const std::string& name) { return &*names_.insert(name).first; }

  // From then on the lane takes batches, or has the model, or does not.
  struct Turn {
    TimePoint at;
    std::optional<ModelId> of;  // the model
    bool yes = true;
  };
  const std::vector<LaneSpec> lanes_;
  std::vector<std::vector<Turn>> turns_;  // by lane, in order; yes before the first
  std::shared_ptr<const ServedModels> served_;
  std::set<std::string> names_;                            // those of models and exits
  std::vector<RanBatch> batches_;                          // in order of their decisions
  std::unordered_map<std::uint64_t, std::size_t> places_;  // in batches_, of those that run
  Duration longest_{};                                     // from a decision to a batch's end
  std::vector<Miss> misses_;
  std::map<std::string, ModelMisses> models_;
};

// For people: how late it was, what ran meanwhile, what would have saved it. Some lines.
std::string TextOf(const Miss& miss, const Hindsight& hindsight);
// For people: each model's requests, and why some were not in time.
std::string TextOf(const std::map<std::string, ModelMisses>& models);

}  // namespace tactus
