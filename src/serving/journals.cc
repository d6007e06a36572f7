#include "serving/journals.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>

namespace tactus {
namespace {

// How often their lines are written to the disk.
constexpr Duration kJournalFlush = Millis(50);

}  // namespace

Status KeepOldJournal(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) == 0) return {};
  fs::rename(path, path + ".old", failed);
  if (!failed) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: the journal of the last run cannot be kept as {}.old ({}): move it, "
                          "or give --journal another name",
                          path, path, failed.message()));
}

Status ServedJournals::KeepOld(const std::string& path) {
  if (path.empty()) return {};
  if (Status kept = KeepOldJournal(path); !kept) return kept;
  return KeepOldJournal(PipelineJournalBeside(path));
}

Status ServedJournals::Open(const std::string& path, const JournalHeader& header, Log log) {
  auto dispatcher = JournalWriter::Create(path, header, WhenFull::kStop);
  if (!dispatcher) return std::unexpected(std::move(dispatcher.error()));
  std::error_code none;
  // Beside a device there is no other.
  const bool device = std::filesystem::is_character_file(path, none);
  const std::string beside = device ? path : PipelineJournalBeside(path);
  if (std::filesystem::is_fifo(beside, none)) {
    return InvalidArgument(beside + ": is a pipe, and the journal of pipelines is to go there");
  }
  auto pipelines = PipelineJournal::Create(beside, header.commit);
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
