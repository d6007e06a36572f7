// Shepherd's Flex (Zhang et al., NSDI 2023), as Symphony's Section 2.2 states it: one candidate for
// each model, its largest feasible batch; a free lane takes the largest candidate. A running batch
// is stopped for one of another model that is at least three times as large (its work is lost, its
// requests return to their queue).
//
// Best documented setting: the factor 3 of its paper's analysis; preempt=0 switches preemption off.
// Of several batches that may be stopped, the smallest goes, and of equal ones the one that began
// last, which loses least.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/lost_heads.h"

namespace tactus {

struct ShepherdOptions {
  double factor = 3;  // stop a batch for one this many times as large; 0: never
};

class Shepherd final : public Policy {
 public:
  Shepherd(std::string name, ShepherdOptions options)
      : Policy({.name = std::move(name), .least = LeastService{}}), options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId, const Request&) override { CountExamined(); }
  void OnLaneChange(const Lane& lane) override;

 private:
  struct Stopping {
    LaneId lane;
    BatchId batch;
    ModelId made_way_for;
  };
  struct Candidate {
    ModelId model;
    int batch = 0;
    TimePoint latest;
  };
  // The largest batch of m that meets its head's deadline on a lane of class c.
  static Candidate MakeCandidate(const View& view, ModelId m, LaneClass c, TimePoint now);
  std::optional<Dispatch> Start(const View& view, TimePoint now) const;
  std::optional<Preempt> Stop(const View& view, TimePoint now);
  struct Victim {
    LaneId lane;
    const RunningBatch* batch;
  };
  std::optional<Victim> FindVictim(const View& view, ModelId m, TimePoint now) const;
  // The smallest running batch that is not being stopped; the largest int where nothing runs.
  int SmallestRunning(const View& view) const;
  // Never for a batch that is no larger, whatever the factor: two would stop each other forever.
  bool IsWorth(int made, int running) const {
    return made >= options_.factor * running && made > running;
  }
  bool IsStopping(BatchId batch) const;
  bool HasLaneComing(ModelId m) const;

  const ShepherdOptions options_;
  LostHeads lost_;
  std::vector<Stopping> stopping_;  // asked to stop, not yet ended
};

}  // namespace tactus
