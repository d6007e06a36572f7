// Clients that are slow, rude, hasty or gone.
#include <future>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/http/server_fixture_for_test.h"

namespace tactus {
namespace {

constexpr std::string_view kLive = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";

std::string Infer(std::string_view id) {
  const std::string body = fmt::format(
      R"({{"id":"{}","inputs":[{{"name":"x","shape":[1,1],"datatype":"FP32","data":[1]}}]}})", id);
  return fmt::format(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

class ConnectionTest : public ServerFixture {};

TEST_F(ConnectionTest, PipelinedRequestsAreAnsweredInOrder) {
  LoopbackClient client(port());
  std::string all;
  for (int i = 0; i < 300; ++i) all += Infer(std::to_string(i));
  // More than the server's buffer holds, so the sender must be able to wait.
  std::thread sender([&] { client.Send(all); });
  for (int i = 0; i < 300; ++i) {
    const auto response = client.Receive();
    ASSERT_EQ(response.status, 200);
    EXPECT_TRUE(Contains(response.body, fmt::format(R"("id":"{}")", i))) << response.body;
  }
  sender.join();
}

TEST_F(ConnectionTest, ARequestMayArriveByteByByte) {
  LoopbackClient client(port());
  for (const char c : Infer("slow")) ASSERT_TRUE(client.Send({&c, 1}));
  EXPECT_EQ(client.Receive().status, 200);
}

TEST_F(ConnectionTest, AChunkedBody) {
  const std::string request = Infer("chunks");
  const std::size_t head = request.find("\r\n\r\n") + 4;
  const std::string body = request.substr(head);
  LoopbackClient client(port());
  client.Send(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (std::size_t i = 0; i < body.size(); i += 10) {
    const std::string chunk = body.substr(i, 10);
    client.Send(fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk));
  }
  client.Send("0\r\n\r\n");
  EXPECT_TRUE(Contains(client.Receive().body, R"("id":"chunks")"));
  EXPECT_EQ(client.Call(kLive).status, 200);
}

TEST_F(ConnectionTest, AClientThatLeavesFreesItsPlace) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("gone"));
  service_.AwaitCalls(1);
  client.Reset();
  service_.AwaitCancels(1);
  // The server goes on for others.
  EXPECT_EQ(LoopbackClient(port()).Call(kLive).status, 200);
  service_.Release();
}

TEST_F(ConnectionTest, AClientThatClosesFreesItsPlace) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("gone"));
  service_.AwaitCalls(1);
  client.Close();
  service_.AwaitCancels(1);
  service_.Release();
}

TEST_F(ConnectionTest, AClientThatLeavesBehindAPipelinedRequestIsNoticedToo) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("first") + Infer("second"));
  service_.AwaitCalls(1);
  client.Reset();
  service_.AwaitCancels(1);
  EXPECT_EQ(service_.calls(), 1);
  service_.Release();
}

// Without these whoever says all and then listens, as nc -N does, hears nothing.
TEST_F(ConnectionTest, AClientThatHasSaidAllHasItsAnswers) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("first") + Infer("second") + Infer("third"));
  client.CloseSending();
  service_.AwaitCalls(1);
  // The I/O thread has seen the end once it has served a connection that came later.
  EXPECT_EQ(LoopbackClient(port()).Call(kLive).status, 200);
  service_.Release();
  for (const char* id : {"first", "second", "third"}) {
    const auto response = client.Receive();
    ASSERT_EQ(response.status, 200);
    EXPECT_TRUE(Contains(response.body, fmt::format(R"("id":"{}")", id))) << response.body;
  }
  EXPECT_TRUE(client.AtEnd());
  EXPECT_EQ(service_.cancels(), 0);
}

TEST_F(ConnectionTest, ALargeAnswerReachesAClientThatHasSaidAll) {
  options_.max_body = std::size_t{64} << 20;
  std::string data = "1";
  for (int i = 1; i < 300'000; ++i) data += ",1";
  const std::string body = fmt::format(
      R"({{"inputs":[{{"name":"x","shape":[1,300000],"datatype":"FP32","data":[{}]}}]}})", data);
  LoopbackClient client(port());
  client.Send(fmt::format(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body));
  client.CloseSending();
  const auto response = client.Receive();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(std::to_string(response.body.size()), response.fields.at("Content-Length"));
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(ConnectionTest, AClientThatHasSaidAllAndIsLostIsNoticed) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("gone"));
  client.CloseSending();
  service_.AwaitCalls(1);
  EXPECT_EQ(LoopbackClient(port()).Call(kLive).status, 200);
  client.Reset();
  service_.AwaitCancels(1);
  service_.Release();
}

TEST_F(ConnectionTest, AnEmptyLineBeforeARequestIsSkipped) {
  LoopbackClient client(port());
  EXPECT_EQ(client.Call("\r\n" + Infer("a")).status, 200);
  client.Send(Infer("b") + "\r");
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(client.Call("\n" + std::string(kLive)).status, 200);
  EXPECT_EQ(client.Call("\r\n\r\n" + std::string(kLive)).status, 400) << "one, and no more";
}

TEST_F(ConnectionTest, TrailersThatAreTooLargeHaveAnAnswer) {
  options_.max_header = 1000;
  LoopbackClient client(port());
  client.Send(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\n{}\r\n0\r\nX: " +
      std::string(10'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 431);
}

TEST_F(ConnectionTest, ATruncatedBodyIsNotACall) {
  LoopbackClient client(port());
  const std::string request = Infer("half");
  client.Send(request.substr(0, request.size() - 5));
  client.Close();
  EXPECT_EQ(LoopbackClient(port()).Call(kLive).status, 200);
  server_->Stop(std::chrono::milliseconds(0));
  EXPECT_EQ(service_.calls(), 0);
}

TEST_F(ConnectionTest, ASlowHeadAndASlowBodyAreGivenUp) {
  options_.head_timeout = options_.body_timeout = std::chrono::milliseconds(50);
  LoopbackClient head(port());
  head.Send("GET /v2/health");
  EXPECT_EQ(head.Receive().status, 408);
  EXPECT_TRUE(head.AtEnd());
  LoopbackClient body(port());
  body.Send("POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(body.Receive().status, 408);
}

TEST_F(ConnectionTest, AnIdleConnectionIsClosedWithoutAWord) {
  options_.idle_timeout = std::chrono::milliseconds(50);
  LoopbackClient client(port());
  EXPECT_EQ(client.Call(kLive).status, 200);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(ConnectionTest, AnOversizedBodyIsRefusedBeforeItIsSent) {
  options_.max_body = 1000;
  LoopbackClient client(port());
  client.Send("POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  const auto response = client.Receive();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.fields.at("Connection"), "close");
  EXPECT_TRUE(Contains(response.body, "1000 bytes; send less, or raise the server's --max-body"));
  // Chunks say their sizes one at a time.
  LoopbackClient chunks(port());
  chunks.Send(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  chunks.Send("3e9\r\n" + std::string(1001, ' ') + "\r\n");
  EXPECT_EQ(chunks.Receive().status, 413);
}

TEST_F(ConnectionTest, AClientThatSendsOnHearsTheRefusal) {
  options_.max_body = 1000;
  LoopbackClient client(port());
  client.Send(
      "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  client.Send(std::string(5'000'000, 'x'));
  EXPECT_EQ(client.Receive().status, 413);
}

TEST_F(ConnectionTest, BytesInMemoryAreBounded) {
  options_.max_pending_bytes = 10'000;
  const auto post = [](int length) {
    return fmt::format(
        "POST /v2/models/series/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n"
        "Expect: 100-continue\r\n\r\n",
        length);
  };
  LoopbackClient first(port());
  first.Send(post(8000));
  EXPECT_TRUE(first.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 100"));  // it has its room
  EXPECT_EQ(LoopbackClient(port()).Call(post(20'000)).status, 413) << "later would not help";
  const auto response = LoopbackClient(port()).Call(post(8000));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
}

TEST_F(ConnectionTest, AnOversizedHeadIsRefused) {
  LoopbackClient client(port());
  client.Send("GET /v2 HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 431);
}

TEST_F(ConnectionTest, GarbageIsRefusedAndTheConnectionEnds) {
  for (const std::string_view garbage :
       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls hello\r\n\r\n", "hello\r\n\r\n",
        "GET /v2 HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        "POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    LoopbackClient client(port());
    const auto response = client.Call(garbage);
    EXPECT_EQ(response.status, 400) << garbage;
    EXPECT_TRUE(Contains(response.body, R"({"error":")"));
    EXPECT_TRUE(client.AtEnd());
  }
  EXPECT_EQ(LoopbackClient(port()).Call("GET /v2 HTTP/2.0\r\n\r\n").status, 505);
}

TEST_F(ConnectionTest, ABodyWhoseEndIsInDoubtHidesNoSecondRequest) {
  const struct {
    std::string_view fields;
    int status;
  } rows[] = {{"Transfer-Encoding: xchunked\r\n", 400},
              {"Transfer-Encoding: identity\r\n", 400},
              {"Transfer-Encoding: chunked, gzip\r\n", 400},
              {"Transfer-Encoding: gzip, chunked\r\n", 501},
              {"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", 400},
              {"Transfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n", 501},
              {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
              {"Transfer-Encoding: chunked\r\nTransfer-Encoding: xchunked\r\n", 400}};
  for (const auto& row : rows) {
    LoopbackClient client(port());
    // Whoever takes it for no body answers twice.
    const auto response = client.Call(fmt::format(
        "POST /v2/repository/index HTTP/1.1\r\nHost: x\r\n{}\r\n{}", row.fields, kLive));
    EXPECT_EQ(response.status, row.status) << row.fields;
    EXPECT_TRUE(client.AtEnd()) << row.fields;
  }
  LoopbackClient old(port());
  EXPECT_EQ(old.Call("POST /v2 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status,
            400);
  EXPECT_TRUE(old.AtEnd());
}

TEST_F(ConnectionTest, ARequestSaysOnceWhichHostItMeans) {
  for (const std::string_view head :
       {"GET /v2/health/live HTTP/1.1\r\n\r\n",
        "GET /v2/health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"}) {
    LoopbackClient client(port());
    EXPECT_EQ(client.Call(head).status, 400) << head;
    EXPECT_TRUE(client.AtEnd()) << head;
  }
}

TEST_F(ConnectionTest, ATargetMayNameTheServerAsForAProxy) {
  LoopbackClient client(port());
  for (const std::string_view target :
       {"http://x:8000/v2/health/live", "HTTPS://x/v2/health/live?verbose"}) {
    const auto response = client.Call(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target));
    EXPECT_EQ(response.body, R"({"live":true})") << target;
  }
  for (const std::string_view target : {"http://x", "http://x?v2", "ftp://x/v2/health/live"}) {
    EXPECT_EQ(client.Call(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target)).status, 404)
        << target;
  }
}

TEST_F(ConnectionTest, ExpectContinueIsMet) {
  LoopbackClient client(port());
  const std::string request = Infer("asks");
  const std::size_t head = request.find("\r\n\r\n");
  client.Send(request.substr(0, head) + "\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(request.substr(head + 4));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(LoopbackClient(port())
                .Call("POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: tea\r\n\r\n")
                .status,
            417);
}

// The client waits for as long.
TEST_F(ConnectionTest, TheTimeOfACallBeginsWithItsHeader) {
  LoopbackClient client(port());
  const std::string request = Infer("asks");
  const std::size_t head = request.find("\r\n\r\n");
  for (int i = 0; i < 2; ++i) {  // also of a second request of the connection
    client.Send(request.substr(0, head) + "\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    const auto between = std::chrono::steady_clock::now();
    client.Send(request.substr(head + 4));
    EXPECT_EQ(client.Receive().status, 200);
    EXPECT_LT(service_.last_received(), between);
  }
}

TEST_F(ConnectionTest, ConnectionsEndWhenTheClientAsks) {
  LoopbackClient close(port());
  EXPECT_EQ(
      close.Call("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").status,
      200);
  EXPECT_TRUE(close.AtEnd());
  LoopbackClient old(port());
  EXPECT_EQ(old.Call("GET /v2/health/live HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(old.AtEnd());
}

TEST_F(ConnectionTest, LoadsThatWaitAreRefusedWhenTheServerStops) {
  std::promise<void> loading, go_on;
  service_.ControlWith([&] {
    loading.set_value();
    go_on.get_future().wait();
  });
  const std::string load =
      "POST /v2/repository/models/a/load HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
  LoopbackClient first(port());
  first.Send(load);
  loading.get_future().wait();
  service_.ControlWith({});
  LoopbackClient second(port());
  second.Send(load);
  // The second waits behind the first once a later connection has been served.
  EXPECT_EQ(LoopbackClient(port()).Call(kLive).status, 200);
  std::thread stop([&] { server_->Stop(std::chrono::minutes(1)); });
  while (LoopbackClient::Connects(port())) {
  }
  go_on.set_value();
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(second.Receive().status, 503);
  stop.join();
}

TEST_F(ConnectionTest, StoppingLetsACallEnd) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("last"));
  service_.AwaitCalls(1);
  std::thread stop([&] { server_->Stop(std::chrono::minutes(1)); });
  // A connection that is open and idle is closed; the one that waits gets its answer, then the end.
  service_.Release();
  const auto response = client.Receive();
  EXPECT_EQ(response.status, 200);
  client.Close();
  stop.join();
}

TEST_F(ConnectionTest, StoppingCancelsWhatOutlastsTheGrace) {
  service_.Hold();
  LoopbackClient client(port());
  client.Send(Infer("stuck"));
  service_.AwaitCalls(1);
  server_->Stop(std::chrono::milliseconds(0));
  EXPECT_EQ(service_.cancels(), 1);
  const auto response = client.Receive();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
}

TEST_F(ConnectionTest, ManyConnectionsOnTwoThreads) {
  options_.threads = 2;
  const std::uint16_t at = port();
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([at, c] {
      LoopbackClient client(at);
      for (int i = 0; i < 50; ++i) {
        const std::string id = fmt::format("{}-{}", c, i);
        const auto response = client.Call(Infer(id));
        EXPECT_EQ(response.status, 200);
        EXPECT_TRUE(Contains(response.body, fmt::format(R"("id":"{}")", id)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(service_.calls(), 400);
}

}  // namespace
}  // namespace tactus
