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

Status ServedJournals::Open(const std::string& path, const JournalHeader& header) {
  auto dispatcher = JournalWriter::Create(path, header, WhenFull::kStop);
  if (!dispatcher) return std::unexpected(std::move(dispatcher.error()));
  auto pipelines = PipelineJournal::Create(PipelineJournalBeside(path), header.commit);
  if (!pipelines) return std::unexpected(std::move(pipelines.error()));
  dispatcher_ = *std::move(dispatcher);
  pipelines_ = *std::move(pipelines);
  flush_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const Status one = dispatcher_->Flush();
      const Status other = pipelines_->Flush();
      if (!one || !other) return;  // Close says it again
    }
  });
  return {};
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
