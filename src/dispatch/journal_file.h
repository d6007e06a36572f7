// A journal on disk: what a dispatcher was given and what it decided, whole enough to be decided
// again (`tactus replay`).
//
//   "TACTUSJ3", then sections of one letter each, integers little-endian:
//     H u32 n, n bytes of JSON   policy, commit, source, lanes, options; first and once
//     D u32 n, n bytes of JSON   the served models: it holds for the records that follow
//     P u32 n, n bytes of JSON   a plan, likewise
//     L u32 n, n bytes of JSON   a lane's new share, likewise
//     R u32 n, n records of 64 bytes (JournalRecord)
//     E u64 records, u8 complete, u64 checksum (FNV-1a of all bytes before it); last
//
// complete = 0 says that the writer fell behind and stopped: what is there is a true beginning. So
// is a journal without an end, whose writer was killed; nothing vouches for its bytes then.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/expected.h"
#include "base/ring.h"
#include "dispatch/dispatcher.h"
#include "dispatch/journal.h"

namespace tactus {

struct JournalHeader {
  std::string policy;  // as MakePolicy takes it: "edgeserving:batch=1"
  std::string source;  // "simulated", "measured"
  std::string commit;
  DispatcherOptions options;
  std::vector<LaneSpec> lanes;
};

struct JournalFile {
  using Changed =
      std::variant<std::shared_ptr<const ServedModels>, std::shared_ptr<const Plan>, LaneShare>;
  struct Change {
    std::size_t at = 0;  // before the record of this index
    Changed to;
  };
  JournalHeader header;
  std::vector<JournalRecord> records;
  std::vector<Change> changes;  // in order; the first is the served models, at 0
  bool complete = true;
  bool cut_off = false;  // it has no end, so it is not complete either
};

// What a writer does when its buffer is full.
enum class WhenFull {
  kStop,   // in real time: record nothing more, never block; the file is an incomplete beginning
  kWrite,  // in virtual time: write to the file at once
};

// Append is for the dispatcher's thread, without a lock or an allocation. Somebody calls Flush from
// time to time, on any one thread at a time; Close writes the end.
class JournalWriter final : public Journal {
 public:
  static constexpr std::size_t kRecords = std::size_t{1} << 16;  // 4 MB

  static Expected<std::unique_ptr<JournalWriter>> Create(const std::filesystem::path& path,
                                                         const JournalHeader& header,
                                                         WhenFull when_full,
                                                         std::size_t records = kRecords);

  void Append(const JournalRecord& record) noexcept override;
  void Configured(const ServedModels& served_models) override;
  void Adopted(const Plan* plan) override;
  void Reshaped(const LaneShare& share) override;

  // An error is kept: later calls return it too.
  Status Flush();
  // After the last Append.
  Status Close();
  // The buffer was full, and records are missing after that point.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  struct Change {
    std::uint64_t at;
    char letter;
    std::string json;
  };

  JournalWriter(std::ofstream file, std::string path, WhenFull when_full, std::size_t records);
  void Note(char letter, std::string json);
  void Write(std::string_view bytes);
  void NoteFailure();
  void WriteSection(char letter, std::string_view json);
  Status FlushLocked();
  Status Result() const;

  const std::string path_;
  const WhenFull when_full_;
  SpscRing<JournalRecord> ring_;
  std::uint64_t appended_ = 0;  // the dispatcher's
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;  // the file and what follows
  std::ofstream file_;
  int failed_ = 0;  // the errno of what failed first
  std::uint64_t checksum_;
  std::uint64_t written_ = 0;
  std::vector<Change> changes_;
  std::string chunk_;  // of records, on their way to the file
};

// Errors name the file and what is wrong with it: not a journal, cut off before there is anything
// to decide, damaged.
Expected<JournalFile> LoadJournal(const std::filesystem::path& path);
// `verify`: also compare the checksum.
Expected<JournalFile> ParseJournal(std::string_view bytes, std::string_view where,
                                   bool verify = true);

}  // namespace tactus
