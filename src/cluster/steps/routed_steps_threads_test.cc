// RoutedSteps with many threads at once, over peers that are only played: calls that end inside
// Send, later on other threads, or never until they are stopped, while routes change and clients
// leave. Half of the calls are steps as one, which some peers do not know. Without this a call
// could be answered twice, never, or after the server has ended.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "cluster/steps/routed_steps.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

ModelSpec Played() {
  return {.name = "m",
          .inputs = {{"x", DataType::kUint8, {1}}},
          .outputs = {{"y", DataType::kUint8, {1}}},
          .exits = {{"1", {}, 0}}};
}

// Ends calls on a thread of its own, half of them only once they are stopped.
class PlayedPeer final : public Peer {
 public:
  explicit PlayedPeer(std::uint64_t seed) : chance_(Rng::Stream(seed, "peer")) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        EndSome();
        std::this_thread::yield();
      }
      EndSome();
    });
  }
  std::function<void()> Send(const InferCall& call, Duration,
                             std::function<void(PeerEnd&&)> done) override {
    auto held = std::make_shared<Held>();
    held->model = call.model;
    double drawn = 0;
    {
      const std::scoped_lock lock(mutex_);
      drawn = chance_.Uniform();
    }
    held->waits = drawn < 0.3;
    held->end = drawn < 0.5 ? Answered(*held) : Refused(drawn < 0.8);
    if (call.group != nullptr && drawn > 0.95) {
      held->end = {.reply = Fail(ErrorCode::kUnimplemented, "played")};
    }
    if (drawn > 0.9) {
      done(std::move(held->end));  // inside Send
      return [] {};
    }
    held->done = std::move(done);
    const std::scoped_lock lock(mutex_);
    held_.push_back(held);
    return [held] { held->stopped = true; };
  }
  Status Probe() override { return {}; }
  Expected<ModelSpec> Describe(const std::string&) override { return Played(); }

 private:
  struct Held {
    std::shared_ptr<const ModelSpec> model;
    PeerEnd end;
    std::function<void(PeerEnd&&)> done;
    bool waits = false;  // until it is stopped, or 200 looks long
    int looks = 0;
    std::atomic<bool> stopped{false};
  };
  static PeerEnd Answered(const Held& held) {
    InferReply reply;
    reply.model = held.model;
    return {.reply = std::move(reply)};
  }
  static PeerEnd Refused(bool away) {
    return {.reply = Fail(ErrorCode::kUnavailable, "played"), .away = away, .elsewhere = true};
  }
  void EndSome() {
    std::vector<std::shared_ptr<Held>> now;
    {
      const std::scoped_lock lock(mutex_);
      std::erase_if(held_, [&](const std::shared_ptr<Held>& each) {
        if (each->waits && !each->stopped && ++each->looks < 200) return false;
        now.push_back(each);
        return true;
      });
    }
    for (const auto& each : now) {
      const auto done = std::move(each->done);
      if (each->stopped) each->end = {.reply = Fail(ErrorCode::kCancelled, "stopped")};
      done(std::move(each->end));
    }
  }

  std::mutex mutex_;
  Rng chance_;                               // under the mutex
  std::vector<std::shared_ptr<Held>> held_;  // under the mutex
  std::jthread thread_;
};

// This node, which answers at once.
class Here final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return spec_;
  }
  CallId Infer(InferCall&& call) override {
    InferReply reply;
    reply.model = call.model;
    call.reply(std::move(reply));
    return 7;
  }

 private:
  std::shared_ptr<const ModelSpec> spec_ = std::make_shared<const ModelSpec>(Played());
};

constexpr int kThreads = 4;
constexpr int kCalls = 2000;  // of each

// Runs the call as a step by its route, or here.
std::shared_ptr<const StepGroup> GroupOver(RoutedSteps& steps, Here& here) {
  auto group = std::make_shared<StepGroup>();
  group->pipeline = "p";
  group->steps = {{"s", "m"}};
  group->run = [&](InferCall&& call, StepGroup::Where where) -> std::function<void()> {
    if (where == StepGroup::Where::kHere) {
      here.Infer(std::move(call));
      return [] {};
    }
    const CallId id = steps.Infer(std::move(call));
    return [&steps, id] { steps.Cancel(id); };
  };
  return group;
}

void RunClient(RoutedSteps& steps, const std::shared_ptr<const StepGroup>& group,
               std::vector<std::atomic<int>>& replies, int thread) {
  Rng chance = Rng::Stream(5, "client" + std::to_string(thread));
  for (int i = 0; i < kCalls; ++i) {
    InferCall call;
    call.model = *steps.Find("m", -1);
    call.received = std::chrono::steady_clock::now();
    call.limit.Tighten(Seconds(60));
    call.step = StepName{"p", "s"};
    if (chance.Uniform() < 0.5) call.group = group;
    std::atomic<int>& replied = replies[static_cast<std::size_t>(thread * kCalls + i)];
    call.reply = [&replied](InferReply&&) { ++replied; };
    const CallId id = steps.Infer(std::move(call));
    if (chance.Uniform() < 0.5) steps.Cancel(id);
  }
}

TEST(RoutedStepsThreads, EveryCallIsAnsweredOnceWhateverHappens) {
  std::vector<std::atomic<int>> replies(kThreads * kCalls);
  Here here;
  std::vector<std::shared_ptr<PlayedPeer>> peers;  // none ends on a thread of its own
  {
    RoutedSteps steps(here, {.connect = [&](const std::string&, const std::string&) {
                        peers.push_back(std::make_shared<PlayedPeer>(peers.size()));
                        return peers.back();
                      }});
    const auto group = GroupOver(steps, here);
    const auto follow = [&](int turn) {
      std::vector<WorkerTarget> to = {{"a", "a:" + std::to_string(turn % 3), 2, false},
                                      {"b", "b:1", 1, false}};
      if (turn % 2 == 0) to.push_back({"c", "", 1, true});
      steps.Follow({{1, static_cast<std::uint64_t>(turn)}, {{"p", "s", "m", std::move(to)}}});
    };
    follow(0);
    std::atomic<int> running{kThreads};
    std::vector<std::jthread> clients;
    for (int t = 0; t < kThreads; ++t) {
      clients.emplace_back([&, t] {
        RunClient(steps, group, replies, t);
        --running;
      });
    }
    for (int turn = 1; running > 0; ++turn) {
      follow(turn);
      steps.MeasureLinks();
      EXPECT_LE(steps.Remote().size(), 2u);
      std::this_thread::yield();
    }
    clients.clear();
    // What is still under way ends with the service.
  }
  for (std::size_t i = 0; i < replies.size(); ++i) EXPECT_EQ(replies[i], 1) << "call " << i;
}

}  // namespace
}  // namespace tactus
