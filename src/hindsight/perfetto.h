// A journal as a trace for Perfetto (https://ui.perfetto.dev): a track for each lane and slot with
// its batches, one for each model with its requests, flows from a request to the batch that ran it,
// and counters of what waits. In Perfetto's TrackEvent format (perfetto/trace/track_event).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "dispatch/dispatcher.h"
#include "dispatch/replay.h"

namespace tactus {

class PerfettoTrace final : public ReplayWatch {
 public:
  explicit PerfettoTrace(const std::vector<LaneSpec>& lanes);

  void Configured(std::shared_ptr<const ServedModels> served) override;
  void Arrived(ModelId model, const Request& request) override;
  void Launched(const Batch& batch) override;
  void Finished(BatchId batch, const BatchReport& report) override;
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override;

  // After the replay: the file's bytes.
  std::string Take() &&;

 private:
  struct Running {
    std::string name;  // of the slice: model, exit and rows
    ModelId model;
    std::size_t slot = 0;
    TimePoint decided, expected_end;
    std::vector<Request> requests;
  };
  std::uint64_t TrackOf(ModelId model);
  // It waits from then on, or no longer: where it does so already, nothing changes.
  void Wait(ModelId model, const Request& request, bool waits, TimePoint at);

  std::string bytes_;
  std::shared_ptr<const ServedModels> served_;
  std::vector<std::uint64_t> slot_tracks_;  // by lane and slot
  std::vector<std::size_t> first_slot_;     // by lane; one more at the end
  std::vector<bool> taken_;                 // by lane and slot
  std::unordered_map<std::uint64_t, Running> running_;
  std::map<std::string, std::uint64_t> model_tracks_;
  std::unordered_set<std::uint64_t> waits_;  // requests
  // By instant and model, how many more wait from there on.
  std::map<std::pair<TimePoint, std::uint32_t>, int> waiting_;
  std::vector<std::uint64_t> counters_;  // by model; 0: none yet
  std::uint64_t next_track_ = 1;
};

}  // namespace tactus
