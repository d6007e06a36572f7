// The quick version against the plain one: random lives with several devices and levels of
// priority, told to both, which must answer every question alike while both learn.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/batch.h"
#include "policies/strait/strait.h"
#include "policies/strait/strait_plain_for_test.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

class StraitLife {
 public:
  explicit StraitLife(std::uint64_t seed)
      : rng_(Rng::Stream(seed, "strait twins")),
        options_(Options()),
        plain_("plain", options_),
        quick_("quick", options_) {
    const std::size_t models = 1 + rng_.Below(8);
    for (std::size_t i = 0; i < models; ++i) AddModel();
    table_.profile = ProfileTable(1, table_.rows);
    table_.AddLanes(1 + static_cast<int>(rng_.Below(4)));
    for (Lane& lane : table_.lanes) {
      lane.slots = 1 + static_cast<int>(rng_.Below(4));
      lane.batches = FixedVector<RunningBatch>(lane.slots);
      if (rng_.Below(4) == 0) lane.serves = SomeModels();
    }
    load_ = 3 * rng_.Uniform();
    own_priorities_ = rng_.Below(2) == 0;
    plain_.Prepare(table_.view());
    quick_.Prepare(table_.view());
  }

  void Run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFailure(); ++i) {
      Happen();
      Settle();
    }
    EXPECT_EQ(plain_.Learned(), quick_.Learned());
    EXPECT_EQ(plain_.tail(), quick_.tail());
    EXPECT_EQ(plain_.examined(), quick_.examined());
  }
  int dispatches() const { return dispatches_; }
  int beside() const { return beside_; }  // launched where something ran already
  int drops() const { return drops_; }
  int under_the_cap() const { return under_the_cap_; }  // and not too much of the device
  int raised() const { return raised_; }  // launched, of a higher priority than their model's
  double tail() const { return quick_.tail(); }
  int waits() const { return waits_; }  // with requests waiting and a slot free

 private:
  StraitOptions Options() {
    StraitOptions options;
    const auto often = [&] { return rng_.Below(5) != 0; };
    options.ordered = often();
    options.meets = often();
    options.protects = often();
    options.capped = often();
    options.formation = 0.3 * rng_.Uniform();
    options.slack = 3 * rng_.Uniform();
    options.room = 2 * rng_.Uniform();
    options.throttle.least = 0.3 + 0.5 * rng_.Uniform();
    options.throttle.step = 0.05;
    options.tail_quantile = often() ? 0.5 + 0.5 * rng_.Uniform() : 0;
    options.starve = Millis(static_cast<int>(20 + rng_.Below(500)));
    return options;
  }
  ModelSet SomeModels() {
    ModelSet set = ModelSet::None(table_.models.size());
    for (std::size_t i = 0; i < table_.models.size(); ++i) {
      if (rng_.Below(2) == 0) set.Insert(TableForTest::M(i));
    }
    return set;
  }
  void AddModel() {
    const int largest = 1 + static_cast<int>(rng_.Below(8));
    table_.AddModel(Millis(static_cast<int>(8 + 10 * rng_.Below(4))),
                    Micros(static_cast<int>(rng_.Below(3000))),
                    Micros(static_cast<int>(200 + rng_.Below(800))), largest);
    table_.models.back().priority = 1 + static_cast<int>(rng_.Below(4));
    for (int b = 1; b <= largest; ++b) {
      ResourceUse use{.throughput = {}, .transfer = Micros(static_cast<int>(20 * b))};
      for (std::size_t r = 0; r < kResources; ++r) use.throughput[r] = 0.7 * rng_.Uniform();
      table_.rows.back().use.push_back(use);
    }
  }

  // Time passes; then requests come, or one is cancelled, or a batch ends.
  void Happen() {
    now_ += Duration{static_cast<std::int64_t>(rng_.Exponential(2e-6))};
    if (rng_.Below(300) == 0) now_ += Millis(static_cast<int>(rng_.Below(400)));  // a stall
    if (wake_ > now_ && wake_ < now_ + Millis(5) && rng_.Below(2) == 0) now_ = wake_;
    const std::uint64_t what = rng_.Below(100);
    if (what < 55) return Arrive();
    if (what < 58) return Cancel();
    Lane& lane = table_.lanes[rng_.Below(table_.lanes.size())];
    if (!lane.batches.empty()) End(lane, rng_.Below(lane.batches.size()));
  }
  void Arrive() {
    const std::size_t m = rng_.Below(table_.models.size());
    const auto count = static_cast<int>(load_ * rng_.Uniform() + 1);
    if (table_.queues[m].size() > 200) return;
    for (int i = 0; i < count; ++i) {
      const bool own = own_priorities_ && rng_.Below(4) == 0;
      const Request request{.id = RequestId{table_.next_id++},
                            .arrival = now_,
                            .deadline = now_ + table_.models[m].slo - Micros(rng_.Below(4000)),
                            .priority = own ? 1 + static_cast<std::uint32_t>(rng_.Below(6)) : 0};
      ASSERT_TRUE(table_.queues[m].Push(request));
      plain_.OnArrive(TableForTest::M(m), request);
      quick_.OnArrive(TableForTest::M(m), request);
    }
  }
  void Cancel() {
    const std::size_t m = rng_.Below(table_.models.size());
    RequestQueue& queue = table_.queues[m];
    if (queue.empty()) return;
    if (rng_.Below(2) == 0) return Pop(TableForTest::M(m), 1);  // expired, the dispatcher says
    ASSERT_TRUE(queue.Remove(queue[rng_.Below(queue.size())].id));
    plain_.OnQueueChange(TableForTest::M(m));
    quick_.OnQueueChange(TableForTest::M(m));
  }
  void End(Lane& lane, std::size_t i) {
    const RunningBatch batch = lane.batches[i];
    lane.batches.SwapErase(i);
    const BatchReport report{
        .started = batch.started,
        .ended = now_,
        .status = rng_.Below(20) == 0 ? BatchStatus::kFailed : BatchStatus::kOk,
        .upload = Micros(rng_.Below(100))};
    for (StraitRecords* policy : policies_) {
      policy->OnBatchDone(lane.id, batch, report, now_);
      policy->OnLaneChange(lane);
    }
  }
  void Pop(ModelId m, int count) {
    plain_.OnPopFront(m, count);
    quick_.OnPopFront(m, count);
    table_.queues[m.value()].PopFront(count);
  }

  void Settle() {
    for (;;) {
      const Decision expected = plain_.Decide(table_.view(), now_);
      ASSERT_EQ(quick_.Decide(table_.view(), now_), expected);
      if (const auto* wait = std::get_if<Wait>(&expected)) {
        ASSERT_GT(wait->until, now_);
        wake_ = wait->until;
        waits_ += FirstFreeLane(table_.lanes) != nullptr && wake_ != kNever ? 1 : 0;
        return;
      }
      if (const auto* drop = std::get_if<Drop>(&expected)) {
        ++drops_;
        Pop(drop->model, drop->count);
        continue;
      }
      CarryOut(std::get<Dispatch>(expected));
    }
  }
  void CarryOut(const Dispatch& d) {
    Lane& lane = table_.lanes[d.lane.value()];
    const RequestQueue& queue = table_.queues[d.model.value()];
    ASSERT_TRUE(lane.HasFreeSlot() && lane.serves.contains(d.model));
    ASSERT_EQ(queue.Batchable(d.batch), d.batch);
    const int priority = queue.Priority(d.batch, table_.models[d.model.value()].priority);
    raised_ += priority < table_.models[d.model.value()].priority ? 1 : 0;
    KeepsTheCap(lane, d, priority);
    ++dispatches_;
    beside_ += lane.batches.empty() ? 0 : 1;
    lane.batches.push_back({.id = BatchId{table_.next_id++},
                            .model = d.model,
                            .exit = d.exit,
                            .batch = d.batch,
                            .started = now_,
                            .deadline = queue.front().deadline,
                            .priority = priority});
    Pop(d.model, d.batch);
    plain_.OnLaneChange(lane);
    quick_.OnLaneChange(lane);
  }

  // Both versions could take a batch for a higher one than it is. One of a single request may be
  // there because its queue starves.
  void KeepsTheCap(const Lane& lane, const Dispatch& d, int priority) {
    int highest = table_.models[0].priority;
    for (const Model& model : table_.models) highest = std::min(highest, model.priority);
    if (!options_.capped || priority <= highest || d.batch == 1) return;
    const auto use = [&](ModelId m, int batch) {
      return table_.profile.Use(m, ExitId{0}, batch, lane.lane_class).throughput;
    };
    Throughput low = use(d.model, d.batch);
    bool others = false;
    for (const RunningBatch& batch : lane.running()) {
      if (batch.priority <= highest) continue;
      low = low + use(batch.model, batch.batch);
      others = true;
    }
    if (!others) return;
    ++under_the_cap_;
    EXPECT_LE(Peak(low), plain_.Cap(now_) + 1e-9);  // the sums may differ in their order
  }

  Rng rng_;
  TableForTest table_;
  StraitOptions options_;
  PlainStrait plain_;
  Strait quick_;
  std::vector<StraitRecords*> policies_ = {&plain_, &quick_};
  TimePoint now_ = kStart;
  TimePoint wake_ = kNever;
  double load_ = 1;
  bool own_priorities_ = false;
  int dispatches_ = 0;
  int beside_ = 0;
  int drops_ = 0;
  int waits_ = 0;
  int under_the_cap_ = 0;
  int raised_ = 0;
};

TEST(StraitTwins, DecideAlike) {
  int dispatches = 0;
  int beside = 0;
  int drops = 0;
  int waits = 0;
  int under_the_cap = 0;
  int raised = 0;
  int in_tail = 0;  // lives that learnt to fear more than what is expected
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StraitLife life(seed);
    life.Run(600);
    if (HasFailure()) return;
    dispatches += life.dispatches();
    beside += life.beside();
    drops += life.drops();
    waits += life.waits();
    under_the_cap += life.under_the_cap();
    raised += life.raised();
    in_tail += life.tail() > 1.5 ? 1 : 0;
  }
  // Else the lives would not reach what they are for.
  EXPECT_GT(dispatches, 20'000);
  EXPECT_GT(beside, 10'000);
  EXPECT_GT(drops, 10'000);
  EXPECT_GT(waits, 10'000);
  EXPECT_GT(under_the_cap, 50);
  EXPECT_GT(raised, 1'000);
  EXPECT_GT(in_tail, 20);
}

}  // namespace
}  // namespace tactus
