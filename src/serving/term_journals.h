// The journal of `tactus scheduler --journal FILE`: FILE of the term that it led last, FILE.old of
// the one before. Terms in which it only watched have none.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dispatch/journal_file.h"
#include "platform/repeated_task.h"
#include "serving/log_queue.h"
#include "site/messages.h"

namespace tactus {

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
