#include "serving/journals.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Log Silent() { return std::make_shared<spdlog::logger>("test"); }

void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

JournalHeader HeaderOf(const std::string& policy) {
  return {.policy = policy, .source = "served", .commit = "c", .options = {}, .lanes = {{}}};
}

// What a dispatcher would write first.
ServedModels Serving(const std::string& model) {
  ServedModels served;
  served.models = {{.name = model, .slo = Millis(1), .max_batch = 1, .exits = {{"final", 0.5}}}};
  const ProfileTable::ModelRows rows[] = {{.exits = 1, .max_batch = 1, .latency = {Millis(1)}}};
  served.profile = ProfileTable(1, rows);
  return served;
}

// The first model of a journal; nothing where it does not replay.
std::string ModelIn(const fs::path& path) {
  const auto read = LoadJournal(path);
  if (!read) return read.error().message;
  return std::get<std::shared_ptr<const ServedModels>>(read->changes[0].to)->models[0].name;
}

// Otherwise a restart after a crash would write over what says why.
TEST(KeptJournalTest, TheLastRunsIsKeptAndAnEmptyOneIsNot) {
  const TemporaryFolder folder;
  const fs::path path = folder / "j";
  ASSERT_TRUE(KeepOldJournal(path));
  EXPECT_FALSE(fs::exists(folder / "j.old")) << "there was none";
  Write(path, "first");
  ASSERT_TRUE(KeepOldJournal(path));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(Read(folder / "j.old"), "first");
  Write(path, "");
  ASSERT_TRUE(KeepOldJournal(path));
  EXPECT_EQ(Read(folder / "j.old"), "first") << "an empty one says less than an older one";
  Write(path, "second");
  ASSERT_TRUE(KeepOldJournal(path));
  EXPECT_EQ(Read(folder / "j.old"), "second");
}

TEST(KeptJournalTest, WhatIsNoFileStaysAndWhatCannotBeKeptIsNamed) {
  EXPECT_TRUE(KeepOldJournal("/dev/null"));
  EXPECT_TRUE(fs::exists("/dev/null"));
  const TemporaryFolder folder;
  Write(folder / "j", "text");
  fs::create_directories(folder / "j.old" / "full");
  const Status kept = KeepOldJournal(folder / "j");
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr("move it, or give --journal another name"));
  EXPECT_EQ(Read(folder / "j"), "text");
}

// Otherwise the journal of a server would not replay, or metrics would say that there is one.
TEST(ServedJournalsTest, BothAreKeptOpenedAndClosedWhole) {
  const TemporaryFolder folder;
  const fs::path path = folder / "j";
  Write(path, "old");
  Write(PipelineJournalBeside(path), "old pipelines");
  ASSERT_TRUE(ServedJournals::KeepOld(""));
  ASSERT_TRUE(ServedJournals::KeepOld(path));
  EXPECT_EQ(Read(folder / "j.old"), "old");
  EXPECT_EQ(Read(folder / "j.pipelines.old"), "old pipelines");

  ServedJournals journals;
  EXPECT_EQ(journals.dispatcher(), nullptr);
  EXPECT_EQ(journals.whole(), std::nullopt);
  journals.Close(Silent());  // of none
  ASSERT_TRUE(journals.Open(path, HeaderOf("edf"), Silent()));
  ASSERT_NE(journals.dispatcher(), nullptr);
  EXPECT_NE(journals.pipelines(), nullptr);
  journals.dispatcher()->Configured(Serving("m"));
  EXPECT_EQ(journals.whole(), true);
  journals.Close(Silent());
  EXPECT_EQ(ModelIn(path), "m");
  EXPECT_FALSE(ServedJournals().Open(folder / "no" / "j", HeaderOf("edf"), Silent()));
}

// Otherwise a term's decisions would be replayed as another's, or a new leader keep no journal.
TEST(TermJournalsTest, EachTermHasItsOwnAndTheOneBeforeIsKept) {
  const TemporaryFolder folder;
  const fs::path path = folder / "j";
  {
    TermJournals journals(path, HeaderOf("edf"), Silent());
    EXPECT_EQ(journals.whole(), std::nullopt);
    EXPECT_FALSE(fs::exists(path)) << "it only watches";
    for (const Term term : {Term{1}, Term{4}}) {
      Journal* const journal = journals.Begin(term);
      ASSERT_NE(journal, nullptr);
      EXPECT_EQ(journals.whole(), true);
      journal->Configured(Serving("of term " + std::to_string(term)));
    }
  }
  EXPECT_EQ(ModelIn(folder / "j"), "of term 4");
  EXPECT_EQ(ModelIn(folder / "j.old"), "of term 1");
}

// A term without a journal is a term all the same; the next one may have one.
TEST(TermJournalsTest, ATermThatCannotHaveOneIsNotWhole) {
  const TemporaryFolder folder;
  const fs::path path = folder / "later" / "j";
  TermJournals journals(path, HeaderOf("edf"), Silent());
  EXPECT_EQ(journals.Begin(1), nullptr);
  EXPECT_EQ(journals.whole(), false);
  fs::create_directories(folder / "later");
  EXPECT_NE(journals.Begin(2), nullptr);
  EXPECT_EQ(journals.whole(), true);
}

}  // namespace
}  // namespace tactus
