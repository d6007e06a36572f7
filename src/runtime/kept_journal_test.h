// For tests: the journal of a runtime that serves, and the same decisions made again from it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "dispatch/journal_file.h"
#include "dispatch/replay.h"
#include "policies/registry.h"

namespace tactus::testing {

class KeptJournal {
 public:
  // Of a runtime with this policy and these lanes.
  KeptJournal(std::string policy, std::vector<LaneSpec> lanes, std::size_t queue_capacity = 4096) {
    header_.policy = std::move(policy);
    header_.source = "served";
    header_.options.queue_capacity = queue_capacity;
    header_.lanes = std::move(lanes);
    auto writer = JournalWriter::Create(path_, header_, WhenFull::kStop);
    if (writer) writer_ = *std::move(writer);
    EXPECT_NE(writer_, nullptr);
  }

  Journal* writer() { return writer_.get(); }

  // Once the runtime is gone: the journal is whole, and no decision comes out differently.
  ReplayResult Replayed() {
    EXPECT_TRUE(writer_->Close());
    const auto journal = LoadJournal(path_);
    EXPECT_TRUE(journal) << journal.error().message;
    if (!journal) return {};
    EXPECT_TRUE(journal->complete);
    const auto replayed = Replay(*journal, **MakePolicy(header_.policy));
    EXPECT_TRUE(replayed) << replayed.error().message;
    if (!replayed) return {};
    EXPECT_EQ(replayed->difference, std::nullopt);
    EXPECT_GT(replayed->decisions, 0u);
    return *replayed;
  }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "journal";
  JournalHeader header_;
  std::unique_ptr<JournalWriter> writer_;
};

}  // namespace tactus::testing
