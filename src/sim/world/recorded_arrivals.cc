#include "sim/world/recorded_arrivals.h"

namespace tactus {
namespace {

class RecordedArrivals final : public Arrivals {
 public:
  explicit RecordedArrivals(std::span<const RecordedRequest> requests) : requests_(requests) {}
  TimePoint Next() override { return next_ < requests_.size() ? requests_[next_++].known : kNever; }

 private:
  const std::span<const RecordedRequest> requests_;
  std::size_t next_ = 0;
};

}  // namespace

Expected<std::vector<std::unique_ptr<Arrivals>>> RecordedOr(const Scenario& scenario,
                                                            RecordedRequests recorded) {
  if (recorded.empty()) return MakeArrivals(scenario, kStart + FromSeconds(scenario.duration_s));
  std::vector<std::unique_ptr<Arrivals>> arrivals;
  for (const std::vector<RecordedRequest>& model : recorded) {
    arrivals.push_back(std::make_unique<RecordedArrivals>(model));
  }
  return arrivals;
}

}  // namespace tactus
