#include "serving/served_journals.h"

#include <utility>

#include <spdlog/logger.h>

#include "serving/kept_journal.h"

namespace tactus {

Status ServedJournals::KeepOld(const std::string& path) {
  if (path.empty()) return {};
  if (Status kept = KeepOldJournal(path); !kept) return kept;
  return KeepOldJournal(PipelineJournalBeside(path));
}

Status ServedJournals::Open(const std::string& path, const JournalHeader& header, Log log) {
  auto dispatcher = JournalWriter::Create(path, header, WhenFull::kStop);
  if (!dispatcher) return std::unexpected(std::move(dispatcher.error()));
  auto pipelines = PipelineJournal::Create(PipelineJournalBeside(path), header.commit);
  if (!pipelines) return std::unexpected(std::move(pipelines.error()));
  dispatcher_ = *std::move(dispatcher);
  pipelines_ = *std::move(pipelines);
  flush_.Start(
      "journals", [this, log = std::move(log)] { return Flush(log); }, kJournalFlush);
  return {};
}

// Until something is lost: then what the journal holds is a beginning, and nobody adds to it.
Duration ServedJournals::Flush(const Log& log) {
  std::string why;
  for (const Status& flushed : {dispatcher_->Flush(), pipelines_->Flush()}) {
    if (!flushed && why.empty()) why = flushed.error().message;
  }
  if (why.empty() && !dispatcher_->stopped() && !pipelines_->stopped()) return kJournalFlush;
  log->error("{}; serving goes on without a journal",
             why.empty() ? "journal: the writer fell behind" : why);
  whole_.store(false);
  return RepeatedTask::kUntilWoken;
}

std::optional<bool> ServedJournals::whole() const {
  if (dispatcher_ == nullptr) return std::nullopt;
  return whole_.load();
}

void ServedJournals::Close(const Log& log) {
  if (dispatcher_ == nullptr) return;
  flush_.Stop();
  for (const Status& closed : {dispatcher_->Close(), pipelines_->Close()}) {
    if (!closed) log->error("{}", closed.error().message);
  }
  if (dispatcher_->stopped() || pipelines_->stopped()) {
    log->warn("journal: the writer fell behind; the file is a beginning");
  }
}

}  // namespace tactus
