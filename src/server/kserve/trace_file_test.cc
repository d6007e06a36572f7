#include "server/kserve/trace_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/small_files_test.h"
#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Trace TraceOf(std::uint64_t id, std::uint32_t log_frequency = 0) {
  const Trace::Instant start(std::chrono::nanoseconds(1000 * id));
  return {.id = id,
          .log_frequency = log_frequency,
          .model = "m",
          .version = 3,
          .received = start,
          .queued = start + std::chrono::nanoseconds(1),
          .answered = start + std::chrono::nanoseconds(9)};
}

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The ids of the traces in a file, which is whole.
std::vector<int> IdsIn(const std::filesystem::path& path) {
  std::vector<int> ids;
  for (const auto& object : nlohmann::json::parse(TextOf(path))) {
    if (object.contains("timestamps")) ids.push_back(object.at("id").get<int>());
  }
  return ids;
}

class TraceFileTest : public testing::Test {
 protected:
  std::unique_ptr<TraceFile> Make() {
    auto made = TraceFile::Create(path_, [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      said_.push_back(line);
    });
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return *std::move(made);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "t.json";
  std::mutex mutex_;
  std::vector<std::string> said_;
};

TEST(TraceJson, HasWhatIsKnown) {
  Trace trace = TraceOf(7);
  trace.outcome = Outcome::kShed;
  EXPECT_EQ(TraceJson(trace),
            R"({"id":7,"model_name":"m","model_version":3,"outcome":"shed"},)"
            "\n"
            R"({"id":7,"timestamps":[{"name":"REQUEST_START","ns":7000},)"
            R"({"name":"QUEUE_START","ns":7001},{"name":"REQUEST_END","ns":7009}]})");
  trace.request_id = "a \"call\"\xff";
  trace.outcome = Outcome::kLate;
  trace.batch = 4;
  trace.exit = "final";
  trace.emulated = true;
  trace.compute = {trace.queued + std::chrono::nanoseconds(2),
                   trace.queued + std::chrono::nanoseconds(5)};
  EXPECT_EQ(TraceJson(trace),
            R"({"id":7,"model_name":"m","model_version":3,"request_id":"a \"call\"�",)"
            R"("outcome":"late","batch":4,"exit":"final","emulated":true},)"
            "\n"
            R"({"id":7,"timestamps":[{"name":"REQUEST_START","ns":7000},)"
            R"({"name":"QUEUE_START","ns":7001},{"name":"COMPUTE_START","ns":7003},)"
            R"({"name":"COMPUTE_END","ns":7006},{"name":"REQUEST_END","ns":7009}]})");
}

// A tool could otherwise read the file only after the server has stopped.
TEST_F(TraceFileTest, IsWholeAfterEachTrace) {
  const auto file = Make();
  EXPECT_THAT(IdsIn(path_), ElementsAre());
  for (int i = 1; i <= 3; ++i) {
    file->Add(TraceOf(static_cast<std::uint64_t>(i)));
    file->Flush();
    EXPECT_EQ(IdsIn(path_).size(), static_cast<std::size_t>(i));
  }
  EXPECT_THAT(IdsIn(path_), ElementsAre(1, 2, 3));
}

TEST_F(TraceFileTest, WhatWasAddedIsWrittenAtTheEnd) {
  auto file = Make();
  for (std::uint64_t id = 1; id <= 100; ++id) file->Add(TraceOf(id));
  file.reset();
  EXPECT_EQ(IdsIn(path_).size(), 100u);
  EXPECT_TRUE(said_.empty());
}

TEST_F(TraceFileTest, NumberedFilesHoldAsManyAsToldAndReplaceNone) {
  std::ofstream(path_ + ".1") << "mine";
  const auto file = Make();
  for (std::uint64_t id = 1; id <= 5; ++id) file->Add(TraceOf(id, 2));
  file->Add(TraceOf(6));
  file->Add(TraceOf(7, 2));
  file->Flush();
  EXPECT_THAT(IdsIn(path_ + ".0"), ElementsAre(1, 2));
  EXPECT_EQ(TextOf(path_ + ".1"), "mine");
  EXPECT_THAT(IdsIn(path_ + ".2"), ElementsAre(3, 4));
  EXPECT_THAT(IdsIn(path_ + ".3"), ElementsAre(5, 7));
  EXPECT_THAT(IdsIn(path_), ElementsAre(6));
}

TEST_F(TraceFileTest, TheLastRunsTracesAreKept) {
  for (const int id : {1, 2}) Make()->Add(TraceOf(static_cast<std::uint64_t>(id)));
  EXPECT_THAT(IdsIn(path_ + ".old"), ElementsAre(1));
  Make();
  EXPECT_THAT(IdsIn(path_ + ".old"), ElementsAre(2));
  Make();  // a run without traces does not take the place of one with traces
  EXPECT_THAT(IdsIn(path_ + ".old"), ElementsAre(2));
  EXPECT_THAT(IdsIn(path_), ElementsAre());
}

TEST_F(TraceFileTest, AShortFileThatIsNoEmptyArrayIsKept) {
  for (const std::string_view text : {"x", "mine", "[\n{\n", "[{}]\n"}) {
    std::ofstream(path_) << text;
    Make();
    EXPECT_EQ(TextOf(path_ + ".old"), text);
    EXPECT_THAT(IdsIn(path_), ElementsAre());
  }
  std::ofstream(path_).flush();  // an empty one takes nothing's place
  Make();
  EXPECT_EQ(TextOf(path_ + ".old"), "[{}]\n");
}

TEST_F(TraceFileTest, TwoServersDoNotShareAFile) {
  const auto first = Make();
  for (const std::uint64_t id : {0u, 1u}) {
    if (id > 0) first->Add(TraceOf(id));
    first->Flush();
    const auto second = TraceFile::Create(path_, [](const std::string&) {});
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(second.error().message, HasSubstr(path_ + ": another process writes its traces"));
  }
  EXPECT_THAT(IdsIn(path_), ElementsAre(1));
}

// Otherwise a server would load its models before it finds out.
TEST_F(TraceFileTest, WhetherItIsToBeHadIsKnownBeforehand) {
  EXPECT_TRUE(TraceFile::CheckFree(path_));
  EXPECT_FALSE(std::filesystem::exists(path_));
  const auto file = Make();
  EXPECT_THAT(TraceFile::CheckFree(path_).error().message,
              HasSubstr(path_ + ": another process writes its traces"));
  const std::string loop = folder_ / "loop";
  std::filesystem::create_symlink("loop", loop);
  EXPECT_EQ(TraceFile::CheckFree(loop).error().message,
            "--trace-file: " + loop + ": cannot create it: Too many levels of symbolic links");
}

TEST_F(TraceFileTest, AFileThatCannotBeCreatedIsAnErrorWithItsCause) {
  const std::string path = folder_ / "none" / "t.json";
  const auto made = TraceFile::Create(path, [](const std::string&) {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message,
            "--trace-file: " + path + ": cannot create it: No such file or directory");
}

// A full disk and a limit of the process (RLIMIT_FSIZE) stop a write midway; each is called what it
// is.
TEST_F(TraceFileTest, AFileThatMayNotGrowIsSaidOnceAndStaysWhole) {
  auto file = Make();
  file->Add(TraceOf(1));
  file->Flush();
  {
    const SmallFiles small(std::filesystem::file_size(path_) + 20);
    for (const std::uint64_t id : {2u, 3u}) {
      file->Add(TraceOf(id));
      file->Flush();
    }
  }
  EXPECT_THAT(IdsIn(path_), ElementsAre(1));
  EXPECT_EQ(file->lost(), 2u);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr(path_ + ": cannot write it: it would be larger "
                                                         "than this process may write (ulimit -f)"),
                                       HasSubstr("; serving goes on without these traces"))));
  // Once there is room again, traces are written again.
  file->Add(TraceOf(4));
  file.reset();
  EXPECT_THAT(IdsIn(path_), ElementsAre(1, 4));
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_.back(), path_ + ": 2 traces were lost");
}

TEST_F(TraceFileTest, ANumberedFileThatCannotBeCreatedIsLostTraces) {
  const auto file = Make();
  std::filesystem::remove_all(folder_.path());
  file->Add(TraceOf(1, 1));
  file->Flush();
  EXPECT_EQ(file->lost(), 1u);
  EXPECT_THAT(said_, ElementsAre(HasSubstr(path_ + ".0: cannot create it")));
  std::filesystem::create_directory(folder_.path());
  file->Add(TraceOf(2, 1));
  file->Flush();
  EXPECT_THAT(IdsIn(path_ + ".0"), ElementsAre(2));
}

}  // namespace
}  // namespace tactus
