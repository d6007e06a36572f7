// Any bytes as a journal: parsed or refused, and what is parsed can be replayed, never a crash.
#include <cstdint>
#include <string_view>

#include "dispatch/replay.h"

namespace {

// Dispatches whatever fits a free lane that serves it.
class Greedy final : public tactus::Policy {
 public:
  Greedy() : Policy({.name = "greedy"}) {}
  tactus::Decision Decide(const tactus::View& view, tactus::TimePoint) override {
    for (const tactus::Lane& lane : view.lanes) {
      if (!lane.HasFreeSlot()) continue;
      for (std::size_t i = 0; i < view.queues.size(); ++i) {
        const tactus::ModelId m{static_cast<tactus::ModelId::rep>(i)};
        if (view.queues[i].empty() || !view.models[i].loaded || !lane.serves.contains(m)) continue;
        const int batch = view.queues[i].Batchable(view.models[i].max_batch);
        return tactus::Dispatch{m, tactus::ExitId{0}, batch, lane.id};
      }
    }
    return tactus::Wait{};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto journal = tactus::ParseJournal(bytes, "fuzz", false);
  // A queue of millions is legal, but not what is tested here.
  if (!journal || journal->header.options.queue_capacity > 1000) return 0;
  Greedy policy;
  (void)tactus::Replay(*journal, policy);
  return 0;
}
