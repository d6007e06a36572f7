#include "dispatch/journal_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/small_files_test.h"
#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

ServedModels OneModel(const std::string& name) {
  ServedModels served_models;
  served_models.models = {{.name = name,
                           .slo = Millis(50),
                           .max_batch = 2,
                           .priority = 2,
                           .exits = {{"early", 0.5}, {"final", 0.75}}}};
  const ProfileTable::ModelRows rows[] = {
      {.exits = 2, .max_batch = 2, .latency = {Millis(1), Millis(2), Millis(3), Nanos(4'000'001)}}};
  served_models.profile = ProfileTable(1, rows);
  return served_models;
}

ModelSet Only(ModelId::rep model) {
  ModelSet models = ModelSet::None(model + 1);
  models.Insert(ModelId{model});
  return models;
}

JournalHeader Header() {
  return {
      .policy = "edgeserving:batch=1",
      .source = "measured",
      .commit = "abc",
      .options = {.queue_capacity = 77,
                  .expiry = Expiry::kPassed,
                  .follow = {.on = true, .percentile = 50, .stalls = true, .margin = Micros(5)}},
      .lanes = {LaneSpec{.slots = 2}, LaneSpec{.fraction = 0.5, .serves = Only(70)}}};
}

JournalRecord Arrival(std::uint64_t id) {
  return {.kind = JournalRecord::Kind::kArrive,
          .shape = 5,
          .priority = 2,
          .id = id,
          .at = kStart + Micros(static_cast<std::int64_t>(id)),
          .deadline = kStart + Millis(9),
          .upload = Nanos(std::int64_t{1} << 40)};
}

const Plan kPlan = {
    .epoch = 3,
    .lanes = {
        {.spec = {.device = DeviceId{1}, .fraction = 0.4, .slots = 2},
         .cycle = Millis(30),
         .entries = {{.model = ModelId{0}, .batch = 2, .offset = Nanos(7), .length = Millis(12)}}},
        {}}};
const LaneShare kShare = {.lane = LaneId{1}, .lane_class = LaneClass{0}, .fraction = 1.0 / 3};

class JournalFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<JournalWriter> Create(WhenFull when_full, std::size_t records) {
    auto writer = JournalWriter::Create(path_, Header(), when_full, records);
    EXPECT_TRUE(writer) << writer.error().message;
    return std::move(*writer);
  }
  // A journal of 20 arrivals, with a second set of served models, a share and a plan before the
  // last five.
  std::string Sample() {
    const auto writer = Create(WhenFull::kWrite, 8);
    writer->Configured(OneModel("m"));
    for (std::uint64_t i = 0; i < 15; ++i) writer->Append(Arrival(i));
    writer->Configured(OneModel("n"));
    writer->Reshaped(kShare);
    writer->Adopted(&kPlan);
    writer->Adopted(nullptr);
    for (std::uint64_t i = 15; i < 20; ++i) writer->Append(Arrival(i));
    EXPECT_TRUE(writer->Close());
    std::ifstream in(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "journal";
};

TEST_F(JournalFileTest, HoldsAllThatWasWritten) {
  Sample();
  const auto journal = LoadJournal(path_);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_TRUE(journal->complete);
  EXPECT_EQ(journal->header.policy, "edgeserving:batch=1");
  EXPECT_EQ(journal->header.source, "measured");
  EXPECT_EQ(journal->header.options.queue_capacity, 77u);
  EXPECT_EQ(journal->header.options.expiry, Expiry::kPassed);
  EXPECT_TRUE(journal->header.options.follow.on);
  EXPECT_EQ(journal->header.options.follow.percentile, 50);
  EXPECT_TRUE(journal->header.options.follow.stalls);
  EXPECT_EQ(journal->header.options.follow.margin, Micros(5));
  ASSERT_EQ(journal->header.lanes.size(), 2u);
  EXPECT_EQ(journal->header.lanes[0].slots, 2);
  EXPECT_EQ(journal->header.lanes[1].fraction, 0.5);
  EXPECT_TRUE(journal->header.lanes[0].serves.all());
  EXPECT_EQ(journal->header.lanes[1].serves, Only(70));
  ASSERT_EQ(journal->records.size(), 20u);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(journal->records[i], Arrival(i));
  ASSERT_EQ(journal->changes.size(), 5u);
  EXPECT_EQ(journal->changes[0].at, 0u);
  for (const std::size_t i : {1, 2, 3, 4}) EXPECT_EQ(journal->changes[i].at, 15u);
  const ServedModels& served_models =
      *std::get<std::shared_ptr<const ServedModels>>(journal->changes[1].to);
  EXPECT_EQ(served_models.models[0].name, "n");
  EXPECT_EQ(served_models.models[0].slo, Millis(50));
  EXPECT_EQ(served_models.models[0].priority, 2);
  EXPECT_EQ(served_models.models[0].exits[1].accuracy, 0.75);
  EXPECT_EQ(served_models.profile.Latency(ModelId{0}, ExitId{1}, 2, LaneClass{0}),
            Nanos(4'000'001));
  EXPECT_EQ(std::get<LaneShare>(journal->changes[2].to), kShare);
  EXPECT_EQ(*std::get<std::shared_ptr<const Plan>>(journal->changes[3].to), kPlan);
  EXPECT_EQ(std::get<std::shared_ptr<const Plan>>(journal->changes[4].to), nullptr);
}

// In real time the dispatcher must never wait for a disk: the journal ends early, and says so.
TEST_F(JournalFileTest, StopsRatherThanBlocks) {
  const auto writer = Create(WhenFull::kStop, 8);
  writer->Configured(OneModel("m"));
  for (std::uint64_t i = 0; i < 20; ++i) writer->Append(Arrival(i));
  EXPECT_TRUE(writer->stopped());
  ASSERT_TRUE(writer->Flush());
  writer->Append(Arrival(20));  // there is room again, but a gap would make the rest worthless
  ASSERT_TRUE(writer->Close());
  const auto journal = LoadJournal(path_);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_FALSE(journal->complete);
  ASSERT_EQ(journal->records.size(), 8u);
  EXPECT_EQ(journal->records[7], Arrival(7));
}

TEST_F(JournalFileTest, IsFlushedByAnotherThreadWhileItGrows) {
  constexpr std::uint64_t kRecords = 50'000;
  const auto writer = Create(WhenFull::kStop, JournalWriter::kRecords);
  writer->Configured(OneModel("m"));
  std::atomic<bool> done{false};
  std::thread flusher([&] {
    while (!done.load()) EXPECT_TRUE(writer->Flush());
  });
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    if (i == kRecords / 2) writer->Configured(OneModel("n"));
    writer->Append(Arrival(i));
  }
  done.store(true);
  flusher.join();
  ASSERT_TRUE(writer->Close());
  const auto journal = LoadJournal(path_);
  ASSERT_TRUE(journal) << journal.error().message;
  ASSERT_EQ(journal->records.size(), kRecords);
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_EQ(journal->records[i].id, i);
  EXPECT_EQ(journal->changes[1].at, kRecords / 2);
}

// Otherwise a limit of the process would be taken for a full disk, and nobody would find it.
TEST_F(JournalFileTest, SaysThatItMayNotGrow) {
  const auto writer = Create(WhenFull::kStop, JournalWriter::kRecords);
  writer->Configured(OneModel("m"));
  ASSERT_TRUE(writer->Flush());
  {
    const SmallFiles small(std::filesystem::file_size(path_) + 20);
    writer->Append(Arrival(0));
    const Status flushed = writer->Flush();
    ASSERT_FALSE(flushed);
    EXPECT_THAT(flushed.error().message, HasSubstr("larger than this process may write"));
  }
  EXPECT_THAT(writer->Close().error().message, HasSubstr("(ulimit -f)"));
}

// Cut anywhere, a journal is the beginning that it holds, once that is enough to decide by.
TEST_F(JournalFileTest, IsABeginningWhenCutOff) {
  const std::string bytes = Sample();
  const auto whole = ParseJournal(bytes, "j");
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_FALSE(whole->cut_off);
  std::size_t refused = 0;
  std::size_t records = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto journal = ParseJournal(std::string_view(bytes).substr(0, n), "j");
    if (!journal) {
      ASSERT_EQ(refused++, n) << "what is enough stays enough: " << journal.error().message;
      ASSERT_THAT(journal.error().message, HasSubstr("j: "));
      continue;
    }
    ASSERT_TRUE(journal->cut_off && !journal->complete) << n;
    ASSERT_GE(journal->records.size(), records);
    records = journal->records.size();
    ASSERT_TRUE(
        std::equal(journal->records.begin(), journal->records.end(), whole->records.begin()));
  }
  EXPECT_GT(refused, 8u);
  EXPECT_LT(refused, bytes.size() / 2);
  EXPECT_EQ(records, 20u);
}

// Every single byte counts: whichever is changed, the journal is refused.
TEST_F(JournalFileTest, IsRefusedWhenDamaged) {
  const std::string bytes = Sample();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x10);
    // The flag of a complete journal is behind the sum; it only ever says less than was true.
    if (n == bytes.size() - 9) continue;
    ASSERT_FALSE(ParseJournal(damaged, "j")) << n;
  }
  EXPECT_THAT(ParseJournal(bytes + "x", "j").error().message, HasSubstr("bytes follow its end"));
  EXPECT_THAT(ParseJournal("PNG and so on", "j").error().message,
              HasSubstr("is no Tactus journal"));
  for (const std::string unknown : {"1", "4", "9"}) {
    EXPECT_THAT(ParseJournal("TACTUSJ" + unknown + bytes.substr(8), "j").error().message,
                HasSubstr("format " + unknown +
                          ", and this program reads formats 2 and 3; replay it with the tactus "
                          "that wrote it"));
  }
  EXPECT_EQ(LoadJournal("/no/such/journal").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(JournalWriter::Create("/no/such/folder/j", Header(), WhenFull::kStop));
}

// A program that knows no record of a newer kind says which format it reads, and not that the file
// is damaged, only if the number tells it; what older ones wrote is read.
TEST_F(JournalFileTest, HasItsFormatsNumberAndTheOneBeforeIsRead) {
  const std::string bytes = Sample();
  EXPECT_EQ(bytes.substr(0, 8), "TACTUSJ3");
  const auto older = ParseJournal("TACTUSJ2" + bytes.substr(8), "j", false);
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(older->records.size(), ParseJournal(bytes, "j")->records.size());
}

// What the parser accepts must not be able to crash a dispatcher.
TEST_F(JournalFileTest, RefusesServedModelsThatMakeNoSense) {
  const std::string bytes = Sample();
  const auto change = [&](const std::string& from, const std::string& to) {
    std::string changed = bytes;
    for (std::size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size()) {
      changed.replace(at, from.size(), to);
    }
    EXPECT_NE(changed, bytes) << from;
    const auto journal = ParseJournal(changed, "j", false);
    return journal ? std::string("accepted") : journal.error().message;
  };
  EXPECT_THAT(change("\"max_batch\":2", "\"max_batch\":9"), HasSubstr("does not cover"));
  EXPECT_THAT(change("\"max_batch\":2", "\"max_batch\":0"), HasSubstr("does not cover"));
  EXPECT_THAT(change("[1000000,", "[-100000,"), HasSubstr("no number of nanoseconds"));
  EXPECT_THAT(change("\"expiry\":\"passed\"", "\"expiry\":\"paused\""), HasSubstr("expiry"));
  EXPECT_THAT(change("\"slots\":2", "\"slots\":0"), HasSubstr("slots must be a whole number"));
  EXPECT_THAT(change("\"queue_capacity\":77", "\"queue_capacity\":-7"),
              HasSubstr("queue_capacity"));
  EXPECT_THAT(change("\"slo_ns\":50000000", "\"slo_ns\":\"000000\""), HasSubstr("slo_ns"));
  EXPECT_THAT(change("\"lane_class\":0", "\"lane_class\":9"), HasSubstr("class"));
  EXPECT_THAT(change("\"serves\":[70]", "\"serves\":[-7]"), HasSubstr("serves names no model"));
  EXPECT_THAT(change("\"lane\":1,", "\"lane\":2,"), HasSubstr("a lane's share: "));
  EXPECT_THAT(change("\"fraction\":0.4,", "\"fraction\":1.4,"), HasSubstr("a plan: "));
  EXPECT_THAT(change("\"batch\":2,", "\"batch\":0,"), HasSubstr("batch must be a whole number"));
  EXPECT_THAT(change("\"offset_ns\":7", "\"offset_ns\":x"), HasSubstr("a plan: "));
}

}  // namespace
}  // namespace tactus
