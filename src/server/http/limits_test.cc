// One client takes too much, or holds what others need: the others go on.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/access/client_limits.h"
#include "server/http/server_fixture_for_test.h"
#include "server/kserve/body_admission.h"
#include "server/kserve/compression.h"

namespace tactus {
namespace {

constexpr std::string_view kAskLive = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";

// One row of `numbers` numbers; several make a text that is long.
std::string Infer(std::size_t numbers = 1) {
  std::string data = "1";
  for (std::size_t i = 1; i < numbers; ++i) data += ",1";
  const std::string body =
      fmt::format(R"({{"inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","data":[{}]}}]}})",
                  numbers, data);
  return fmt::format(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

// The same, compressed.
std::string InferPacked(std::size_t numbers) {
  const std::string plain = Infer(numbers);
  const std::string body = plain.substr(plain.find("\r\n\r\n") + 4);
  const std::string packed = Deflate(Coding::kGzip, {{std::as_bytes(std::span(body))}});
  return fmt::format(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
      "Content-Length: {}\r\n\r\n{}",
      packed.size(), packed);
}

class LimitsTest : public ServerFixture {
 protected:
  void Limit(ClientLimitOptions options) {
    options_.limits = std::make_shared<ClientLimits>(options);
  }
};

TEST_F(LimitsTest, AnIdleConnectionMakesRoomForANewOne) {
  options_.max_connections = 3;
  std::promise<std::string> said;
  options_.warn = [&](const std::string& line) { said.set_value(line); };
  std::vector<std::unique_ptr<LoopbackClient>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(std::make_unique<LoopbackClient>(port()));
    EXPECT_EQ(idle.back()->Call(kAskLive).status, 200);
  }
  EXPECT_EQ(idle[0]->Call(kAskLive).status, 200);  // no longer the one that was silent for longest
  EXPECT_EQ(Call(kAskLive).status, 200);
  EXPECT_TRUE(idle[1]->AtEnd());
  EXPECT_EQ(said.get_future().get(),
            "HTTP: there are 3 connections, as many as may be: those without a request are closed "
            "for new ones, of 127.0.0.1 first");
  EXPECT_EQ(idle[0]->Call(kAskLive).status, 200);
  EXPECT_EQ(idle[2]->Call(kAskLive).status, 200);
}

TEST_F(LimitsTest, OneConnectionTooManyIsToldWhereAllAreBusy) {
  options_.max_connections = 1;
  std::promise<std::string> said;
  options_.warn = [&](const std::string& line) { said.set_value(line); };
  service_.Hold();
  LoopbackClient first(port());
  first.Send(Infer());
  service_.AwaitCalls(1);
  const auto response = LoopbackClient(port()).Receive();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
  EXPECT_TRUE(Contains(said.get_future().get(), "all are busy"));
  service_.Release();
  EXPECT_EQ(first.Receive().status, 200);
}

TEST_F(LimitsTest, AClientBeyondItsConnectionsIsTold) {
  Limit({.connections = 1});
  LoopbackClient first(port());
  EXPECT_EQ(first.Call(kAskLive).status, 200);
  const auto response = LoopbackClient(port()).Receive();
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
  EXPECT_TRUE(Contains(response.body, "1 connections"));
  EXPECT_EQ(first.Call(kAskLive).status, 200);
}

TEST_F(LimitsTest, AClientBeyondItsCallsIsToldAndHealthIsNoCall) {
  Limit({.calls = 1});
  service_.Hold();
  LoopbackClient first(port());
  first.Send(Infer());
  service_.AwaitCalls(1);
  const auto response = Call(Infer());
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
  EXPECT_EQ(Call(kAskLive).status, 200);
  service_.Release();
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(Call(Infer()).status, 200);
}

TEST_F(LimitsTest, AClientBeyondItsRateHearsHowLongToWait) {
  Limit({.rate = 0.01});
  EXPECT_EQ(Call(Infer()).status, 200);
  const auto response = Call(Infer());
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.fields.at("Retry-After"), "100");
}

// Without this metrics and the live page are green while clients are refused.
TEST_F(LimitsTest, EachCallThatIsRefusedIsCountedOnceByItsReason) {
  std::vector<std::string> reasons;
  options_.refused = [&](RefusalReason why) { reasons.emplace_back(Name(why)); };
  Limit({.rate = 3.0 / 3600});
  const auto told = [&](const std::string& call, int status) {
    EXPECT_EQ(LoopbackClient(port()).Call(call).status, status);
    return reasons.empty() ? std::string() : reasons.back();
  };
  EXPECT_EQ(
      told("POST /v2/models/none/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 404),
      "not_found");
  EXPECT_EQ(told(Infer(), 429), "client_limit") << "the rate has a burst of one call";
  EXPECT_EQ(told("GET /v2/models/none HTTP/1.1\r\nHost: x\r\n\r\n", 429), "client_limit");
  EXPECT_EQ(reasons.size(), 2u) << "the last was no inference call";
}

TEST_F(LimitsTest, ACallThatMakesNoSenseIsCounted) {
  std::vector<std::string> reasons;
  options_.refused = [&](RefusalReason why) { reasons.emplace_back(Name(why)); };
  std::string call = Infer();
  call.back() = '!';
  EXPECT_EQ(LoopbackClient(port()).Call(call).status, 400);
  EXPECT_EQ(reasons, std::vector<std::string>{"invalid_argument"});
  EXPECT_EQ(LoopbackClient(port()).Call(Infer()).status, 200);
  service_.FailWith({ErrorCode::kResourceExhausted, "no room"});
  EXPECT_EQ(LoopbackClient(port()).Call(Infer()).status, 503);
  EXPECT_EQ(reasons.size(), 1u) << "the service counts what it has had";
}

TEST_F(LimitsTest, BytesOfOneClientCountUntilTheyAreAnswered) {
  Limit({.bytes = 1'500});
  service_.Hold();
  LoopbackClient first(port());
  first.Send(Infer(500));
  service_.AwaitCalls(1);
  const auto response = Call(Infer(500));
  EXPECT_EQ(response.status, 429);
  EXPECT_TRUE(Contains(response.body, "as many bytes")) << response.body;
  EXPECT_EQ(Call(Infer(1000)).status, 413) << "more than it may ever have";
  service_.Release();
  EXPECT_EQ(first.Receive().status, 200);
  first.Close();
  EXPECT_EQ(options_.limits->options().bytes, 1'500u);
}

TEST_F(LimitsTest, WhatBecomesOfATextCountsUntilItsAnswerIsOut) {
  // The text has 40 kB; its tensor, and the answer's, 80 kB each. The compressed text has 100
  // bytes.
  Limit({.bytes = 300'000});
  service_.Hold();
  LoopbackClient first(port());
  first.Send(InferPacked(20'000));
  service_.AwaitCalls(1);
  LoopbackClient alone(port());
  alone.Send(InferPacked(20'000));  // beyond the limit, as the only one
  service_.AwaitCalls(2);
  const auto response = Call(InferPacked(20'000));
  EXPECT_EQ(response.status, 429) << response.body;
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
  service_.Release();
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(alone.Receive().status, 200);
  // A client may have its answer just before its bytes are given back. The connections keep some.
  while (options_.limits->all_bytes()->used() > 100'000) std::this_thread::yield();
  EXPECT_EQ(Call(InferPacked(20'000)).status, 200);
}

// Else a client that takes no answers may have all of the server's memory.
TEST_F(LimitsTest, AnswersThatAClientDoesNotTakeCountAsItsBytes) {
  constexpr std::size_t kAnswer = std::size_t{32} << 20;  // far more than sockets buffer
  Limit({.bytes = 3 * kAnswer / 2, .all_bytes = 4 * kAnswer});
  service_.AnswerWithBytes(kAnswer);
  const std::string body = R"({"inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[1]}],)"
                           R"("parameters":{"binary_data_output":true}})";
  const std::string ask = fmt::format(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
  const std::shared_ptr<ByteBudget> all = options_.limits->all_bytes();
  std::vector<std::unique_ptr<LoopbackClient>> slow;
  for (int i = 1; i <= 2; ++i) {
    slow.push_back(std::make_unique<LoopbackClient>(port()));
    slow.back()->Send(ask);
    while (all->used() < i * kAnswer) std::this_thread::yield();
  }
  const auto refused = Call(ask);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.fields.at("Retry-After"), "1");
  EXPECT_GT(slow[0]->Receive().body.size(), kAnswer) << "what has run is answered";
  slow.clear();
  while (all->used() >= kAnswer) std::this_thread::yield();
  EXPECT_EQ(Call(ask).status, 200);
  LoopbackClient(port()).Send(ask);  // and leaves without its answer
  while (all->used() >= kAnswer) std::this_thread::yield();
}

TEST_F(LimitsTest, HealthTakesNoBody) {
  EXPECT_EQ(Call("POST /v2/health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n").status,
            413);
  EXPECT_EQ(
      Call("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").status,
      413);
}

TEST_F(LimitsTest, ABodyUpToTheLimitFitsIntoTheBytesThatMayBeHeld) {
  // As 600 MB do into 1 GiB: a buffer that grows is not there twice.
  options_.max_body = 3'000'000;
  options_.max_pending_bytes = 3'000'000;
  EXPECT_EQ(Call(Infer(1'400'000)).status, 200);
}

TEST_F(LimitsTest, WhatTakesLongToReadHoldsUpNobody) {
  std::promise<void> reading, go_on;
  service_.BeginWith([&, once = std::make_shared<std::atomic<bool>>(false)] {
    if (once->exchange(true)) return;
    reading.set_value();
    go_on.get_future().wait();
  });
  LoopbackClient heavy(port());
  heavy.Send(Infer(50'000));
  reading.get_future().wait();
  EXPECT_EQ(Call(kAskLive).status, 200);  // on the one I/O thread that there is
  EXPECT_EQ(Call(Infer()).status, 200);
  go_on.set_value();
  EXPECT_EQ(heavy.Receive().status, 200);
}

// Else a server that is behind with reading would count late answers as met.
TEST_F(LimitsTest, ACallsTimeRunsAlsoWhileItWaitsToBeRead) {
  std::promise<void> reading, go_on;
  service_.BeginWith([&, once = std::make_shared<std::atomic<bool>>(false)] {
    if (once->exchange(true)) return;
    reading.set_value();
    go_on.get_future().wait();
  });
  LoopbackClient first(port()), second(port());
  first.Send(Infer(50'000));
  reading.get_future().wait();
  second.Send(Infer(50'000));
  // The I/O thread has taken the second body once it has served connections that came later.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Call(kAskLive).status, 200);
  const auto while_it_waited = std::chrono::steady_clock::now();
  go_on.set_value();
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(second.Receive().status, 200);
  EXPECT_LT(service_.last_received(), while_it_waited);
}

TEST_F(LimitsTest, AClientThatLeavesWhileItsBodyIsReadIsCancelled) {
  std::promise<void> reading, go_on;
  service_.Hold();
  service_.BeginWith([&] {
    reading.set_value();
    go_on.get_future().wait();
  });
  LoopbackClient heavy(port());
  heavy.Send(Infer(50'000));
  reading.get_future().wait();
  heavy.Reset();
  // The I/O thread has seen the end once it has served a connection that came later.
  EXPECT_EQ(Call(kAskLive).status, 200);
  go_on.set_value();
  service_.AwaitCancels(1);
}

TEST_F(LimitsTest, HealthIsServedBesideTheMetricsToo) {
  options_.port = 0;
  HttpServer page(
      options_, [] { return std::string("up 1\n"); }, &service_);
  const auto port = page.Start();
  ASSERT_TRUE(port.has_value());
  EXPECT_EQ(LoopbackClient(*port).Call(kAskLive).body, R"({"live":true})");
  EXPECT_EQ(LoopbackClient(*port).Call("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").body, "up 1\n");
}

// A call of 40 kB whose client waits for so long.
std::string Waiting(int ms, std::string_view field = "") {
  std::string call = Infer(20'000);
  call.insert(call.find("\r\n") + 2, fmt::format("x-request-timeout-ms: {}\r\n{}", ms, field));
  return call;
}

class UnreadTest : public LimitsTest {
 protected:
  // From now on a call is not read unless another ends.
  void Fill(LoopbackClient& client) {
    service_.FailWith({ErrorCode::kResourceExhausted, "no room"});
    EXPECT_EQ(client.Call(Waiting(1)).status, 503);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // its time is over
    for (int i = 0; i < static_cast<int>(BodyGate::kLeast); ++i) {
      EXPECT_EQ(client.Call(Waiting(3'600'000)).status, 503);
    }
    EXPECT_EQ(unread_, 0);
  }
  std::atomic<int> unread_ = 0;
};

TEST_F(UnreadTest, ACallIsRefusedByItsHeaderAndItsConnectionGoesOn) {
  options_.bodies = std::make_shared<BodyAdmission>([this] { ++unread_; });
  LoopbackClient client(port());
  Fill(client);
  const int seen = service_.calls();
  client.Send(Waiting(3'600'000) + Infer() + Waiting(3'600'000) + std::string(kAskLive));
  const auto refused = client.Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.fields.at("Retry-After"), "1");
  EXPECT_TRUE(Contains(refused.body, "before its body was read")) << refused.body;
  EXPECT_TRUE(Contains(client.Receive().body, "no room"));  // a small call is read
  EXPECT_TRUE(Contains(client.Receive().body, "before its body was read"));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(service_.calls(), seen + 1);
  EXPECT_EQ(unread_, 2);
}

TEST_F(UnreadTest, AClientThatAsksFirstHearsItBeforeItSendsTheBody) {
  options_.bodies = std::make_shared<BodyAdmission>([this] { ++unread_; });
  LoopbackClient first(port());
  Fill(first);
  LoopbackClient client(port());
  const std::string call = Waiting(3'600'000, "Expect: 100-continue\r\n");
  client.Send(call.substr(0, call.find("\r\n\r\n") + 4));
  EXPECT_EQ(client.Receive().status, 503);
  EXPECT_TRUE(client.AtEnd());
  EXPECT_EQ(unread_, 1);
}

TEST_F(UnreadTest, AClientThatLeavesWithItsBodyGivesItsPlaceBack) {
  options_.bodies = std::make_shared<BodyAdmission>([this] { ++unread_; });
  LoopbackClient first(port());
  service_.FailWith({ErrorCode::kResourceExhausted, "no room"});
  EXPECT_EQ(first.Call(Waiting(1)).status, 503);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::string call = Waiting(3'600'000);
  for (int i = 0; i < 3 * static_cast<int>(BodyGate::kLeast); ++i) {
    LoopbackClient client(port());
    client.Send(call.substr(0, 10'000));
    client.Reset();
    // The I/O thread has seen the end once it has served a connection that came later.
    EXPECT_EQ(Call(kAskLive).status, 200);
  }
  EXPECT_TRUE(Contains(Call(call).body, "no room"));
  EXPECT_EQ(unread_, 0);
}

}  // namespace
}  // namespace tactus
