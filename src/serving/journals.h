// The journals that servers and schedulers write beside their work. What the last run wrote, which
// is most wanted after a crash, is kept as FILE.old.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "ensemble/pipeline_journal.h"
#include "platform/repeated_task.h"
#include "serving/log_queue.h"
#include "site/messages.h"

namespace tactus {

// Renames a journal that is there and not empty to `path`.old, in place of an older one, so that a
// new one may begin. Leaves alone what is no plain file (/dev/null).
Status KeepOldJournal(const std::string& path);

// Those of `tactus serve --journal FILE`: FILE of the dispatcher, FILE.pipelines of the ensembles.
// Outlives whoever writes into it.
class ServedJournals {
 public:
  // Keeps those of the last run. Nothing where there is no `path`.
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
  Duration Flush(const Log& log);

  std::unique_ptr<JournalWriter> dispatcher_;
  std::unique_ptr<PipelineJournal> pipelines_;
  std::atomic<bool> whole_{true};
  RepeatedTask flush_;  // last: it uses the others
};

// The journal of `tactus scheduler --journal FILE`: FILE of the term that it led last, FILE.old of
// the one before. Terms in which it only watched have none.
class TermJournals {
 public:
  // A failure costs the journal of that term, not the term: it is said in `log`, once.
  TermJournals(std::string path, JournalHeader header, Log log);
  ~TermJournals();  // after the last decision

  // Begins the journal of a term, once nobody writes into that of the one before. Null where that
  // fails. On the scheduler's thread: a rename and a new file are all that it waits for.
  Journal* Begin(Term term);
  // Whether all of the newest term was written so far; nothing before the first. From any thread.
  std::optional<bool> whole() const;

 private:
  void Flush();
  // Under the mutex.
  void End();
  void Lose(const std::string& why);

  const std::string path_;
  const JournalHeader header_;
  const Log log_;
  mutable std::mutex mutex_;
  std::unique_ptr<JournalWriter> writer_;
  std::optional<bool> whole_;
  RepeatedTask flush_;  // last: it uses the others
};

}  // namespace tactus
