#include "served_journals.h"

#include <chrono>
#include <stop_token>
#include <utility>

#include "kept_journal.h"

namespace tactus {

std::string PipelineJournalBeside(const std::string& path) { return path + ".pipelines"; }

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
  flush_ =
      std::jthread([this, log = std::move(log)](const std::stop_token& stop) { Flush(stop, log); });
  return {};
}

// Until something is lost: then what the journal holds is a beginning, and nobody adds to it.
void ServedJournals::Flush(const std::stop_token& stop, const Log& log) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const Status& flushed : {dispatcher_->Flush(), pipelines_->Flush()}) {
      if (flushed) continue;
      log->error("{}; serving goes on without a journal", flushed.error().message);
      return whole_.store(false);
    }
    if (!dispatcher_->stopped() && !pipelines_->stopped()) continue;
    log->error("journal: the writer fell behind; serving goes on without a journal");
    return whole_.store(false);
  }
}

std::optional<bool> ServedJournals::whole() const {
  if (dispatcher_ == nullptr) return std::nullopt;
  return whole_.load();
}

void ServedJournals::Close(const Log& log) {
  if (dispatcher_ == nullptr) return;
  flush_.request_stop();
  flush_.join();
  for (const Status& closed : {dispatcher_->Close(), pipelines_->Close()}) {
    if (!closed) log->error("{}", closed.error().message);
  }
  if (dispatcher_->stopped() || pipelines_->stopped()) {
    log->warn("journal: the writer fell behind; the file is a beginning");
  }
}

}  // namespace tactus
