#include "stream/frame_feed.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

void Put(FeedWatcher& watcher, std::string piece) {
  watcher.Put(std::make_shared<const std::string>(std::move(piece)));
}

// Without this, a browser on a slow line would keep every event of the stream in memory.
TEST(FeedWatcher, ASlowOneMissesTheOldest) {
  FeedWatcher watcher(FeedKind::kEvents);
  for (int i = 0; i < 100; ++i) Put(watcher, std::to_string(i));
  std::vector<std::string> pieces;
  for (int i = 0; i < 64; ++i) {
    watcher.Next([&](std::string piece) { pieces.push_back(std::move(piece)); });
  }
  ASSERT_EQ(pieces.size(), 64u);
  EXPECT_EQ(pieces.front(), "36");
  EXPECT_EQ(pieces.back(), "99");
}

TEST(FeedWatcher, CountsWhatItMissed) {
  FeedWatcher watcher(FeedKind::kLines);
  for (int i = 0; i < 100; ++i) Put(watcher, std::to_string(i));
  EXPECT_EQ(watcher.missed(), 36u);
}

TEST(FeedWatcher, OfPicturesOnlyTheNewestWaits) {
  FeedWatcher watcher(FeedKind::kPictures);
  for (const char* piece : {"one", "two", "three"}) Put(watcher, piece);
  std::string got;
  watcher.Next([&](std::string piece) { got = std::move(piece); });
  EXPECT_EQ(got, "three");
}

// Without this, a watcher that asked could be answered twice, or after it had left.
TEST(FeedWatcher, IsAnsweredOnceAndNotAfterItLeft) {
  FeedWatcher watcher(FeedKind::kEvents);
  std::vector<std::string> pieces;
  const auto ask = [&] {
    watcher.Next([&](std::string piece) { pieces.push_back(std::move(piece)); });
  };
  ask();
  Put(watcher, "one");
  Put(watcher, "two");
  EXPECT_EQ(pieces, (std::vector<std::string>{"one"}));
  ask();
  EXPECT_EQ(pieces, (std::vector<std::string>{"one", "two"}));
  ask();
  watcher.Leave();
  Put(watcher, "three");
  watcher.End();
  EXPECT_EQ(pieces.size(), 2u);
  EXPECT_TRUE(watcher.left());
}

TEST(FeedWatcher, TheEndComesAfterWhatWaits) {
  FrameFeed feed;
  const auto watcher = feed.Watch(FeedKind::kEvents);
  Put(*watcher, "last");
  feed.End();
  std::vector<std::string> pieces;
  for (int i = 0; i < 2; ++i) {
    watcher->Next([&](std::string piece) { pieces.push_back(std::move(piece)); });
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"last", ""}));
  bool ended = false;
  feed.Watch(FeedKind::kPictures)->Next([&](std::string piece) { ended = piece.empty(); });
  EXPECT_TRUE(ended);
}

// Without this, the thread that brings answers would write JSON for whoever watches.
TEST(FrameFeed, TellsOfAnswersInTheirOrder) {
  FrameFeed feed;
  const auto watcher = feed.Watch(FeedKind::kEvents);
  const std::string stream = "yard";
  const JpegBytes jpeg = std::make_shared<const std::string>("no picture");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> pieces;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    FrameAnswer answer;  // gone before the event is written
    answer.outputs.push_back({"n", DataType::kUint8, {1}, std::string(1, char('0' + number))});
    feed.Publish({.stream = stream, .number = number, .answer = answer, .jpeg = jpeg});
  }
  for (std::size_t piece = 0; piece < 3; ++piece) {
    watcher->Next([&](std::string text) {
      const std::lock_guard lock(mutex);
      pieces.push_back(std::move(text));
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return pieces.size() > piece; });
    EXPECT_NE(pieces[piece].find("\"frame\":" + std::to_string(piece + 1)), std::string::npos);
    EXPECT_NE(pieces[piece].find("[" + std::to_string('1' + piece) + "]"), std::string::npos);
  }
}

}  // namespace
}  // namespace tactus
