// The journals of `tactus serve --journal FILE`: FILE of the dispatcher, FILE.pipelines of the
// ensembles.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "ensemble/pipeline_journal.h"
#include "platform/repeated_task.h"
#include "serving/log_queue.h"

namespace tactus {

// Outlives whoever writes into it.
class ServedJournals {
 public:
  // Keeps those of the last run (kept_journal.h). Nothing where there is no `path`.
  static Status KeepOld(const std::string& path);

  // What fails later is said in `log`, once, when it fails; the server serves on.
  Status Open(const std::string& path, const JournalHeader& header, Log log);
  // Null where none was opened.
  Journal* dispatcher() const { return dispatcher_.get(); }
  PipelineJournal* pipelines() const { return pipelines_.get(); }
  // Whether all was written so far; nothing where no journal was opened. From any thread.
  std::optional<bool> whole() const;
  // After the last decision.
  void Close(const Log& log);

 private:
  std::unique_ptr<JournalWriter> dispatcher_;
  std::unique_ptr<PipelineJournal> pipelines_;
  std::atomic<bool> whole_{true};
  RepeatedTask flush_;

  Duration Flush(const Log& log);
};

}  // namespace tactus
