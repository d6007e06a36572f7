// A site over real sockets in one process: two schedulers, two workers and a front end. One call of
// several rows after the other from several threads, while the leader stops and a worker goes.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "cluster/site/front_end.h"
#include "cluster/site/scheduler_server.h"
#include "cluster/site/worker.h"
#include "cluster/tls/authority.h"
#include "engines/engine_shelf.h"
#include "policies/registry.h"
#include "server/access/access.h"
#include "server/grpc/grpc_server.h"

namespace tactus {
namespace {

ModelSpec Echo() {
  return {.name = "echo",
          .platform = "identity",
          .max_batch = 8,
          .slo = Seconds(20),
          .inputs = {{"x", DataType::kFp32, {-1, 2}}},
          .outputs = {{"y", DataType::kFp32, {-1, 2}}},
          .exits = {{"1", {}, 0}}};
}

std::unique_ptr<SchedulerServer> StartScheduler(std::vector<std::string> all, std::uint32_t rank,
                                                PeerTls tls = {}) {
  SchedulerServer::Options options;
  options.tls = std::move(tls);
  options.rank = rank;
  options.port = static_cast<std::uint16_t>(std::stoi(all[rank].substr(all[rank].find(':') + 1)));
  options.schedulers = std::move(all);
  options.policy = [] { return *MakePolicy("horizon"); };
  options.takeover.suspect = Seconds(2);  // a busy machine is no silence
  auto server = std::make_unique<SchedulerServer>(std::move(options));
  EXPECT_TRUE(server->Start());
  return server;
}

// Ports that were free a moment ago.
std::vector<std::string> FreePlaces(int count) {
  std::vector<std::string> places;
  std::vector<std::unique_ptr<SchedulerServer>> taken;
  for (int i = 0; i < count; ++i) {
    SchedulerServer::Options options;
    options.policy = [] { return *MakePolicy("horizon"); };
    taken.push_back(std::make_unique<SchedulerServer>(std::move(options)));
    places.push_back("127.0.0.1:" + std::to_string(taken.back()->Start().value()));
  }
  return places;
}

// A worker as `tactus serve` is one.
struct OneWorker {
  OneWorker(std::vector<std::string> schedulers, std::string name, PeerTls tls = {},
            std::shared_ptr<const Access> access = nullptr)
      : site({.schedulers = std::move(schedulers),
              .tls = tls,
              .name = std::move(name),
              .lanes = 2,
              .say = {}}),
        engines("", {}),
        runtime(
            {.lanes = 2, .pin = false},
            {.policy = site.MakePolicy(*MakePolicy("horizon")),
             .engine_for = [this](std::string_view platform) { return engines.For(platform); },
             .place_granted = [this](const GrantedPart& part,
                                     TimePoint deadline) { return site.Place(part, deadline); }}),
        grpc(GrpcOptions{.port = 0, .access = std::move(access), .takes_granted = true}, runtime) {
    runtime.Start();
    EXPECT_TRUE(runtime.Serve(Echo()));
    site.Start(runtime, "127.0.0.1:" + std::to_string(grpc.Start().value()));
  }
  ~OneWorker() {
    site.Stop();
    grpc.Stop(std::chrono::milliseconds(0));
    runtime.Stop({});
  }
  SiteWorker site;
  EngineShelf engines;
  Runtime runtime;
  GrpcServer grpc;
};

// Two rows there and back; whether they are what was sent.
bool Call(Runtime& service, int value) {
  const auto model = service.Find("echo", -1);
  if (!model) return false;
  auto bytes = std::make_shared<std::vector<float>>(
      std::vector<float>{static_cast<float>(value), 1, static_cast<float>(-value), 2});
  std::mutex mutex;
  std::condition_variable changed;
  int replies = 0;
  bool fine = false;
  InferCall call;
  call.model = *model;
  call.inputs = {{"x", DataType::kFp32, {2, 2}, std::as_bytes(std::span(*bytes))}};
  call.keepalive = bytes;
  call.received = std::chrono::steady_clock::now();
  call.reply = [&](InferReply&& reply) {
    std::vector<float> back(4);
    std::size_t at = 0;
    for (const OutputTensor& output : reply.outputs) {
      for (const auto part : output.parts) {
        if (at + part.size() > sizeof(float) * back.size()) break;
        std::memcpy(reinterpret_cast<std::byte*>(back.data()) + at, part.data(), part.size());
        at += part.size();
      }
    }
    const std::lock_guard lock(mutex);
    fine = reply.status.has_value() && at == 16 && back == *bytes;
    EXPECT_TRUE(reply.status) << (reply.status ? "" : reply.status.error().message);
    ++replies;
    changed.notify_all();
  };
  service.Infer(std::move(call));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return replies > 0; });
  return fine && replies == 1;
}

TEST(SiteGrpcTest, AnswersWhileALeaderStopsAndAWorkerGoes) {
  const std::vector<std::string> places = FreePlaces(2);
  std::unique_ptr<SchedulerServer> schedulers[] = {StartScheduler(places, 0),
                                                   StartScheduler(places, 1)};
  OneWorker first(places, "first");
  auto second = std::make_unique<OneWorker>(places, "second");
  SiteFrontEnd front_end({.schedulers = places, .workers = 4, .say = {}});
  front_end.Start();
  ASSERT_TRUE(front_end.AwaitModels(Seconds(60)));
  std::atomic<int> asked{0};
  std::atomic<int> fine{0};
  constexpr int kCalls = 400;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int call = asked++; call < kCalls; call = asked++) {
        if (Call(front_end.runtime(), call)) ++fine;
      }
    });
  }
  while (asked < kCalls / 3) std::this_thread::yield();
  for (auto& scheduler : schedulers) {
    if (!scheduler->reading().leads) continue;
    scheduler.reset();  // in order, so that its connections close at once
    break;
  }
  while (asked < 2 * kCalls / 3) std::this_thread::yield();
  second.reset();
  clients.clear();
  EXPECT_EQ(fine, kCalls);
  front_end.Stop();
}

// Strangers are turned away before there is a stream: cluster/tls/peer_tls_test.cc.
TEST(SiteGrpcTest, AWorkerIsOfTheNodeThatItsCertificateNames) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeAuthority(folder.path() / "authority", {"localhost"}));
  const auto node = [&](const std::string& name) {
    EXPECT_TRUE(MakeNode(folder.path() / "authority", name, folder.path() / name));
    return *PeerTls::Open(folder.path() / name);
  };
  const PeerTls a = node("a");
  const PeerTls b = node("b");
  const std::vector<std::string> places = FreePlaces(1);
  const auto scheduler = StartScheduler(places, 0, a);
  const std::filesystem::path files = folder.path() / "b";
  const auto access = *Access::Open(
      {.tls = {files / "node.pem", files / "node.key", files / "authority.pem"}, .tokens = {}},
      [](const std::string&) {});
  const OneWorker liar(places, "a/2", b, access);
  const OneWorker worker(places, "b/1", b, access);
  SiteFrontEnd front_end({.schedulers = places, .tls = a, .workers = 4, .say = {}});
  front_end.Start();
  ASSERT_TRUE(front_end.AwaitModels(Seconds(60)));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Call(front_end.runtime(), i));
  SiteReading reading = scheduler->reading();
  for (; reading.workers.empty(); reading = scheduler->reading()) std::this_thread::yield();
  ASSERT_EQ(reading.workers.size(), 1u);
  EXPECT_EQ(reading.workers[0].name, "b/1");
  front_end.Stop();
}

// Its operator would wait for it in vain, and nothing would say why.
TEST(SiteGrpcTest, AProcessThatNoSchedulerAnswersSaysWhyOnceAndThatItIsOver) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeAuthority(folder.path() / "authority", {"localhost"}));
  ASSERT_TRUE(MakeNode(folder.path() / "authority", "a", folder.path() / "a"));
  const PeerTls a = *PeerTls::Open(folder.path() / "a");
  const std::vector<std::string> places = FreePlaces(1);
  auto scheduler = StartScheduler(places, 0, a);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> said;
  const auto say = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    said.push_back(line);
    changed.notify_all();
  };
  const auto await = [&](std::size_t lines) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return said.size() >= lines; });
    return said;
  };
  SiteFrontEnd front_end({.schedulers = places, .tls = {}, .workers = 4, .say = say});
  front_end.Start();
  ASSERT_EQ(await(1).size(), 1u) << "it has no certificate";
  EXPECT_THAT(said[0], ::testing::HasSubstr(places[0] + " does not answer: "));
  EXPECT_THAT(said[0], ::testing::HasSubstr("do both ends have --peer-tls"));
  scheduler.reset();
  scheduler = StartScheduler(places, 0);
  ASSERT_EQ(await(2).size(), 2u);
  EXPECT_EQ(said[1], places[0] + " answers again");
  front_end.Stop();
}

}  // namespace
}  // namespace tactus
