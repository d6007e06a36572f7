#include "serving/term_journals.h"

#include <utility>

#include <spdlog/logger.h>

#include "serving/kept_journal.h"

namespace tactus {

TermJournals::TermJournals(std::string path, JournalHeader header, Log log)
    : path_(std::move(path)), header_(std::move(header)), log_(std::move(log)) {
  flush_.Start("journals", Every(kJournalFlush, [this] { Flush(); }), kJournalFlush);
}

TermJournals::~TermJournals() {
  flush_.Stop();
  const std::lock_guard lock(mutex_);
  End();
}

Journal* TermJournals::Begin(Term term) {
  const std::lock_guard lock(mutex_);
  End();
  whole_ = true;
  if (Status kept = KeepOldJournal(path_); !kept) {
    Lose(kept.error().message);
    return nullptr;
  }
  auto writer = JournalWriter::Create(path_, header_, WhenFull::kStop);
  if (!writer) {
    Lose(writer.error().message);
    return nullptr;
  }
  writer_ = *std::move(writer);
  log_->info("journal: {} is of term {}", path_, term);
  return writer_.get();
}

std::optional<bool> TermJournals::whole() const {
  const std::lock_guard lock(mutex_);
  return whole_;
}

void TermJournals::Lose(const std::string& why) {
  if (whole_ != true) return;
  whole_ = false;
  log_->error("{}; this term goes on without a journal", why);
}

void TermJournals::Flush() {
  const std::lock_guard lock(mutex_);
  if (writer_ == nullptr || whole_ != true) return;
  if (Status flushed = writer_->Flush(); !flushed) Lose(flushed.error().message);
  if (writer_->stopped()) Lose("journal: the writer fell behind");
}

void TermJournals::End() {
  if (writer_ == nullptr) return;
  if (Status closed = writer_->Close(); !closed) Lose(closed.error().message);
  writer_.reset();
}

}  // namespace tactus
