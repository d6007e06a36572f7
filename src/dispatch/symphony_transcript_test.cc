// The worked examples of Symphony, Section 3.3, as transcripts: three lanes, one model with
// l(b) = b + 5 units, SLO 12, request R_i at 0.75 (i - 1). A unit is a millisecond here.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/dispatcher.h"
#include "policies/registry.h"

namespace tactus {
namespace {

struct Start {
  TimePoint at;
  int lane;
  std::vector<int> requests;
};

// Defers until `from`, then dispatches eagerly: how the example begins from a good rhythm.
class EagerFrom : public Policy {
 public:
  explicit EagerFrom(TimePoint from)
      : Policy({.name = "eager-from"}),
        from_(from),
        deferred_(MakePolicy("symphony:gather=prefix,lead=0").value()),
        eager_(MakePolicy("symphony:when=eager,gather=prefix").value()) {}
  void Prepare(const View& view) override {
    deferred_->Prepare(view);
    eager_->Prepare(view);
  }
  void OnArrive(ModelId m, const Request& r) override {
    deferred_->OnArrive(m, r);
    eager_->OnArrive(m, r);
  }
  void OnPopFront(ModelId m, int count) override {
    deferred_->OnPopFront(m, count);
    eager_->OnPopFront(m, count);
  }
  void OnLaneChange(const Lane& lane) override {
    deferred_->OnLaneChange(lane);
    eager_->OnLaneChange(lane);
  }
  Decision Decide(const View& view, TimePoint now) override {
    return (now < from_ ? deferred_ : eager_)->Decide(view, now);
  }

 private:
  const TimePoint from_;
  const std::unique_ptr<Policy> deferred_;
  const std::unique_ptr<Policy> eager_;
};

// Runs arrivals through a dispatcher in virtual time and keeps what it did.
class Transcript : public Outbox {
 public:
  explicit Transcript(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {
    ProfileTable::ModelRows rows{.exits = 1, .max_batch = 16, .latency = {}};
    for (int b = 1; b <= 16; ++b) rows.latency.push_back(Millis(b + 5));
    auto served_models = std::make_shared<ServedModels>();
    served_models->models = {
        {.name = "m", .slo = Millis(12), .max_batch = 16, .exits = {{.name = "final"}}}};
    served_models->profile = ProfileTable(1, {{rows}});
    dispatcher_ = std::make_unique<Dispatcher>(DispatcherOptions{.expiry = Expiry::kNever},
                                               std::vector<LaneSpec>(3), *policy_, *this);
    dispatcher_->Configure(served_models);
  }

  void Run(const std::vector<int>& requests) {
    std::size_t next = 0;
    TimePoint wake = kNever;
    while (next < requests.size() || !ends_.empty() || wake != kNever) {
      const TimePoint arrival = next < requests.size() ? ArrivalOf(requests[next]) : kNever;
      const TimePoint end = ends_.empty() ? kNever : ends_.begin()->first;
      const TimePoint now = std::min({arrival, end, wake});
      while (!ends_.empty() && ends_.begin()->first == now) {
        const Batch batch = ends_.begin()->second;
        ends_.erase(ends_.begin());
        dispatcher_->Finish(batch.lane, batch.id, {.started = batch.start, .ended = now}, now);
      }
      if (arrival == now) {
        const int r = requests[next++];
        dispatcher_->Arrive(ModelId{0}, {.id = RequestId{static_cast<std::uint64_t>(r)},
                                         .arrival = now,
                                         .deadline = now + Millis(12)});
      }
      wake = dispatcher_->Step(now);
    }
  }

  const std::vector<Start>& starts() const { return starts_; }
  const std::vector<int>& dropped() const { return dropped_; }

 private:
  static TimePoint ArrivalOf(int r) { return kStart + Micros(750 * (r - 1)); }

  void Launch(const Batch& batch) override {
    Start start{batch.start, static_cast<int>(batch.lane.value()), {}};
    for (const Request& r : batch.requests) {
      start.requests.push_back(static_cast<int>(r.id.value()));
      EXPECT_LE(batch.expected_end, r.deadline) << "R" << r.id.value() << " is late";
    }
    starts_.push_back(start);
    ends_.emplace(batch.expected_end, batch);
  }
  void Abort(LaneId, BatchId) override { FAIL() << "nothing is preempted"; }
  void Reject(ModelId, const Request& r, DropReason) override {
    dropped_.push_back(static_cast<int>(r.id.value()));
  }
  void Complete(const Batch&, const BatchReport&) override {}

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::multimap<TimePoint, Batch> ends_;
  std::vector<Start> starts_;
  std::vector<int> dropped_;
};

std::vector<int> Requests(int last, std::vector<int> missing = {}) {
  std::vector<int> requests;
  for (int r = 1; r <= last; ++r) {
    if (std::find(missing.begin(), missing.end(), r) == missing.end()) requests.push_back(r);
  }
  return requests;
}

// Frontrun of {R1..R4} is 12 - l(5) = 2, already past when R4 arrives: it goes at once, and the
// lanes take turns with batches of four from then on.
TEST(SymphonyTranscript, DeferralFormsStaggeredBatchesOfFour) {
  Transcript transcript(MakePolicy("symphony:gather=prefix,lead=0").value());
  transcript.Run(Requests(48));
  ASSERT_GE(transcript.starts().size(), 9u);
  EXPECT_EQ(transcript.starts()[0].at, kStart + Micros(2250));
  EXPECT_EQ(transcript.starts()[0].requests, (std::vector<int>{1, 2, 3, 4}));
  for (int i = 0; i < 9; ++i) {
    const Start& start = transcript.starts()[i];
    EXPECT_EQ(start.requests.size(), 4u) << "batch " << i;
    EXPECT_EQ(start.lane, i % 3) << "batch " << i;
    EXPECT_EQ(start.at, kStart + Micros(2250 + 3000 * i)) << "batch " << i;
  }
  EXPECT_TRUE(transcript.dropped().empty());
}

// R13 to R15 never come. Deferral lets lanes idle for a moment and finds its rhythm again.
TEST(SymphonyTranscript, DeferralRegainsItsRhythmAfterMissingRequests) {
  Transcript transcript(MakePolicy("symphony:gather=prefix,lead=0").value());
  transcript.Run(Requests(120, {13, 14, 15}));
  EXPECT_TRUE(transcript.dropped().empty());
  const auto& starts = transcript.starts();
  const auto later = std::find_if(starts.begin(), starts.end(), [](const Start& s) {
    return s.at >= kStart + Millis(30) && s.requests.size() == 4;
  });
  ASSERT_NE(later, starts.end());
  for (auto s = later; s != starts.end() - 1; ++s) EXPECT_EQ(s->requests.size(), 4u);
}

// The same gap under eager dispatch: R16 goes alone the moment that it comes, batches shrink until
// requests are lost, the paper's R35, R37 and R38 first.
TEST(SymphonyTranscript, EagerDispatchDeterioratesAfterMissingRequests) {
  Transcript transcript(std::make_unique<EagerFrom>(kStart + Micros(11250)));
  transcript.Run(Requests(120, {13, 14, 15}));
  const auto& starts = transcript.starts();
  ASSERT_GE(starts.size(), 7u);
  EXPECT_EQ(starts[3].requests, (std::vector<int>{16}));
  EXPECT_EQ(starts[4].requests.size(), 4u);
  EXPECT_EQ(starts[5].requests.size(), 4u);
  EXPECT_EQ(starts[6].at, kStart + Millis(18));
  EXPECT_EQ(starts[6].requests, (std::vector<int>{25}));
  ASSERT_GE(transcript.dropped().size(), 3u);
  EXPECT_EQ(std::vector<int>(transcript.dropped().begin(), transcript.dropped().begin() + 3),
            (std::vector<int>{35, 37, 38}));
}

}  // namespace
}  // namespace tactus
