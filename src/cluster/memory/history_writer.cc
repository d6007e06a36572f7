#include "cluster/memory/history_writer.h"

#include <utility>

namespace tactus {
namespace {

class LateStore final : public knowledge::StoreWriter {
 public:
  explicit LateStore(std::string where) : where_(std::move(where)) {}

  const std::string& place() const override { return store_ ? store_->place() : unopened_; }
  Expected<knowledge::Written> Commit(const knowledge::Batch& batch) override {
    if (Status open = Open(); !open) return std::unexpected(std::move(open.error()));
    return store_->Commit(batch);
  }
  Expected<knowledge::Retained> Retain(knowledge::UtcTime now,
                                       const knowledge::Retention& limits) override {
    if (Status open = Open(); !open) return std::unexpected(std::move(open.error()));
    return store_->Retain(now, limits);
  }

 private:
  Status Open() {
    if (store_) return {};
    auto store = knowledge::OpenStore(where_);
    // Whatever it is, somebody may mend it: nothing that waits is given up for it.
    if (!store) return Fail(ErrorCode::kUnavailable, store.error().message);
    store_ = *std::move(store);
    return {};
  }

  const std::string where_;
  const std::string unopened_ = "the knowledge base";  // `where` may hold a password
  std::unique_ptr<knowledge::Store> store_;
};

}  // namespace

std::unique_ptr<knowledge::StoreWriter> OpenedLater(std::string where) {
  return std::make_unique<LateStore>(std::move(where));
}

knowledge::UtcTime UtcNow() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

HistoryWriter::HistoryWriter(std::unique_ptr<knowledge::StoreWriter> store,
                             const FleetInput& declared, const std::string& planner, Log log,
                             HistoryWriterOptions options)
    : log_(std::move(log)),
      options_(std::move(options)),
      utc_(options_.utc ? options_.utc : UtcNow),
      chronicle_(declared, planner, utc_, [this] { thread_.Wake(); }),
      store_(std::move(store)) {}

HistoryWriter::~HistoryWriter() {
  thread_.Stop();
  Tick();
  if (!Flush(options_.flush_within) && buffered_) {
    log_("history: the store did not take " + std::to_string(buffered_->counts().waiting) +
         " batches in time; they are lost");
  }
}

void HistoryWriter::Start() {
  thread_.Start("history", Every(options_.write_every, [this] { Tick(); }), options_.write_every);
}

void HistoryWriter::Tick() {
  const knowledge::UtcTime now = utc_();
  if (!buffered_) {
    const std::uint64_t term = chronicle_.term();
    if (term == 0) return;
    buffered_ = std::make_unique<knowledge::BufferedStore>(std::move(store_), term, options_.buffer,
                                                           options_.retry);
    retain_at_ = now + options_.retain_every;
  }
  for (knowledge::Batch& batch : chronicle_.Take()) buffered_->Write(std::move(batch), now);
  if (now >= retain_at_) {
    buffered_->Retain(now);
    retain_at_ = now + options_.retain_every;
  }
  Tell(buffered_->counts());
}

bool HistoryWriter::Flush(std::chrono::milliseconds most) {
  return !buffered_ || buffered_->Flush(most);
}

std::optional<knowledge::BufferedStore::Counts> HistoryWriter::counts() const {
  if (!buffered_) return std::nullopt;
  return buffered_->counts();
}

// Each thing once: a store that is away for an hour is one line, and another when it is back.
void HistoryWriter::Tell(const knowledge::BufferedStore::Counts& counts) {
  if (counts.superseded && !told_.superseded) {
    log_("history: " + counts.last_error + "; this controller writes no history any more");
  }
  // A batch that is refused does not wait.
  const bool away = !counts.last_error.empty() && counts.waiting > 0 && !counts.superseded;
  if (away && !away_) {
    log_("history: it is kept here for ten minutes, and nothing waits for it: " +
         counts.last_error);
  }
  if (counts.dropped > 0 && told_.dropped == 0) {
    log_("history: the store has been away for too long: from now on the oldest samples are lost");
  }
  if (away_ && counts.last_error.empty()) {
    log_("history: the store is back; " + std::to_string(counts.dropped) +
         " records were lost since this controller leads");
  }
  away_ = away_ ? !counts.last_error.empty() : away;
  if (counts.refused != told_.refused) {
    log_("history: the store refused " + std::to_string(counts.refused) +
         " records: " + counts.last_error);
  }
  told_ = counts;
}

}  // namespace tactus
