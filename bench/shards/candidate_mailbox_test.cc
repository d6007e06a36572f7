// What the shards say must reach the rank whole, and the last of it always.
#include "shards/candidate_mailbox.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

CandidateNote NoteOf(std::uint32_t n) {
  return {.batches = n % 1000,
          .answered = n,
          .latest = TimePoint{Nanos(std::int64_t{3} * n)},
          .since = TimePoint{Nanos(std::int64_t{5} * n)}};
}

// Only the newest word of each model is read, and only of those that wrote.
TEST(CandidateMailbox, KeepsTheLatestWord) {
  CandidateMailbox mailbox(5000);
  const std::vector<std::uint32_t> writers = {0, 63, 64, 4095, 4096, 4999};
  for (const std::uint32_t m : writers) {
    mailbox.Write(ModelId{m}, NoteOf(m));
    mailbox.Write(ModelId{m}, NoteOf(m + 1));
  }
  std::vector<std::uint32_t> read;
  mailbox.ReadChanged([&](ModelId m, const CandidateNote& note) {
    read.push_back(m.value());
    EXPECT_EQ(note, NoteOf(m.value() + 1));
  });
  EXPECT_EQ(read, writers);
  EXPECT_EQ(mailbox.ReadChanged([](ModelId, const CandidateNote&) {}), 0u);
}

// A word that mixes two writes would grant a batch that nobody proposed, and a last word that is
// not read would leave a model waiting for ever.
TEST(CandidateMailbox, IsNeverTornAndNeverLosesTheLastWord) {
  constexpr std::uint32_t kModels = 130;
  constexpr std::uint32_t kWrites = 20'000;
  CandidateMailbox mailbox(kModels);
  std::vector<std::thread> shards;
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    shards.emplace_back([&mailbox, shard] {
      Rng rng = Rng::Stream(shard, "mailbox");
      for (std::uint32_t n = 1; n <= kWrites; ++n) {
        mailbox.Write(ModelId{2 * static_cast<std::uint32_t>(rng.Below(kModels / 2)) + shard},
                      NoteOf(n));
      }
      for (std::uint32_t m = shard; m < kModels; m += 2) {
        mailbox.Write(ModelId{m}, NoteOf(kWrites + 1));
      }
    });
  }
  std::vector<std::uint32_t> last(kModels, 0);
  std::uint32_t ended = 0;
  while (ended < kModels) {
    const std::size_t read = mailbox.ReadChanged([&](ModelId m, const CandidateNote& note) {
      ASSERT_EQ(note, NoteOf(note.answered));
      ASSERT_GE(note.answered, last[m.value()]);
      ended += note.answered == kWrites + 1 && last[m.value()] != kWrites + 1;
      last[m.value()] = note.answered;
    });
    if (HasFatalFailure()) break;
    if (read == 0) std::this_thread::yield();
  }
  for (std::thread& shard : shards) shard.join();
}

}  // namespace
}  // namespace tactus
