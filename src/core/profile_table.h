// What a batch costs: the profiled latency L(m, e, b, lane class). A lookup is one read.
//
// The percentile (P95 by default) and the jitter margin are chosen once, when the table is made
// from a profile file, so no policy adds a margin of its own. Where the machine has changed since,
// the dispatcher gives policies a corrected table instead (dispatch/followed_profile.h): they read
// latencies when they need them, or keep a RevisionsSeen beside what they derive.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/serving_time.h"
#include "core/resource_use.h"

namespace tactus {

class ProfileTable {
 public:
  // One model's latencies: for each lane class, exit and batch in that order of nesting; batch b at
  // index b - 1. An empty `latency` is a model that is not loaded.
  struct ModelRows {
    int exits = 0;
    int max_batch = 0;
    std::vector<Duration> latency;      // size lane_classes * exits * max_batch
    std::vector<ResourceUse> use = {};  // in the same order; empty where nobody knows
    Duration margin{};                  // in each latency: what is kept for the way to the client
  };

  ProfileTable() = default;
  ProfileTable(int lane_classes, std::span<const ModelRows> models) : lane_classes_(lane_classes) {
    for (const ModelRows& rows : models) {
      CHECK(rows.latency.size() ==
                static_cast<std::size_t>(lane_classes) * rows.exits * rows.max_batch,
            "a profile must have no holes");
      CHECK(rows.use.empty() || rows.use.size() == rows.latency.size(),
            "what batches use is known for all of a model, or for nothing of it");
      entries_.push_back({cells_.size(),
                          uses_.size(),
                          !rows.use.empty(),
                          rows.exits,
                          rows.max_batch,
                          0,
                          {},
                          rows.margin});
      uses_.insert(uses_.end(), rows.use.begin(), rows.use.end());
      cells_.insert(cells_.end(), rows.latency.begin(), rows.latency.end());
    }
  }

  // `batch` in [1, max_batch(m)], `e` in [0, exits(m)).
  Duration Latency(ModelId m, ExitId e, int batch, LaneClass c) const {
    const Entry& entry = entries_[m.value()];
    return cells_[entry.first + Place(entry, e, batch, c)];
  }
  // What the batch asks of the device; kAssumedUse where the profile does not say.
  const ResourceUse& Use(ModelId m, ExitId e, int batch, LaneClass c) const {
    const Entry& entry = entries_[m.value()];
    return entry.knows_use ? uses_[entry.first_use + Place(entry, e, batch, c)] : kAssumedUse;
  }
  bool knows_use(ModelId m) const { return entries_[m.value()].knows_use; }
  // The least any request of m can take: shallowest exit, alone in its batch.
  Duration Quickest(ModelId m, LaneClass c) const { return Latency(m, ExitId{0}, 1, c); }

  // Latencies of m on lanes of class c become those of `profiled`, a table of the same shape, all
  // but the `margin` in them times `ratio`. For the owner of a table that follows another.
  void Follow(const ProfileTable& profiled, ModelId m, LaneClass c, double ratio,
              Duration margin = {}) {
    Entry& entry = entries_[m.value()];
    const std::size_t first = entry.first + Place(entry, ExitId{0}, 1, c);
    const std::size_t cells = static_cast<std::size_t>(entry.exits) * entry.max_batch;
    for (std::size_t i = first; i < first + cells; ++i) {
      const auto alone = static_cast<double>((profiled.cells_[i] - margin).count());
      cells_[i] = Duration{std::llround(alone * ratio)} + margin;
    }
    ++entry.revision;
    ++revision_;
  }
  // What a choice of m that could as well be quicker leaves between its end and the deadline, for
  // stalls of the machine; 0 unless somebody asked for it.
  Duration reserve(ModelId m) const { return entries_[m.value()].reserve; }
  void SetReserve(ModelId m, Duration reserve) { entries_[m.value()].reserve = reserve; }

  // What every latency of m has beside the batch's own time, once for each answer: batches that
  // follow one another on a lane take their latencies without it.
  Duration margin(ModelId m) const { return entries_[m.value()].margin; }

  // How often latencies have changed, of one model and of all.
  std::uint32_t revision(ModelId m) const { return entries_[m.value()].revision; }
  std::uint32_t revision() const { return revision_; }

  std::size_t models() const { return entries_.size(); }
  int lane_classes() const { return lane_classes_; }
  int exits(ModelId m) const { return entries_[m.value()].exits; }
  int max_batch(ModelId m) const { return entries_[m.value()].max_batch; }

 private:
  struct Entry {
    std::size_t first;
    std::size_t first_use;
    bool knows_use;
    int exits;
    int max_batch;
    std::uint32_t revision;
    Duration reserve;
    Duration margin;
  };
  static std::size_t Place(const Entry& entry, ExitId e, int batch, LaneClass c) {
    return (static_cast<std::size_t>(c.value()) * entry.exits + e.value()) * entry.max_batch +
           (batch - 1);
  }

  int lane_classes_ = 0;
  std::uint32_t revision_ = 0;
  std::vector<Entry> entries_;
  std::vector<Duration> cells_;
  std::vector<ResourceUse> uses_;
};

// For whoever derives something from a table's latencies: which models' have changed since.
class RevisionsSeen {
 public:
  // What is derived now is of this table. May allocate.
  void Prepare(const ProfileTable& table) {
    all_ = table.revision();
    of_.resize(table.models());
    for (ModelId::rep m = 0; m < of_.size(); ++m) of_[m] = table.revision(ModelId{m});
  }
  // Calls `changed(ModelId)` for each of them, once. One comparison when there is none.
  void Take(const ProfileTable& table, auto changed) {
    if (table.revision() == all_) return;
    all_ = table.revision();
    for (ModelId::rep m = 0; m < of_.size(); ++m) {
      if (of_[m] == table.revision(ModelId{m})) continue;
      of_[m] = table.revision(ModelId{m});
      changed(ModelId{m});
    }
  }

 private:
  std::uint32_t all_ = 0;
  std::vector<std::uint32_t> of_;  // by ModelId
};

}  // namespace tactus
