// /v2/streams over a real socket; the sources are scripted, the model gives back what it gets.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/access/client_limits.h"
#include "server/http/server_fixture_for_test.h"
#include "stream/jpeg.h"
#include "stream/stream_set.h"

namespace tactus {
namespace {

class StillPicture final : public Picture {
 public:
  Expected<std::string> Jpeg() override {
    return EncodeJpeg(RgbPicture{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, 99)});
  }
};

// A camera that shows one picture for ever.
class Still final : public VideoSource {
 public:
  explicit Still(std::stop_token stop) : stop_(std::move(stop)) {}
  Expected<std::optional<SourceFrame>> Read() override {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, stop_, std::chrono::milliseconds(1),
                                           [] { return false; });
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "the stream was stopped");
    return SourceFrame{std::make_unique<StillPicture>(), {}};
  }

 private:
  const std::stop_token stop_;
};

class StreamsTest : public ServerFixture {
 protected:
  StreamsTest()
      : streams_(service_, [](const SourceOptions&, std::stop_token stop) {
          return std::make_unique<Still>(std::move(stop));
        }) {
    options_.port = 0;
  }
  ~StreamsTest() override {
    streams_.Stop();
    server_.reset();
  }

  std::uint16_t port() {
    if (!server_) {
      server_.emplace(options_, service_, &streams_);
      port_ = server_->Start().value_or(0);
    }
    return port_;
  }
  static std::string Request(std::string_view verb, std::string_view path,
                             std::string_view body = "") {
    return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", verb, path,
                       body.size(), body);
  }
  ClientResponse Ask(std::string_view verb, std::string_view path, std::string_view body = "") {
    return LoopbackClient(port()).Call(Request(verb, path, body));
  }
  void Add(const std::string& name) {
    const auto added = Ask("POST", "/v2/streams/" + name, kDoor);
    ASSERT_EQ(added.status, 200) << added.body;
  }

  static constexpr std::string_view kDoor = R"({"source": "http://camera/", "model": "words"})";
  StreamSet streams_;
};

// Without this, streams could not be changed while the server runs, or a mistake would be silent.
TEST_F(StreamsTest, AreAddedReadAndRemoved) {
  EXPECT_EQ(Ask("GET", "/v2/streams").body, R"({"streams":[]})");
  Add("door");
  EXPECT_EQ(Ask("POST", "/v2/streams/door", kDoor).status, 409);
  EXPECT_TRUE(Contains(Ask("GET", "/v2/streams").body, R"("name":"door")"));
  const auto door = Ask("GET", "/v2/streams/door");
  EXPECT_TRUE(Contains(door.body, R"("source":"http://camera/")")) << door.body;
  const auto view = Ask("GET", "/v2/streams/door/view");
  EXPECT_EQ(view.status, 302);
  EXPECT_EQ(view.fields.at("Location"), "/ui/index.html#stream=door");
  EXPECT_EQ(Ask("DELETE", "/v2/streams/door").status, 200);
  for (const char* path : {"", "/events", "/video", "/other"}) {
    EXPECT_EQ(Ask("GET", fmt::format("/v2/streams/door{}", path)).status, 404) << path;
  }
  EXPECT_EQ(Ask("DELETE", "/v2/streams/door").status, 404);
}

// Without this, any page in a browser on this machine could have the server send what it can read
// to an address of the page's choice.
TEST_F(StreamsTest, APageOfAnotherOriginChangesNothing) {
  const auto ask = [this](std::string_view verb, std::string_view origin) {
    return LoopbackClient(port()).Call(
        fmt::format("{} /v2/streams/door HTTP/1.1\r\nHost: localhost:8000\r\nOrigin: {}\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    verb, origin, verb == "POST" ? kDoor.size() : 0, verb == "POST" ? kDoor : ""));
  };
  for (const char* origin : {"https://elsewhere.example", "http://localhost:9000", "null"}) {
    EXPECT_EQ(ask("POST", origin).status, 403) << origin;
  }
  EXPECT_EQ(Ask("GET", "/v2/streams").body, R"({"streams":[]})");
  EXPECT_EQ(ask("POST", "http://LOCALHOST:8000").status, 200);
  EXPECT_EQ(ask("DELETE", "https://elsewhere.example").status, 403);
  EXPECT_EQ(ask("GET", "https://elsewhere.example").status, 200)
      << "reading is the browser's to refuse";
  EXPECT_EQ(ask("DELETE", "http://localhost:8000").status, 200);
}

TEST_F(StreamsTest, SaysWhatIsWrongWithOne) {
  struct Row {
    const char* name;
    const char* body;
    int status;
    const char* says;
  };
  const Row table[] = {
      {"a", "", 400, "JSON object"},
      {"a", R"({"source": "x", "model": "words", "queue": 0})", 400, "'queue'"},
      {"a", R"({"source": "x", "model": "none"})", 404, "unknown model"},
      {"a", R"({"source": "x", "model": "numbers"})", 400, "takes no JPEG"},
      {"a", R"({"source": "x", "model": "words", "url": "nowhere"})", 400, "HOST:PORT"},
      {"a", R"({"source": "x", "model": "words", "ca": "a.pem"})", 400, "for another server"},
      {"a", R"({"source": "x", "model": "words", "url": "host:1", "ca": "/no/such"})", 400,
       "/no/such"},
      {"a", R"({"source": "x", "model": "words", "url": "h:1", "token_file": "/dev/null"})", 400,
       "without TLS"},
      {"a", R"({"source": "x", "model": "words", "url": "127.0.0.1:1", "token_file": "/no/such"})",
       400, "/no/such"},
      {"a%20b", R"({"source": "x", "model": "words"})", 400, "name"}};
  for (const Row& row : table) {
    const auto response = Ask("POST", std::string("/v2/streams/") + row.name, row.body);
    EXPECT_EQ(response.status, row.status) << row.body;
    EXPECT_TRUE(Contains(response.body, row.says)) << response.body;
  }
  const auto refused = Ask("DELETE", "/v2/streams");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.fields.at("Allow"), "GET, HEAD");
}

// Without this, a watcher of a stream that was removed would wait for ever.
TEST_F(StreamsTest, EventsComeUntilTheStreamIsRemoved) {
  Add("door");
  LoopbackClient watcher(port());
  watcher.Send(Request("GET", "/v2/streams/door/events"));
  const std::string head = watcher.ReadUntil("\r\n\r\n");
  EXPECT_TRUE(Contains(head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")) << head;
  EXPECT_TRUE(Contains(head, "Connection: close\r\n")) << head;
  EXPECT_FALSE(Contains(head, "Content-Length")) << head;
  for (int i = 0; i < 3; ++i) {
    const std::string event = watcher.ReadUntil("\n\n");
    EXPECT_TRUE(event.starts_with(R"(data: {"stream":"door","frame":)")) << event;
    EXPECT_TRUE(Contains(event, R"("latency_ms":)")) << event;
  }
  EXPECT_EQ(Ask("DELETE", "/v2/streams/door").status, 200);
  while (!watcher.ReadUntil("\n\n").empty()) continue;
  EXPECT_TRUE(watcher.AtEnd());
}

// Without this, a browser would show nothing, or a picture that is none.
TEST_F(StreamsTest, PicturesAreJpegsOfTheAnsweredFrames) {
  Add("door");
  LoopbackClient watcher(port());
  watcher.Send(Request("GET", "/v2/streams/door/video"));
  const std::string head = watcher.ReadUntil("\r\n\r\n");
  EXPECT_TRUE(Contains(head, "multipart/x-mixed-replace; boundary=tactus-frame\r\n")) << head;
  const std::string part = watcher.ReadUntil("\r\n\r\n");
  EXPECT_TRUE(part.starts_with("--tactus-frame\r\nContent-Type: image/jpeg\r\n")) << part;
  const std::size_t length = std::stoul(part.substr(part.find("Length: ") + 8));
  const std::string_view next = "\r\n--tactus-frame\r\n";
  const std::string jpeg = watcher.ReadUntil(next);
  ASSERT_EQ(jpeg.size(), length + next.size());
  const auto picture = DecodeRgb(std::string_view(jpeg).substr(0, length));
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->width, 16);
}

// Without this, a stream could not be removed while its server is slow.
TEST_F(StreamsTest, WhatIsAtTheServerIsGivenUpWhenTheStreamIsRemoved) {
  service_.Hold();
  Add("door");
  service_.AwaitCalls(1);
  EXPECT_EQ(Ask("DELETE", "/v2/streams/door").status, 200);
  EXPECT_EQ(service_.cancels(), 1);
}

// Without this, watchers would go uncounted, or those who left would be counted for ever.
TEST_F(StreamsTest, AWatcherIsACallUntilItLeaves) {
  options_.limits = std::make_shared<ClientLimits>(ClientLimitOptions{.calls = 1});
  Add("door");
  LoopbackClient first(port());
  first.Send(Request("GET", "/v2/streams/door/events"));
  first.ReadUntil("\n\n");
  EXPECT_EQ(Ask("GET", "/v2/streams/door").status, 429);
  first.Close();
  while (Ask("GET", "/v2/streams/door").status == 429) std::this_thread::yield();
}

// Without this, a client that closed its side with its request would hold its place for ever where
// nothing is sent: nobody would read that it has gone.
TEST_F(StreamsTest, AWatcherThatLeftWithItsRequestIsNoticed) {
  options_.limits = std::make_shared<ClientLimits>(ClientLimitOptions{.calls = 1});
  Add("door");
  std::vector<std::unique_ptr<LoopbackClient>> gone;
  for (int i = 0; i < 20; ++i) {
    while (Ask("GET", "/v2/streams/door").status == 429) std::this_thread::yield();
    gone.push_back(std::make_unique<LoopbackClient>(port()));
    gone.back()->Send(Request("GET", "/v2/streams/door/events"));
    gone.back()->CloseSending();
  }
  while (Ask("GET", "/v2/streams/door").status == 429) std::this_thread::yield();
}

TEST_F(StreamsTest, HeadHasNoBodyAndAServerThatStopsEndsItsWatchers) {
  Add("door");
  LoopbackClient head(port());
  head.Send(Request("HEAD", "/v2/streams/door/events"));
  EXPECT_EQ(head.Receive(true).status, 200);
  LoopbackClient watcher(port());
  watcher.Send(Request("GET", "/v2/streams/door/video"));
  watcher.ReadUntil("\r\n\r\n");
  server_->Stop(std::chrono::milliseconds(0));
  while (!watcher.ReadUntil("\r\n").empty()) continue;
  EXPECT_TRUE(watcher.AtEnd());
}

}  // namespace
}  // namespace tactus
