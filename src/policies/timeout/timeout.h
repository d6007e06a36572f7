// Batching by size and timeout, as TensorFlow Serving (max_batch_size, batch_timeout_micros) and
// Triton (preferred_batch_size, max_queue_delay_microseconds) do it. A batch goes when a preferred
// size can be formed, the largest such; else when its oldest request has waited k, whatever its
// size. It knows no deadlines beyond giving up what is lost (Triton's queue timeout).
//
// Best documented setting: k and the largest batch are to be tuned for the workload (their manuals;
// Symphony, Figure 6b). share=X and fill=X state both in terms of each model's SLO, so that one
// pair fits a zoo; fill=0.8,share=0.2 is best for Table 2's ResNet50. The form that keeps deadlines
// is symphony:when=timeout.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/lost_heads.h"

namespace tactus {

struct TimeoutOptions {
  Duration delay{};         // k
  double delay_share = 0;   // above 0: k is this share of the model's SLO
  int max_batch = 1 << 20;  // the model's own, if that is less
  // No batch whose latency is more than this share of the model's SLO; one number that bounds the
  // batches of a whole zoo.
  double fill = 1;
  std::vector<int> preferred;  // rising; empty: only the largest batch
  bool drop_lost = true;
};

class Timeout final : public Policy {
 public:
  Timeout(std::string name, TimeoutOptions options);

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId, const Request&) override { CountExamined(); }

 private:
  // How many of `waiting` requests make a batch that goes at once; 0: none does.
  int AtOnce(int waiting, int most) const;

  int MostOf(const View& view, ModelId m, LaneClass c) const;

  const TimeoutOptions options_;
  LostHeads lost_;
};

}  // namespace tactus
