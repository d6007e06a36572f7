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

// When an input is there, by when the one before it is: behind it, or as early as an idle link
// would have it.
struct Upload {
  TimePoint earliest = kStart;
  Duration transfer{};
  bool known = false;  // by what was measured: it is there at `earliest`, whatever precedes it

  TimePoint After(TimePoint before) const {
    return known ? earliest : std::max(earliest, before + transfer);
  }
  // The two uploads back to back.
  Upload Then(const Upload& later) const {
    if (later.known) return later;
    return {std::max(later.earliest, earliest + later.transfer), transfer + later.transfer, known};
  }
};

struct OngoingBatch {
  BatchId id;
  int level = 0;
  Duration slo{};      // of its model
  TimePoint deadline;  // of its most urgent request
  TimePoint launched;
  TimePoint uploaded;  // when its input should be there and its kernels begin
  Upload upload;       // its own, behind those of failed batches that nobody will report
  Duration kernel{};   // profiled, alone
  Throughput own{};
  Throughput met{};  // integral of its neighbours' throughput over time since `launched`, in ns
};

class DeviceRecord {
 public:
  DeviceRecord() = default;
  explicit DeviceRecord(int slots) : running_(slots) {}

  std::span<const OngoingBatch> running() const { return running_; }
  // The throughput of all batches that run here.
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
    const Upload upload{now + transfer, transfer};
    batch.upload = unreported_.Then(upload);
    batch.uploaded = link_free_ = upload.After(link_free_);
    unreported_ = {};
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
      Upload& next = i < running_.size() ? running_[i].upload : unreported_;
      if (uploaded) {
        Calibrate(i, *uploaded);
      } else {
        next = batch.upload.Then(next);
      }
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

  // What precedes the place `next` was there at `uploaded`. Whoever waited for the link waits as
  // much longer, once: what it reports later is compared with what it was told here. Who came to an
  // idle link waits only if it is not idle then after all. Uploads behind one that is known already
  // are not adjusted.
  void Calibrate(std::size_t next, TimePoint uploaded) {
    Upload* first = next < running_.size() ? &running_[next].upload : &unreported_;
    if (first->known) return;
    *first = {.earliest = first->After(uploaded), .known = true};
    TimePoint free = first->earliest;
    for (std::size_t i = next; i < running_.size(); ++i) {
      if (i > next && running_[i].upload.known) return;
      running_[i].uploaded = free = running_[i].upload.After(free);
    }
    link_free_ = unreported_.After(free);
  }

  FixedVector<OngoingBatch> running_;  // in the order of their launches
  Upload unreported_{.known = true};   // of failed batches behind all that run
  Throughput total_{};
  TimePoint settled_ = kStart;
  TimePoint link_free_ = kStart;
};

}  // namespace tactus
