// The generator's books: every call is opened once, when it was meant to be sent, and closed once.
// An answer that closes nothing, and a call that nothing closes, are counted: a server must answer
// every request exactly once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/model.h"
#include "load/inputs.h"
#include "load/transport.h"
#include "metrics/recorder.h"

namespace tactus {

struct LedgerCounts {
  std::int64_t opened = 0;
  std::int64_t closed = 0;
  std::int64_t bad = 0;         // closed as anything but met or cancelled
  std::int64_t served = 0;      // met or late
  std::int64_t unexpected = 0;  // answers that closed nothing
  std::int64_t unanswered = 0;  // closed by CloseUnanswered
  std::int64_t in_flight() const { return opened - closed; }
};

class Ledger final : public AnswerSink {
 public:
  // `inputs` outlive the ledger. Room for `expected` records is taken at once.
  Ledger(std::vector<Model> models, std::span<const PreparedInputs> inputs, std::size_t expected);

  // Before the first Open: times in the records count from `zero`.
  void Start(SteadyTime zero) { zero_ = zero; }
  // The token of the new call.
  std::uint64_t Open(std::uint32_t model, std::uint32_t sample, TimePoint intended,
                     TimePoint deadline);
  void OnAnswer(const Answer& answer) noexcept override;
  // True when nothing was in flight any more by `until`.
  bool WaitIdle(SteadyTime until);
  // What is still open ends as an error at `now`.
  void CloseUnanswered(TimePoint now);

  LedgerCounts counts() const;
  std::string first_error() const;
  // For when everything is closed.
  std::span<const RequestRecord> records() const { return recorder_.records(); }
  // As given, with the exits that answers named and the configuration did not.
  const std::vector<Model>& models() const { return models_; }

 private:
  struct Entry {
    std::uint32_t generation = 0;
    bool open = false;
    std::uint32_t sample = 0;
    RequestRecord record;
  };

  // With the lock held.
  void Close(Entry& entry, Outcome outcome, TimePoint ended);
  std::uint16_t ExitIndex(Model& model, std::string_view name);
  std::int8_t Judge(const Entry& entry, std::span<const std::byte> output) const;

  SteadyTime zero_;
  const std::span<const PreparedInputs> inputs_;
  std::vector<Model> models_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  Recorder recorder_;
  LedgerCounts counts_;
  std::string first_error_;
};

}  // namespace tactus
