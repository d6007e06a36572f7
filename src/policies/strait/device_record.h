// What Strait remembers of one device: the batches that run there with what each has met so far,
// and when its link is free (Section 3.2). Kept up to date at every arrival and departure.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "base/fixed_vector.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "core/resource_use.h"
#include "policies/strait/interference.h"

namespace tactus {

struct OngoingBatch {
  BatchId id;
  int level = 0;
  Duration slo{};      // of its model
  TimePoint deadline;  // of its most urgent request
  TimePoint launched;
  TimePoint uploaded;   // when its input should be there and its kernels begin
  Duration transfer{};  // profiled, of its input through the link
  Duration kernel{};    // profiled, alone
  Throughput own{};
  Throughput met{};  // integral of its neighbours' throughput over time since `launched`, in ns
};

class DeviceRecord {
 public:
  DeviceRecord() = default;
  explicit DeviceRecord(int slots) : running_(slots) {}

  std::span<const OngoingBatch> running() const { return running_; }
  // Of all that run here.
  const Throughput& total() const { return total_; }
  TimePoint link_free() const { return link_free_; }

  // Books what everybody has met until `now`.
  void Settle(TimePoint now) {
    const double passed = static_cast<double>((now - settled_).count());
    settled_ = now;
    for (OngoingBatch& batch : running_) batch.met = batch.met + passed * (total_ - batch.own);
  }

  // Its upload takes `transfer` and waits for the link (Eq. 3).
  void Add(OngoingBatch batch, Duration transfer, TimePoint now) {
    Settle(now);
    batch.transfer = transfer;
    batch.uploaded = link_free_ = std::max(now, link_free_) + transfer;
    running_.push_back(batch);
    Sum();
  }

  // Takes it out and gives it back, settled; nothing if it is not here. `uploaded` is when its
  // input was really there (Section 3.2, online calibration). Nothing where the batch did not run
  // to its end: its input may never have been there.
  bool Remove(BatchId id, TimePoint now, std::optional<TimePoint> uploaded, OngoingBatch& batch) {
    Settle(now);
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].id != id) continue;
      batch = running_[i];
      running_.Erase(i);
      Sum();
      if (uploaded) Calibrate(batch, i, *uploaded);
      return true;
    }
    return false;
  }

  // T of a batch that runs here: the mean over its life so far, what is there now if it just began.
  Throughput MeanMet(const OngoingBatch& batch, TimePoint now) const {
    const double life = static_cast<double>((now - batch.launched).count());
    return life > 0 ? (1 / life) * batch.met : total_ - batch.own;
  }

 private:
  // Anew each time, so that no rounding builds up.
  void Sum() {
    total_ = {};
    for (const OngoingBatch& batch : running_) total_ = total_ + batch.own;
  }

  // The input of `before` was there at `uploaded`; `next` is the place of the first that follows it
  // on the link. Whoever waited for the link waits as much longer, once: what it reports later is
  // compared with what it was told here. Who came to an idle link waits only if it is not idle then
  // after all. Uploads behind one that is known already are none the wiser.
  void Calibrate(const OngoingBatch& before, std::size_t next, TimePoint uploaded) {
    TimePoint thought = before.uploaded;
    TimePoint free = uploaded;
    const bool last_known = !(known_.valid() && before.id < known_);
    for (std::size_t i = next; i < running_.size(); ++i) {
      OngoingBatch& batch = running_[i];
      if (!last_known && batch.id > known_) return;
      const TimePoint start = batch.uploaded - batch.transfer;
      const Duration gap = start > batch.launched ? start - thought : Duration{};
      thought = batch.uploaded;
      batch.uploaded = std::max(batch.launched, free + gap) + batch.transfer;
      free = batch.uploaded;
    }
    if (!last_known) return;
    known_ = before.id;
    link_free_ += free - thought;
  }

  FixedVector<OngoingBatch> running_;  // in the order of their launches, as their ids are
  BatchId known_;                      // the last on the link of those that have reported
  Throughput total_{};
  TimePoint settled_ = kStart;
  TimePoint link_free_ = kStart;
};

}  // namespace tactus
