// One client takes too much over gRPC: it is told so, and the others go on.
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/access/client_limits.h"
#include "server/grpc/server_fixture_for_test.h"
#include "server/kserve/body_admission.h"

namespace tactus {
namespace {

class GrpcLimitsTest : public GrpcServerFixture {
 protected:
  void SetUp() override {}
  void Serve(GrpcOptions options, ClientLimitOptions limits = {}) {
    options.port = 0;
    options.limits = limits_ = std::make_shared<ClientLimits>(limits);
    Start(std::move(options));
  }
  // A client has its answer a moment before the server lets go of the call.
  void AwaitBytesGivenBack() {
    while (limits_->all_bytes()->used() > 0) std::this_thread::yield();
  }
  // A connection from that address of this machine.
  int Connect(const char* from) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(s, name, sizeof address), 0);
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(s, name, sizeof address), 0);
    return s;
  }
  // gRPC speaks first; whoever is one too many reads the end.
  static bool Taken(int s) {
    char byte = 0;
    return recv(s, &byte, 1, 0) == 1;
  }
  std::shared_ptr<ClientLimits> limits_;
};

TEST_F(GrpcLimitsTest, AClientBeyondItsRateIsToldWhenToRepeat) {
  Serve({}, {.rate = 0.01});
  EXPECT_TRUE(Infer(RawRequest()).ok());
  inference::ModelInferResponse response;
  grpc::ClientContext context;
  Bound(context);
  const grpc::Status refused = stub_->ModelInfer(&context, RawRequest(), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("calls per second"), std::string::npos);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  AwaitBytesGivenBack();
}

// Without this metrics and the live page are green while clients are refused.
TEST_F(GrpcLimitsTest, EachCallThatIsRefusedIsCountedOnceByItsReason) {
  std::mutex mutex;
  std::map<std::string, int> reasons;
  GrpcOptions options;
  options.refused = [&](RefusalReason why) {
    const std::lock_guard lock(mutex);
    ++reasons[std::string(Name(why))];
  };
  Serve(std::move(options), {.rate = 3});
  inference::ModelInferRequest unknown = RawRequest();
  unknown.set_model_name("none");
  EXPECT_EQ(Infer(unknown).error_code(), grpc::StatusCode::NOT_FOUND);
  {
    grpc::ClientContext context;
    Bound(context);
    auto stream = stub_->ModelStreamInfer(&context);
    inference::ModelStreamInferResponse answer;
    ASSERT_TRUE(stream->Write(unknown));
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_NE(answer.error_message(), "");
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
  int refused = 0;
  while (refused < 2) refused += Infer(RawRequest()).ok() ? 0 : 1;
  const std::lock_guard lock(mutex);
  EXPECT_EQ(reasons, (std::map<std::string, int>{{"client_limit", 2}, {"not_found", 2}}));
}

TEST_F(GrpcLimitsTest, AStreamsCallsCountAndItGoesOn) {
  Serve({}, {.rate = 0.01});
  grpc::ClientContext context;
  Bound(context);
  auto stream = stub_->ModelStreamInfer(&context);
  inference::ModelStreamInferResponse first, second;
  ASSERT_TRUE(stream->Write(RawRequest()));
  ASSERT_TRUE(stream->Read(&first));
  EXPECT_EQ(first.error_message(), "");
  ASSERT_TRUE(stream->Write(RawRequest()));
  ASSERT_TRUE(stream->Read(&second));
  EXPECT_NE(second.error_message().find("calls per second"), std::string::npos);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcLimitsTest, BytesCountWhileACallIsUnderWayAndNotAfter) {
  Serve({}, {.bytes = 10});
  const grpc::Status refused = Infer(RawRequest());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("as many bytes"), std::string::npos);
  AwaitBytesGivenBack();
}

// Else a client that takes no answers may have all of the server's memory.
TEST_F(GrpcLimitsTest, AnswersThatAClientDoesNotTakeCountAsItsBytes) {
  constexpr std::size_t kAnswer = std::size_t{16} << 20;
  Serve({}, {.bytes = 3 * kAnswer / 2, .all_bytes = 4 * kAnswer});
  service_.AnswerWithBytes(kAnswer);
  {
    grpc::ClientContext context;
    Bound(context);
    const auto stream = stub_->ModelStreamInfer(&context);
    for (int i = 1; i <= 2; ++i) {  // without reading, so that HTTP/2's window stays as it is
      ASSERT_TRUE(stream->Write(RawRequest()));
      while (limits_->all_bytes()->used() < i * kAnswer) std::this_thread::yield();
    }
    const grpc::Status refused = Infer(RawRequest());
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_NE(refused.error_message().find("as many bytes"), std::string::npos);
    context.TryCancel();
    stream->Finish();
  }
  AwaitBytesGivenBack();
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(RawRequest(), &response).ok());
  EXPECT_EQ(response.raw_output_contents(0).size(), kAnswer);
  AwaitBytesGivenBack();
}

TEST_F(GrpcLimitsTest, AMessageBeyondTheLimitIsRefused) {
  Serve({.max_body = 1000});
  inference::ModelInferRequest large = RawRequest();
  large.set_id(std::string(1000, 'x'));
  EXPECT_EQ(Infer(large).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

TEST_F(GrpcLimitsTest, APackedMessageIsUnpackedUpToTheLimit) {
  Serve({.max_body = 100'000});
  const auto packed = [&](std::size_t padding, grpc_compression_algorithm how) {
    inference::ModelInferRequest request = RawRequest();
    request.set_id(std::string(padding, 'x'));
    grpc::ClientContext context;
    Bound(context);
    context.set_compression_algorithm(how);
    inference::ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, request, &response);
    EXPECT_TRUE(!status.ok() || response.id() == request.id());
    return status.error_code();
  };
  EXPECT_EQ(packed(90'000, GRPC_COMPRESS_GZIP), grpc::StatusCode::OK);
  EXPECT_EQ(packed(90'000, GRPC_COMPRESS_DEFLATE), grpc::StatusCode::OK);
  EXPECT_EQ(packed(50'000'000, GRPC_COMPRESS_GZIP), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(packed(50'000'000, GRPC_COMPRESS_DEFLATE), grpc::StatusCode::RESOURCE_EXHAUSTED);
  AwaitBytesGivenBack();
}

TEST_F(GrpcLimitsTest, ConnectionsAreCountedAndThoseThatEndedMakeRoom) {
  Serve({.max_connections = 2});
  const int first = Connect("127.0.0.1");
  const int second = Connect("127.0.0.1");
  EXPECT_TRUE(Taken(first));
  EXPECT_TRUE(Taken(second));
  const int third = Connect("127.0.0.1");
  EXPECT_FALSE(Taken(third));
  close(first);
  close(second);
  // As soon as gRPC has seen the end of one.
  for (int s = Connect("127.0.0.1"); !Taken(s); s = Connect("127.0.0.1")) close(s);
  close(third);
}

// Without these one address could close the port to everybody: with connections, or with silence.
TEST_F(GrpcLimitsTest, OneAddressHasItsShareOfTheConnections) {
  std::promise<std::string> said;
  GrpcOptions options;
  options.max_connections = 10;
  options.warn = [&](const std::string& line) { said.set_value(line); };
  Serve(std::move(options), {.connections = 2});
  const int first = Connect("127.0.0.1");
  const int second = Connect("127.0.0.1");
  EXPECT_TRUE(Taken(first) && Taken(second));
  EXPECT_FALSE(Taken(Connect("127.0.0.1")));
  EXPECT_FALSE(Taken(Connect("127.0.0.1")));  // said once
  EXPECT_TRUE(Taken(Connect("127.0.0.2")));
  EXPECT_NE(said.get_future().get().find("127.0.0.1 has 2 connections"), std::string::npos);
}

TEST_F(GrpcLimitsTest, AConnectionThatStaysSilentIsClosed) {
  GrpcOptions options;
  options.handshake_timeout = std::chrono::milliseconds(100);
  Serve(std::move(options));
  EXPECT_TRUE(Infer(RawRequest()).ok());
  const int silent = Connect("127.0.0.1");
  while (Taken(silent)) {
  }
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

TEST_F(GrpcLimitsTest, AConnectionHasNoMoreStreamsThanTheLimit) {
  Serve({.max_streams = 2});
  EXPECT_TRUE(Infer(RawRequest()).ok());  // the client knows the server's settings from here on
  const auto open = [&](grpc::ClientContext& context) {
    Bound(context);
    inference::ModelStreamInferResponse response;
    auto stream = stub_->ModelStreamInfer(&context);
    EXPECT_TRUE(stream->Write(RawRequest()) && stream->Read(&response));
    return stream;
  };
  grpc::ClientContext of_first, of_second, of_third;
  const auto first = open(of_first);
  const auto second = open(of_second);
  // However long it waits: it is not even begun while two are open.
  of_third.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&of_third, RawRequest(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_TRUE(Infer(RawRequest()).ok());
  second->WritesDone();
  EXPECT_TRUE(second->Finish().ok());
}

TEST_F(GrpcLimitsTest, MetadataBeyondTheLimitIsRefused) {
  Serve({.max_metadata = 2000});
  grpc::ClientContext context;
  Bound(context);
  context.AddMetadata("x", std::string(4000, 'x'));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, RawRequest(), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // gRPC may end that client's connection, and a call that is on its way then goes with it.
  grpc::Status next = Infer(RawRequest());
  for (int i = 0; i < 20 && next.error_code() == grpc::StatusCode::UNAVAILABLE; ++i) {
    next = Infer(RawRequest());
  }
  EXPECT_TRUE(next.ok()) << next.error_code() << ": " << next.error_message();
}

TEST_F(GrpcLimitsTest, ACallIsRefusedByItsFirstBytesAndItsConnectionGoesOn) {
  std::atomic<int> unread = 0;
  GrpcOptions options;
  options.bodies = std::make_shared<BodyAdmission>([&] { ++unread; });
  Serve(std::move(options));
  auto patient = std::make_shared<ModelSpec>(**service_.Find("echo", 3));
  patient->name = "patient";
  patient->slo = Seconds(3600);
  service_.Add(patient);
  service_.Refuse({ErrorCode::kResourceExhausted, "no room"});
  inference::ModelInferRequest large = RawRequest();
  large.set_model_name("patient");
  large.set_id(std::string(1'000'000, 'x'));
  const auto refused = [&](std::chrono::milliseconds wait) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + wait);
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, large, &response).error_message();
  };
  // One that is lost, and whose time is over, before as many as are let in whatever happens.
  while (refused(std::chrono::milliseconds(20)) != "no room") {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(21));
  for (int i = 0; i < static_cast<int>(BodyGate::kLeast); ++i) {
    EXPECT_EQ(refused(std::chrono::minutes(2)), "no room") << i;
  }
  EXPECT_EQ(unread, 0);
  EXPECT_NE(refused(std::chrono::minutes(2)).find("before its body was read"), std::string::npos);
  EXPECT_EQ(unread, 1);
  EXPECT_EQ(Infer(RawRequest()).error_message(), "no room");  // a small call is read
  AwaitBytesGivenBack();
}

}  // namespace
}  // namespace tactus
