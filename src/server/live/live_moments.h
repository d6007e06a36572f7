// What the live page shows of calls and batches: noted as they end, while somebody watches.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "service/observer.h"

namespace tactus {

class LiveMoments final : public Observer {
 public:
  struct Batch {
    std::uint32_t model = 0;  // of Taken::models
    std::uint16_t lane = 0;
    std::uint16_t exit = 0;
    std::uint16_t rows = 0;
    bool failed = false;
    bool late = false;  // a call of it missed its deadline
    // Of those calls: the longest wait for it to start, and how late the latest was.
    Duration waited{};
    Duration late_by{};
    TimePoint decided;
    TimePoint started;
    TimePoint ended;
    TimePoint learnt;      // when its lane was free again
    Duration predicted{};  // from the decision on
  };
  struct Answer {
    std::uint32_t model = 0;
    std::uint32_t rows = 1;
    RequestRecord record;   // its `model` says nothing here
    bool step = false;      // of a pipeline's call
    bool pipeline = false;  // a pipeline's call: its steps that ran here are noted too

    Duration latency() const { return record.ended - record.arrival; }
  };
  // What was noted since it was last taken, in the order of the ends.
  struct Taken {
    std::vector<Batch> batches;
    std::vector<Answer> answers;
    std::vector<std::string> models;  // "name" by number: all that were ever noted
    std::uint64_t lost = 0;           // that there was no room for
  };

  // `next` hears of everything, watched or not; it outlives this.
  explicit LiveMoments(Observer& next) : next_(next) {}

  // Without a watcher it costs a relaxed load for each call and batch.
  void Watch(bool watched);
  Taken Take();

  void OnAnswered(const ModelSpec& model, const RequestRecord& record, int rows) override;
  void OnStepAnswered(const ModelSpec& model, const RequestRecord& record, int rows) override;
  void OnRefused(std::string_view model, ErrorCode code) override { next_.OnRefused(model, code); }
  void OnBatch(const ModelSpec& model, const BatchRecord& record) override;

 private:
  // Between two takings.
  static constexpr std::size_t kMostBatches = 4096;
  static constexpr std::size_t kMostAnswers = 16384;

  std::uint32_t NumberOf(const std::string& name);
  void Note(const ModelSpec& model, const RequestRecord& record, int rows, bool step);

  Observer& next_;
  std::atomic<bool> watched_{false};
  std::mutex mutex_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
  std::vector<Batch> batches_;
  std::vector<Answer> answers_;
  // Answers that were late; `started` is when their batch began.
  struct Late {
    TimePoint started;
    Duration waited;
    Duration late_by;
  };
  std::vector<Late> late_;
  std::uint64_t lost_ = 0;
};

}  // namespace tactus
