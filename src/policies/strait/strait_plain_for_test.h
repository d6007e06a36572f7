// Strait as its paper states it: Algorithm 1 over all queues and all devices at every question. To
// be read beside the paper, and what the quick version (strait.h) is compared with.
//
//   sort queues by priority            order().Sorted
//   early drop                         EarlyDrop
//   binary search for the batch size   LargestFeasible
//   for each GPU, its estimate         BestDevice
//   violate()                          Violate
//   meet()                             Meet
//   update of the prediction model     StraitRecords::OnBatchDone
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "policies/strait/strait_records.h"

namespace tactus {

class PlainStrait final : public StraitRecords {
 public:
  PlainStrait(std::string name, const StraitOptions& options)
      : StraitRecords(std::move(name), options) {}

  Decision Decide(const View& view, TimePoint now) override;

 private:
  std::optional<Dispatch> LargestFeasible(const View& view, ModelId m, TimePoint now);
  std::optional<LaneId> BestDevice(const View& view, const StraitCandidate& candidate,
                                   TimePoint now);
  bool Violate(const View& view, const StraitCandidate& candidate, const Lane& lane,
               TimePoint now) const;
  bool Meet(const View& view, const StraitCandidate& candidate, const Lane& lane,
            TimePoint now) const;
};

}  // namespace tactus
