// Without these a batch would be judged by whoever happens to be its neighbour now, and the link's
// clock would drift from the link.
#include "policies/strait/device_record.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "policies/strait/throttle.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

OngoingBatch Using(std::uint64_t id, double share, TimePoint launched) {
  return {.id = BatchId{id}, .launched = launched, .own = {share, share, share, share, share}};
}

// Alone for 2 ms, beside 0.4 for 6, beside 0.4 and 0.2 for 2: (6 * 0.4 + 2 * 0.6) / 10.
TEST(DeviceRecord, WeighsNeighboursByTheTimeTheyWereThere) {
  DeviceRecord device(4);
  device.Add(Using(1, 0.9, At(0)), {}, At(0));
  EXPECT_EQ(device.MeanMet(device.running()[0], At(0))[0], 0);
  device.Add(Using(2, 0.4, At(2)), {}, At(2));
  EXPECT_NEAR(device.MeanMet(device.running()[1], At(2))[0], 0.9, 1e-12);
  device.Add(Using(3, 0.2, At(8)), {}, At(8));
  OngoingBatch gone;
  ASSERT_TRUE(device.Remove(BatchId{1}, At(10), At(0), gone));
  EXPECT_NEAR(device.MeanMet(gone, At(10))[0], 0.36, 1e-12);
  EXPECT_NEAR(device.total()[0], 0.6, 1e-12);
  // The second met 0.9 for 6 ms and 1.1 for 2.
  ASSERT_TRUE(device.Remove(BatchId{2}, At(10), At(2), gone));
  EXPECT_NEAR(device.MeanMet(gone, At(10))[0], 0.95, 1e-12);
  EXPECT_FALSE(device.Remove(BatchId{2}, At(11), At(2), gone)) << "it is gone";
}

// Eq. 3, and the correction by what was measured.
TEST(DeviceRecord, KeepsTheLinksClock) {
  DeviceRecord device(4);
  device.Add(Using(1, 0.1, At(0)), Millis(5), At(0));
  device.Add(Using(2, 0.1, At(1)), Millis(5), At(1));
  EXPECT_EQ(device.running()[1].uploaded, At(10));
  OngoingBatch gone;
  ASSERT_TRUE(device.Remove(BatchId{1}, At(8), At(7), gone));
  EXPECT_EQ(device.link_free(), At(12)) << "the first was 2 ms late, so the second will be";
  device.Add(Using(3, 0.1, At(20)), Millis(1), At(20));
  EXPECT_EQ(device.link_free(), At(21)) << "an idle link does not make up for lost time";
}

// Four wait one behind the other, and the first is 2 ms late: so is each of them, once, whatever
// they report in which order.
TEST(DeviceRecord, LatenessOnTheLinkCountsOnce) {
  const auto fill = [](DeviceRecord& device) {
    for (int i = 1; i <= 4; ++i)
      device.Add(Using(static_cast<std::uint64_t>(i), 0.1, At(0)), Millis(5), At(0));
    EXPECT_EQ(device.link_free(), At(20));
  };
  DeviceRecord in_order(4);
  fill(in_order);
  OngoingBatch gone;
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(in_order.Remove(BatchId{static_cast<std::uint64_t>(i)}, At(5 * i + 3),
                                At(5 * i + 2), gone));
    if (i > 1) {
      EXPECT_EQ(gone.uploaded, At(5 * i + 2)) << "batch " << i;
    }
    for (const OngoingBatch& batch : in_order.running()) {
      EXPECT_EQ(batch.uploaded, At(5 * static_cast<int>(batch.id.value()) + 2))
          << "batch " << batch.id.value() << " after " << i;
    }
    EXPECT_EQ(in_order.link_free(), At(22)) << "after " << i;
  }
  // The second ends before the first, whose report tells the third nothing new.
  DeviceRecord overtaken(4);
  fill(overtaken);
  ASSERT_TRUE(overtaken.Remove(BatchId{2}, At(13), At(12), gone));
  ASSERT_TRUE(overtaken.Remove(BatchId{1}, At(14), At(7), gone));
  ASSERT_EQ(overtaken.running().size(), 2u);
  EXPECT_EQ(overtaken.running()[0].uploaded, At(17));
  EXPECT_EQ(overtaken.running()[1].uploaded, At(22));
  EXPECT_EQ(overtaken.link_free(), At(22));
}

// The second came when the link should have been idle for 15 ms.
TEST(DeviceRecord, LatenessPassesToOneThatWaitsOnly) {
  for (const auto& [measured, second] : {std::pair{7, 22}, {21, 23}, {3, 22}}) {
    SCOPED_TRACE(measured);
    DeviceRecord device(4);
    device.Add(Using(1, 0.1, At(0)), Millis(5), At(0));
    device.Add(Using(2, 0.1, At(20)), Millis(2), At(20));
    OngoingBatch gone;
    ASSERT_TRUE(device.Remove(BatchId{1}, At(21), At(measured), gone));
    EXPECT_EQ(device.running()[0].uploaded, At(second));
    EXPECT_EQ(device.link_free(), At(second));
  }
}

// What failed or was stopped reports an upload of no length, or of half a one.
TEST(DeviceRecord, ABatchThatDidNotRunToItsEndSaysNothingOfTheLink) {
  DeviceRecord device(4);
  device.Add(Using(1, 0.1, At(0)), Millis(5), At(0));
  device.Add(Using(2, 0.1, At(1)), Millis(5), At(1));
  OngoingBatch gone;
  ASSERT_TRUE(device.Remove(BatchId{1}, At(2), std::nullopt, gone));
  EXPECT_EQ(gone.id, BatchId{1});
  EXPECT_EQ(device.link_free(), At(10));
  EXPECT_NEAR(device.total()[0], 0.1, 1e-12) << "and is gone all the same";
}

// The second came when the link should have been idle for 15 ms, and failed; the third waits for
// the link that it holds. What the first was late by is over by then, unless it is later than that.
TEST(DeviceRecord, AFailedBatchBehindAnIdleGapPassesOnWhatItWouldHaveWaited) {
  for (const auto& [measured, second] : {std::pair{7, 22}, {3, 22}, {21, 23}}) {
    for (const bool others : {false, true}) {
      SCOPED_TRACE(testing::Message() << measured << " ms, others: " << others);
      DeviceRecord device(4);
      device.Add(Using(1, 0.1, At(0)), Millis(5), At(0));
      device.Add(Using(2, 0.1, At(20)), Millis(2), At(20));
      OngoingBatch gone;
      ASSERT_TRUE(device.Remove(BatchId{2}, At(21), std::nullopt, gone));
      if (others) device.Add(Using(3, 0.1, At(21)), Millis(3), At(21));
      ASSERT_TRUE(device.Remove(BatchId{1}, At(21), At(measured), gone));
      EXPECT_EQ(device.link_free(), At(second + (others ? 3 : 0)));
      if (others) {
        EXPECT_EQ(device.running()[0].uploaded, At(second + 3));
      }
    }
  }
}

// The second and the fourth have reported, so the third waits for the second alone.
TEST(DeviceRecord, LatenessStopsAtWhatIsKnown) {
  DeviceRecord device(4);
  for (std::uint64_t i = 1; i <= 4; ++i) device.Add(Using(i, 0.1, At(0)), Millis(5), At(0));
  OngoingBatch gone;
  ASSERT_TRUE(device.Remove(BatchId{2}, At(13), At(12), gone));
  ASSERT_TRUE(device.Remove(BatchId{4}, At(24), At(23), gone));
  ASSERT_TRUE(device.Remove(BatchId{1}, At(25), At(7), gone));
  EXPECT_EQ(device.running()[0].uploaded, At(17));
  EXPECT_EQ(device.link_free(), At(23));
}

// All uploads that there ever were, each worked out from the one before it.
class PlainLink {
 public:
  void Add(std::uint64_t id, Duration transfer, TimePoint now) {
    uploads_.push_back({BatchId{id}, now, transfer, std::nullopt});
  }
  void Report(BatchId id, TimePoint uploaded) {
    for (Entry& upload : uploads_) {
      if (upload.id == id) upload.reported = uploaded;
    }
  }
  // When the input of `last` is there; of the last of all where it is none of them.
  TimePoint Uploaded(BatchId last) const {
    TimePoint free = kStart;
    for (const Entry& upload : uploads_) {
      free = upload.reported.value_or(std::max(free, upload.launched) + upload.transfer);
      if (upload.id == last) break;
    }
    return free;
  }

 private:
  struct Entry {
    BatchId id;
    TimePoint launched;
    Duration transfer;
    std::optional<TimePoint> reported;
  };
  std::vector<Entry> uploads_;
};

TEST(DeviceRecord, TheLinksClockIsThatOfAllItsUploads) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::Stream(seed, "link");
    const auto upto = [&](int most) { return static_cast<int>(rng.Uniform() * (most + 1)); };
    DeviceRecord device(5);
    PlainLink plain;
    TimePoint now = kStart;
    for (std::uint64_t id = 1; id <= 60; ++id) {
      now += Millis(upto(9));
      while (device.running().size() == 5 || (!device.running().empty() && upto(2) == 0)) {
        const auto i =
            static_cast<std::size_t>(upto(static_cast<int>(device.running().size()) - 1));
        const OngoingBatch ends = device.running()[i];
        OngoingBatch gone;
        if (upto(3) == 0) {
          ASSERT_TRUE(device.Remove(ends.id, now, std::nullopt, gone));
        } else {
          const TimePoint measured = ends.uploaded + Millis(upto(6) - 2);
          plain.Report(ends.id, measured);
          ASSERT_TRUE(device.Remove(ends.id, now, measured, gone));
        }
      }
      const Duration transfer = Millis(upto(6));
      device.Add(Using(id, 0.1, now), transfer, now);
      plain.Add(id, transfer, now);
      for (const OngoingBatch& batch : device.running()) {
        ASSERT_EQ(batch.uploaded, plain.Uploaded(batch.id)) << batch.id.value() << " of " << id;
      }
      ASSERT_EQ(device.link_free(), plain.Uploaded(BatchId{id}));
    }
  }
}

TEST(Throttle, RisesWithTimeAndFallsAtAMiss) {
  Throttle throttle({});
  EXPECT_DOUBLE_EQ(throttle.Cap(At(0)), 0.75);
  EXPECT_DOUBLE_EQ(throttle.Cap(At(99)), 0.75);
  EXPECT_DOUBLE_EQ(throttle.Cap(At(100)), 0.7525);
  EXPECT_DOUBLE_EQ(throttle.Cap(At(10'000)), 1);
  EXPECT_DOUBLE_EQ(throttle.Cap(At(1'000'000)), 1);
  throttle.Miss(At(50'050));
  EXPECT_DOUBLE_EQ(throttle.Cap(At(50'149)), 0.75);
  EXPECT_DOUBLE_EQ(throttle.Cap(At(50'250)), 0.755);
}

}  // namespace
}  // namespace tactus
