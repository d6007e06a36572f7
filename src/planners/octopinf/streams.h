// The streams of a fleet's accelerators: what windows are taken, and what memory and use is left
// (OctopInf, Section III-C). Instances are put in and taken out one at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/fleet_plan.h"

namespace tactus {

// Why an instance finds no window on its device.
enum class NoWindow { kTime, kMemory, kUse };

class StreamTable {
 public:
  // `input` outlives it.
  explicit StreamTable(const FleetInput& input);

  // Takes the window that leaves least of a free portion unused (best fit), from `earliest` on in
  // the cycle where one is left there, else anywhere in it. `each` has pipeline, stage, device and
  // batch; it gets accelerator, stream, offset, length and cycle. False, with the reason that was
  // met last: nothing has changed.
  bool Place(FleetInstance& each, Duration earliest, NoWindow& why);
  // Without a window, on the accelerator with most memory left; false where memory or use forbid.
  bool PlaceOpen(FleetInstance& each);
  // An instance as another plan has it. False where it does not fit.
  bool Restore(const FleetInstance& each);
  // Gives its window back; neighbours are merged.
  void Reclaim(const FleetInstance& each);

 private:
  struct Portion {
    Duration begin{};
    Duration end{};
  };
  struct Stream {
    Duration cycle{};                 // 0: nothing has a window here yet
    std::vector<Portion> free;        // in order
    std::vector<double> peaks, uses;  // of what runs here, ascending
    double peak_mb() const { return peaks.empty() ? 0 : peaks.back(); }
    double use() const { return uses.empty() ? 0 : uses.back(); }
  };
  struct Accelerator {
    std::vector<Stream> streams;
    std::map<ModelId, int> models;  // how many instances of each
    double weights_mb = 0;
  };

  // What an instance asks for.
  struct Need {
    const FleetDevice& device;
    ModelId model;
    const FleetCost& cost;
    const FleetBatch& batch;
  };
  Need NeedOf(const FleetInstance& each) const;
  // Whether the stream may run it beside what its accelerator has (Eq. 4 and 5).
  bool HasRoom(const Need& need, const Accelerator& accelerator, int stream, NoWindow& why) const;
  void Take(const FleetInstance& each, const Need& need);
  void Cut(Stream& stream, Duration begin, Duration end);

  const FleetInput& input_;
  std::vector<std::vector<Accelerator>> devices_;  // by DeviceId
};

}  // namespace tactus
