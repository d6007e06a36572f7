// The journal of a server's pipelines on disk (pipeline/flow_journal.h): one file, into which every
// ensemble writes what its Flow was told and what it said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "base/expected.h"
#include "pipeline/flow_journal.h"

namespace tactus {

// Where the ensembles' journal lies beside the dispatcher's.
inline std::string PipelineJournalBeside(const std::string& path) { return path + ".pipelines"; }

// Thread-safe. Somebody calls Flush from time to time; Close writes the end.
class PipelineJournal {
 public:
  // Bytes that may wait for the disk. Where they do not suffice the journal stops: nobody waits.
  static constexpr std::size_t kMostWaiting = std::size_t{16} << 20;

  static Expected<std::unique_ptr<PipelineJournal>> Create(const std::filesystem::path& path,
                                                           std::string_view commit,
                                                           std::size_t most = kMostWaiting);

  // For one Flow, of this pipeline alone. The journal outlives it.
  std::unique_ptr<FlowJournal> Begin(const PipelineDeclaration& declaration,
                                     const Pipeline& pipeline);

  // An error is kept: later calls return it too.
  Status Flush();
  // What is said from here on is not written.
  Status Close();
  // Records are missing behind some point.
  bool stopped() const;

 private:
  class OfOne;

  PipelineJournal(std::ofstream file, std::string path, std::size_t most)
      : path_(std::move(path)), most_(most), file_(std::move(file)) {}
  void Append(std::uint32_t flow, const FlowRecord& record);
  // With mutex_ held: whether there is room for one more line.
  bool HasRoom();
  Status Write(const std::string& text);

  const std::string path_;
  const std::size_t most_;

  mutable std::mutex mutex_;  // of what follows
  std::string waiting_;
  std::uint64_t lines_ = 0;
  std::uint32_t flows_ = 0;
  bool stopped_ = false;
  bool closed_ = false;

  std::mutex file_mutex_;  // held while it is written; taken before mutex_
  std::ofstream file_;
  int failed_ = 0;  // the errno of what failed first
};

}  // namespace tactus
