// Clients that break HTTP/2's rules, or keep them and mean harm: raw frames on a socket. Each ends
// with its own connection, and another client is served beside it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/access/client_limits.h"
#include "server/grpc/server_fixture_for_test.h"

namespace tactus {
namespace {

using testing::HasSubstr;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindow = 8,
  kContinuation = 9
};
constexpr std::uint8_t kAck = 1;
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;

constexpr std::uint32_t kNoError = 0;
constexpr std::uint32_t kCancel = 8;
constexpr std::uint32_t kEnhanceYourCalm = 11;

std::string Number(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  std::string_view payload) {
  return Number(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + Number(stream, 4) + std::string(payload);
}

// A field as HPACK writes it without its tables; up to 126 bytes each.
std::string Field(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + std::string(name) +
         static_cast<char>(value.size()) + std::string(value);
}

constexpr std::string_view kModelInfer = "/inference.GRPCInferenceService/ModelInfer";
constexpr std::string_view kServerLive = "/inference.GRPCInferenceService/ServerLive";

std::string CallFields(std::string_view path) {
  return Field(":method", "POST") + Field(":scheme", "http") + Field(":path", path) +
         Field(":authority", "x") + Field("content-type", "application/grpc");
}
std::string Call(std::uint32_t stream, std::string_view path = kModelInfer) {
  return Frame(kHeaders, kEndHeaders, stream, CallFields(path));
}
std::string MessageOf(const std::string& bytes) {
  return std::string(1, '\0') + Number(static_cast<std::uint32_t>(bytes.size()), 4) + bytes;
}

// Without gRPC's client, so that ThreadSanitizer has something to say.
class H2AttackTest : public testing::Test {
 protected:
  void TearDown() override {
    if (socket_ >= 0) close(socket_);
    Attack();  // but this one is honest
    Send(Call(1, kServerLive) + Frame(kData, kEndStream, 1, MessageOf("")));
    const auto data = Await(kData, 1);
    ASSERT_TRUE(data.has_value()) << "another client is served";
    EXPECT_EQ(data->payload, MessageOf("\x08\x01"));
    close(socket_);
  }
  void Start(GrpcOptions options = {}) {
    options.port = 0;
    server_.emplace(std::move(options), service_);
    const auto port = server_->Start();
    ASSERT_TRUE(port.has_value()) << port.error().message;
    port_ = *port;
  }

  void Connect() {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval long_enough{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof long_enough);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &long_enough, sizeof long_enough);
  }
  // A connection whose client has said `settings`.
  void Attack(std::string_view settings = "") {
    Connect();
    Send(std::string(kPreface) + Frame(kSettings, 0, 0, settings));
  }
  // False: the server has closed.
  bool Send(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  struct Heard {
    FrameType type;
    std::uint8_t flags;
    std::uint32_t stream;
    std::string payload;
  };
  bool Take(std::size_t size, std::string& out) const {
    out.resize(size);
    return size == 0 || recv(socket_, out.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }
  // The next frame; nothing once the server has closed.
  std::optional<Heard> Next() const {
    std::string head;
    if (!Take(9, head)) return std::nullopt;
    Heard heard{static_cast<FrameType>(head[3]), static_cast<std::uint8_t>(head[4]),
                NumberOf(head.substr(5)), ""};
    if (!Take(NumberOf(head.substr(0, 3)), heard.payload)) return std::nullopt;
    return heard;
  }
  // The next frame of that type, on that stream.
  std::optional<Heard> Await(FrameType type, std::uint32_t stream) const {
    for (auto heard = Next(); heard; heard = Next()) {
      if (heard->type == type && heard->stream == stream) return heard;
    }
    return std::nullopt;
  }
  // The server's answer to a ping.
  std::optional<Heard> AwaitPong() const {
    auto heard = Await(kPing, 0);
    while (heard && heard->flags != kAck) heard = Await(kPing, 0);
    return heard;
  }
  // The server says why, and closes.
  void ExpectEnd(std::uint32_t code, const std::string& why = "") const {
    const auto goaway = Await(kGoaway, 0);
    ASSERT_TRUE(goaway.has_value()) << "the server closed without a word";
    EXPECT_EQ(NumberOf(goaway->payload.substr(4, 4)), code);
    EXPECT_THAT(goaway->payload, HasSubstr(why));
    while (Next()) {
    }
  }
  static std::uint32_t NumberOf(const std::string& bytes) {
    std::uint32_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }

  ScriptedService service_;
  std::optional<GrpcServer> server_;
  std::uint16_t port_ = 0;
  int socket_ = -1;
};

// Calls of ModelInfer: libprotobuf without ThreadSanitizer does not bear them.
class GrpcRawTest : public H2AttackTest {};

// Where this fails, the tests below fail for a wrong reason.
TEST_F(GrpcRawTest, AnHonestCallIsAnswered) {
  Start();
  Attack();
  Send(Call(1) + Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())));
  const auto head = Await(kHeaders, 1);
  ASSERT_TRUE(head.has_value());
  const auto data = Await(kData, 1);
  ASSERT_TRUE(data.has_value());
  inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(data->payload.substr(5)));
  EXPECT_EQ(response.model_name(), "echo");
  EXPECT_TRUE(Await(kHeaders, 1).has_value());
}

// Whoever sends more than is read is allowed less at a time, and a call that was promised more has
// it still.
TEST_F(GrpcRawTest, AMessageThatIsLeftUnreadMakesFirstWindowsSmall) {
  constexpr std::uint16_t kFirstWindow = 4;  // of the settings
  Start({.max_pending_bytes = 200'000});
  Attack();
  inference::ModelInferRequest call = RawRequest();
  call.set_id(std::string(110'000, 'x'));
  const std::string kept = MessageOf(call.SerializeAsString());
  Send(Call(1) + Frame(kData, 0, 1, kept.substr(0, 15'000)));
  const auto promised = Await(kWindow, 1);
  ASSERT_TRUE(promised.has_value());
  Send(Frame(kData, 0, 1, kept.substr(15'000, 15'000)) + Call(3) +
       Frame(kData, 0, 3, kept.substr(0, 10'000)));
  std::optional<Heard> small;
  do {
    small = Await(kSettings, 0);
    ASSERT_TRUE(small.has_value());
  } while (small->payload.substr(0, 2) != Number(kFirstWindow, 2));
  const std::uint32_t first = NumberOf(small->payload.substr(2, 4));
  EXPECT_LT(first, 65535u);
  Send(Frame(kSettings, kAck, 0, ""));  // the first settings'
  Send(Frame(kSettings, kAck, 0, ""));
  std::int64_t window = std::int64_t{first} + NumberOf(promised->payload) - 30'000;
  for (std::size_t at = 30'000; at < kept.size();) {
    while (window <= 0) {
      const auto more = Await(kWindow, 1);
      ASSERT_TRUE(more.has_value());
      window += NumberOf(more->payload);
    }
    const std::size_t size =
        std::min({kept.size() - at, std::size_t{16'000}, static_cast<std::size_t>(window)});
    const bool last = at + size == kept.size();
    Send(Frame(kData, last ? kEndStream : 0, 1, kept.substr(at, size)));
    at += size;
    window -= static_cast<std::int64_t>(size);
  }
  EXPECT_TRUE(Await(kData, 1).has_value());
}

TEST_F(H2AttackTest, AHeaderThatNeverEndsIsCutOff) {
  Start();
  Attack();
  Send(Frame(kHeaders, 0, 1, CallFields(kModelInfer)));
  const std::string more = Frame(kContinuation, 0, 1, Field("x", std::string(100, 'x')));
  while (Send(more)) {
  }
}

TEST_F(H2AttackTest, AHeaderThatNeverEndsIsCutOffAlsoWithoutFields) {
  Start();
  Attack();
  Send(Frame(kHeaders, 0, 1, CallFields(kModelInfer)));
  std::string more;
  for (int i = 0; i < 1000; ++i) more += Frame(kContinuation, 0, 1, "");
  while (Send(more)) {
  }
}

TEST_F(H2AttackTest, AHeaderThatStopsInItsMiddleHasItsTime) {
  Start({.handshake_timeout = std::chrono::milliseconds(200)});
  Attack();
  Send(Frame(kHeaders, 0, 1, CallFields(kModelInfer)));
  while (Next()) {
  }
}

TEST_F(H2AttackTest, CallsThatAreResetAtOnceEndTheConnection) {
  Start();
  Attack();
  std::uint32_t id = 1;
  while (Send(Call(id) + Frame(kReset, 0, id, Number(kCancel, 4)))) id += 2;
}

TEST_F(H2AttackTest, PingsThatComeTooOftenEndTheConnection) {
  Start();
  Attack();
  for (int i = 0; i < 10; ++i) Send(Frame(kPing, 0, 0, "12345678"));
  ExpectEnd(kEnhanceYourCalm, "too_many_pings");
}

TEST_F(H2AttackTest, AnswersThatAreLeftUnreadEndTheConnection) {
  Start({.write_timeout = std::chrono::milliseconds(500)});
  Attack();
  const std::string settings = Frame(kSettings, 0, 0, "");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += settings;
  while (Send(many)) {
  }
}

TEST_F(H2AttackTest, AMessageBeyondTheLimitIsRefusedByItsLength) {
  Start();
  Attack();
  // Five bytes of a message of 4 GB.
  Send(Call(1) + Frame(kData, 0, 1, std::string(1, '\0') + Number(0xffffffff, 4)));
  const auto end = Await(kHeaders, 1);
  ASSERT_TRUE(end.has_value());
  EXPECT_NE(end->flags & kEndStream, 0);
  const auto reset = Await(kReset, 1);  // nobody reads the rest
  ASSERT_TRUE(reset.has_value());
  EXPECT_EQ(NumberOf(reset->payload), kNoError);
}

// Without this a client could have the server take what nobody agreed to.
TEST_F(H2AttackTest, OnlyWhatIsAdmittedMayCome) {
  constexpr std::size_t kWhole = 4 << 20;
  GrpcOptions options;
  options.limits = std::make_shared<ClientLimits>(ClientLimitOptions{.bytes = kWhole});
  Start(std::move(options));
  Attack();
  const auto begin = [](std::uint32_t id) {
    return Call(id) + Frame(kData, 0, id, std::string(1, '\0') + Number(kWhole - 1000, 4));
  };
  Send(begin(1));
  const auto wider = Await(kWindow, 1);
  ASSERT_TRUE(wider.has_value());
  EXPECT_GE(NumberOf(wider->payload), kWhole - 1000);
  Send(begin(3));  // there is no more room for this client
  std::optional<Heard> heard;
  do {
    heard = Next();
    ASSERT_TRUE(heard.has_value());
    EXPECT_FALSE(heard->type == kWindow && heard->stream == 3);
  } while (heard->type != kHeaders || heard->stream != 3);
  EXPECT_NE(heard->flags & kEndStream, 0);
}

// The client waits for as long.
TEST_F(GrpcRawTest, TheTimeOfACallBeginsWithItsHeader) {
  Start();
  Attack();
  Send(Call(1) + Frame(kPing, 0, 0, "12345678"));
  ASSERT_TRUE(AwaitPong().has_value());  // the header has been read
  const auto between = std::chrono::steady_clock::now();
  Send(Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())));
  EXPECT_TRUE(Await(kData, 1).has_value());
  EXPECT_LT(service_.last().received, between);
}

// Answers are due earlier by what their client and its network add to the way.
TEST_F(GrpcRawTest, AClientThatIsSlowToAnswerPingsHasItsAnswersDueEarlier) {
  Start();
  Attack();
  std::uint32_t id = 1;
  const auto call = [&](std::chrono::milliseconds slow) {
    Send(Call(id) + Frame(kData, kEndStream, id, MessageOf(RawRequest().SerializeAsString())));
    const auto ping = Await(kPing, 0);
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->flags, 0);
    EXPECT_TRUE(Await(kData, id).has_value());
    std::this_thread::sleep_for(slow);
    Send(Frame(kPing, kAck, 0, ping->payload));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // before it asks again
    id += 2;
  };
  call(std::chrono::milliseconds(0));
  call(std::chrono::milliseconds(0));
  const Duration at_best = service_.last().way;
  for (int i = 0; i < 8; ++i) call(std::chrono::milliseconds(150));
  EXPECT_GT(service_.last().way, at_best);
}

// Without this each of them would keep its place, until nobody can connect, and hold up a stop.
TEST_F(GrpcRawTest, AClientThatGoesWhileItsStreamIsWrittenLeavesItsPlace) {
  Start({.max_connections = 8});
  for (int i = 0; i < 100; ++i) {
    Attack();
    Send(Call(1, "/grpc.health.v1.Health/Watch") + Frame(kData, 0, 1, MessageOf("")));
    shutdown(socket_, SHUT_WR);
    while (Next()) {
    }
    close(std::exchange(socket_, -1));
  }
}

// Or whoever does not answer would be asked ever more.
TEST_F(GrpcRawTest, OnePingIsUnderWayAtATime) {
  Start();
  Attack();
  Send(Call(1) + Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())));
  ASSERT_TRUE(Await(kPing, 0).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  Send(Call(3) + Frame(kData, kEndStream, 3, MessageOf(RawRequest().SerializeAsString())) +
       Frame(kPing, 0, 0, "12345678"));
  EXPECT_EQ(Await(kPing, 0)->flags, kAck) << "the next is the answer to ours";
}

TEST_F(GrpcRawTest, AClientThatTakesNothingLosesItsCallAlone) {
  Start({.write_timeout = std::chrono::milliseconds(300)});
  const std::string no_window = Number(4, 2) + Number(0, 4);  // SETTINGS_INITIAL_WINDOW_SIZE
  Attack(no_window);
  Send(Call(1) + Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())));
  const auto reset = Await(kReset, 1);
  ASSERT_TRUE(reset.has_value());
  EXPECT_EQ(NumberOf(reset->payload), kCancel);
  Send(Frame(kPing, 0, 0, "12345678"));
  EXPECT_TRUE(AwaitPong().has_value()) << "the connection lives";
}

TEST_F(H2AttackTest, WhatIsNoHttp2IsClosed) {
  Start();
  for (const std::string_view first :
       {std::string_view("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string_view("\x16\x03\x01\x02 and so on, as TLS begins, and longer than a preface")}) {
    Connect();
    Send(std::string(first));
    while (Next()) {
    }
    close(std::exchange(socket_, -1));
  }
}

TEST_F(GrpcRawTest, AClientThatSaysGoodbyeHasItsAnswer) {
  Start();
  service_.Hold();
  Attack();
  Send(Call(1) + Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())) +
       Frame(kGoaway, 0, 0, Number(0, 4) + Number(kNoError, 4)));
  service_.AwaitHeld(1);
  service_.Hold(false);
  service_.Release();
  EXPECT_TRUE(Await(kData, 1).has_value());
  EXPECT_TRUE(Await(kHeaders, 1).has_value());
  while (Next()) {
  }
}

// As `nc -N` ends its side.
TEST_F(GrpcRawTest, AClientThatSendsNoMoreHasItsAnswers) {
  Start();
  service_.Hold();
  Attack();
  const std::string whole = MessageOf(RawRequest().SerializeAsString());
  Send(Call(1) + Frame(kData, kEndStream, 1, whole) + Call(3) +
       Frame(kData, 0, 3, whole.substr(0, 8)));
  service_.AwaitHeld(1);
  shutdown(socket_, SHUT_WR);
  const auto reset = Await(kReset, 3);
  ASSERT_TRUE(reset.has_value()) << "what is not said in full is no call";
  EXPECT_EQ(NumberOf(reset->payload), kCancel);
  service_.Hold(false);
  service_.Release();
  EXPECT_TRUE(Await(kData, 1).has_value());
  EXPECT_TRUE(Await(kHeaders, 1).has_value());
  while (Next()) {
  }
}

// As END_STREAM would have said.
TEST_F(GrpcRawTest, MessagesThatAreWholeAreAnsweredWhereTheClientSendsNoMore) {
  Start();
  service_.Hold();
  Attack();
  const std::string whole = MessageOf(RawRequest().SerializeAsString());
  Send(Call(1, "/inference.GRPCInferenceService/ModelStreamInfer") +
       Frame(kData, 0, 1, whole + whole));
  service_.AwaitHeld(2);
  shutdown(socket_, SHUT_WR);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Await(kWindow, 0).has_value());
  service_.Hold(false);
  for (int i = 0; i < 2; ++i) {
    service_.Release();
    EXPECT_TRUE(Await(kData, 1).has_value());
  }
  const auto end = Await(kHeaders, 1);
  ASSERT_TRUE(end.has_value());
  EXPECT_NE(end->flags & kEndStream, 0);
}

// Strangers need no token to watch the health; without this they would close the port.
TEST_F(GrpcRawTest, WhoeverWaitsForNewsGivesWayToANewcomer) {
  Start({.max_connections = 8});
  std::vector<int> watching;
  for (int i = 0; i < 8; ++i) {
    Attack();
    Send(Call(1, "/grpc.health.v1.Health/Watch") + Frame(kData, kEndStream, 1, MessageOf("")));
    ASSERT_TRUE(Await(kData, 1).has_value());
    watching.push_back(std::exchange(socket_, -1));
  }
  Attack();
  Send(Call(1, kServerLive) + Frame(kData, kEndStream, 1, MessageOf("")));
  EXPECT_TRUE(Await(kData, 1).has_value());
  for (const int each : watching) close(each);
}

TEST_F(GrpcRawTest, AClientThatHasGoneLosesItsCall) {
  Start();
  service_.Hold();
  for (const bool ends_its_side_first : {false, true}) {
    Attack();
    Send(Call(1) + Frame(kData, kEndStream, 1, MessageOf(RawRequest().SerializeAsString())));
    service_.AwaitHeld(1);
    if (ends_its_side_first) {
      shutdown(socket_, SHUT_WR);
      // The first is of the connection's beginning, others ask whether the client still listens.
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(Await(kWindow, 0).has_value());
    }
    close(std::exchange(socket_, -1));
    service_.AwaitCancelled(ends_its_side_first ? 2 : 1);
  }
}

}  // namespace
}  // namespace tactus
