// Without these a store that is killed while it writes could lose what it had confirmed, or keep
// half of a batch.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "knowledge/process_test.h"
#include "knowledge/store.h"
#include "knowledge/store_case_test.h"

namespace tactus::knowledge {
namespace {

constexpr std::size_t kRowsInABatch = 40;
constexpr std::uint64_t kTerm = 1;

std::uint64_t Seed() {
  const char* said = std::getenv("TACTUS_TEST_SEED");
  return said ? std::strtoull(said, nullptr, 10) : 20'261'123;
}

Batch NumberedBatch(std::uint64_t sequence) {
  Batch batch{.term = kTerm, .sequence = sequence};
  for (std::size_t i = 0; i < kRowsInABatch; ++i) {
    batch.arrivals.push_back({.at = kNoon + std::chrono::seconds(sequence),
                              .pipeline = "street",
                              .stage = std::to_string(i),
                              .bytes_in = std::int64_t(sequence)});
  }
  batch.plans = {{sequence, kTerm, kNoon, "{}", "{}", "{}", PlanFate::kAdopted, kNoon, ""}};
  batch.events = {{0, kNoon, "batch", std::to_string(sequence), ""}};
  return batch;
}

// Batch 1 to the last one is there, each whole and once, and there are at least `confirmed` of
// them. How many there are.
std::uint64_t CheckWhole(Store& store, std::uint64_t confirmed) {
  const Window all{kNoon, kNoon + std::chrono::hours(24)};
  std::map<std::int64_t, std::size_t> rows;
  for (const ArrivalSample& sample : Must(store.Arrivals(all))) ++rows[sample.bytes_in];
  const auto there = std::uint64_t{rows.size()};
  EXPECT_GE(there, confirmed);
  for (std::uint64_t sequence = 1; sequence <= there; ++sequence) {
    EXPECT_EQ(rows[std::int64_t(sequence)], kRowsInABatch) << "batch " << sequence;
  }
  EXPECT_EQ(Must(store.HighestSeen()).epoch, there);
  EXPECT_EQ(Must(store.Events(all)).size(), there);
  return there;
}

// Writes batches and says the number of each that was committed, until it is killed.
[[noreturn]] void WriteUntilKilled(const std::string& where, std::uint64_t next,
                                   int confirmations) {
  auto store = OpenStore(where);
  while (store && (*store)->Commit(NumberedBatch(next))) {
    if (::write(confirmations, &next, sizeof next) != sizeof next) break;
    ++next;
  }
  ::_exit(1);
}

TEST(Crash, SqliteKeepsWhatAKilledWriterHadCommittedAndNothingByHalves) {
  const TemporaryFolder folder;
  const std::string where = "sqlite:" + (folder / "knowledge.db").string();
  const std::uint64_t seed = Seed();
  Rng chance = Rng::Stream(seed, "knowledge/crash/sqlite");
  std::uint64_t there = CheckWhole(*Must(OpenStore(where)), 0);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", TACTUS_TEST_SEED=" + std::to_string(seed));
    int confirmations[2];
    ASSERT_EQ(::pipe(confirmations), 0);
    const pid_t writer = ::fork();
    if (writer == 0) {
      ::close(confirmations[0]);
      WriteUntilKilled(where, there + 1, confirmations[1]);
    }
    ::close(confirmations[1]);
    // After some confirmed batches, at some instant of what follows.
    std::uint64_t confirmed = there;
    for (std::uint64_t wait = chance.Below(6); wait > 0; --wait) {
      ASSERT_EQ(::read(confirmations[0], &confirmed, sizeof confirmed), ssize_t(sizeof confirmed));
    }
    ::usleep(useconds_t(chance.Below(20'000)));
    ::kill(writer, SIGKILL);
    ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
    while (::read(confirmations[0], &confirmed, sizeof confirmed) == ssize_t(sizeof confirmed)) {
    }
    ::close(confirmations[0]);
    auto store = Must(OpenStore(where));
    there = CheckWhole(*store, confirmed);
    EXPECT_LE(there, confirmed + 1);  // the one that was under way
  }
  EXPECT_GT(there, 20u);
}

TEST(Crash, PostgresKeepsWhatItHadCommittedWhenAllOfItIsKilled) {
  if (const std::string why = PostgresServer::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  PostgresServer server;
  const std::uint64_t seed = Seed();
  Rng chance = Rng::Stream(seed, "knowledge/crash/postgres");
  // The same store throughout: it connects again by itself.
  auto store = Must(OpenStore(server.MakeDatabase("crash")));
  std::uint64_t confirmed = 0;
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", TACTUS_TEST_SEED=" + std::to_string(seed));
    const auto life = std::chrono::microseconds(chance.Below(60'000));
    std::thread killer([&] {
      std::this_thread::sleep_for(life);
      server.Kill();
    });
    for (;;) {
      const auto written = store->Commit(NumberedBatch(confirmed + 1));
      if (!written) {
        EXPECT_EQ(written.error().code, ErrorCode::kUnavailable) << written.error().message;
        break;
      }
      ++confirmed;
    }
    killer.join();
    server.Start();
    const std::uint64_t there = CheckWhole(*store, confirmed);
    EXPECT_LE(there, confirmed + 1);
    // The batch that nobody confirmed is written again, and is there once.
    const Written again = Must(store->Commit(NumberedBatch(confirmed + 1)));
    EXPECT_EQ(again, there > confirmed ? Written::kBefore : Written::kNow);
    ++confirmed;
    EXPECT_EQ(CheckWhole(*store, confirmed), confirmed);
  }
}

}  // namespace
}  // namespace tactus::knowledge
