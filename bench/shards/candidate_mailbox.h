// What the shards tell the rank thread: one cell for each model, which holds the latest word only.
// A shard overwrites, the rank thread reads what is newest; neither ever waits for the other, and
// nothing overflows.
//
// A cell is a sequence lock made of atomics: the version is odd while its shard writes. The notices
// (one bit a model, one bit for each 64 models above it) say which cells to look at. A bit is set
// after the write, so a reader that meets an odd version may go on: its notice is still to come.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/ids.h"
#include "base/ring.h"
#include "base/serving_time.h"

namespace tactus {

// A model's schedulable candidate. Behind it there may be more full batches.
struct CandidateNote {
  std::uint32_t batches = 0;   // schedulable now; 0: none
  std::uint32_t answered = 0;  // grants that the shard had acted on when it wrote this, ever
  TimePoint latest{};          // until when the first of them can start, inclusive
  TimePoint since{};           // when it became schedulable; only lateness is measured by it

  bool operator==(const CandidateNote&) const = default;
};

class CandidateMailbox {
 public:
  explicit CandidateMailbox(std::size_t models)
      : models_(models),
        cells_(std::make_unique<Cell[]>(models)),
        changed_(std::make_unique<Notices[]>((models + 63) / 64)),
        changed_words_(std::make_unique<Notices[]>((models + 64 * 64 - 1) / (64 * 64))) {}

  // By the one thread that owns the model.
  void Write(ModelId m, const CandidateNote& note) {
    Cell& cell = cells_[m.value()];
    const std::uint32_t version = cell.version.load(std::memory_order_relaxed);
    cell.version.store(version + 1, std::memory_order_relaxed);
    // Each release keeps the odd version before it; each acquire in Read keeps the second look at
    // the version behind it. On x86 all of them are plain moves.
    cell.counts.store((std::uint64_t{note.answered} << 32) | note.batches,
                      std::memory_order_release);
    cell.latest.store(note.latest.time_since_epoch().count(), std::memory_order_release);
    cell.since.store(note.since.time_since_epoch().count(), std::memory_order_release);
    cell.version.store(version + 2, std::memory_order_release);
    const std::size_t word = m.value() / 64;
    const std::uint64_t bit = std::uint64_t{1} << (m.value() % 64);
    changed_[word].bits.fetch_or(bit, std::memory_order_release);
    changed_words_[word / 64].bits.fetch_or(std::uint64_t{1} << (word % 64),
                                            std::memory_order_release);
  }

  // By the rank thread: read(ModelId, const CandidateNote&) for every cell written since the last
  // call, in order of the models. Returns how many.
  template <class Read>
  std::size_t ReadChanged(Read&& read) {
    std::size_t count = 0;
    for (std::size_t i = 0; i * 64 * 64 < models_; ++i) {
      if (changed_words_[i].bits.load(std::memory_order_relaxed) == 0) continue;
      std::uint64_t words = changed_words_[i].bits.exchange(0, std::memory_order_acquire);
      for (; words != 0; words &= words - 1) {
        const std::size_t word = i * 64 + static_cast<std::size_t>(std::countr_zero(words));
        std::uint64_t bits = changed_[word].bits.exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
          const ModelId m{static_cast<ModelId::rep>(
              word * 64 + static_cast<std::size_t>(std::countr_zero(bits)))};
          const auto note = TryRead(m);
          if (!note) continue;
          read(m, *note);
          ++count;
        }
      }
    }
    return count;
  }

  // The cell's word; nothing while it is being written.
  std::optional<CandidateNote> TryRead(ModelId m) const {
    const Cell& cell = cells_[m.value()];
    const std::uint32_t version = cell.version.load(std::memory_order_acquire);
    if (version % 2 != 0) return std::nullopt;
    const std::uint64_t counts = cell.counts.load(std::memory_order_acquire);
    const CandidateNote note{.batches = static_cast<std::uint32_t>(counts),
                             .answered = static_cast<std::uint32_t>(counts >> 32),
                             .latest = At(cell.latest),
                             .since = At(cell.since)};
    if (cell.version.load(std::memory_order_relaxed) != version) return std::nullopt;
    return note;
  }

 private:
  struct alignas(kCacheLine) Cell {
    std::atomic<std::uint32_t> version{0};
    std::atomic<std::uint64_t> counts{0};  // answered, batches
    std::atomic<std::int64_t> latest{0};
    std::atomic<std::int64_t> since{0};
  };
  struct alignas(kCacheLine) Notices {
    std::atomic<std::uint64_t> bits{0};
  };

  static TimePoint At(const std::atomic<std::int64_t>& nanos) {
    return TimePoint{Duration{nanos.load(std::memory_order_acquire)}};
  }

  const std::size_t models_;
  const std::unique_ptr<Cell[]> cells_;             // by ModelId
  const std::unique_ptr<Notices[]> changed_;        // a bit for each model
  const std::unique_ptr<Notices[]> changed_words_;  // a bit for each word of changed_
};

}  // namespace tactus
