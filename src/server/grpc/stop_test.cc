// What clients hear while a server stops: that it is away, never that they themselves gave up.
#include <chrono>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/grpc/server_fixture_for_test.h"

namespace tactus {
namespace {

using grpc::StatusCode;
using inference::ModelInferResponse;
using testing::HasSubstr;

class GrpcStopTest : public GrpcServerFixture {};

TEST_F(GrpcStopTest, StoppingCancelsWhatOutlivesTheGrace) {
  service_.Hold();
  auto status = std::async(std::launch::async, [&] { return Infer(RawRequest()); });
  service_.AwaitHeld(1);
  server_->Stop(std::chrono::milliseconds(0));
  // CANCELLED is the word for what the client itself gives up.
  EXPECT_EQ(status.get().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(service_.AwaitCancelled(), 1u);
}

TEST_F(GrpcStopTest, WhoeverCallsWhileItStopsHearsThatItIsUnavailable) {
  service_.Hold();
  auto first = std::async(std::launch::async, [&] { return Infer(RawRequest()); });
  service_.AwaitHeld(1);
  auto stopped = std::async(std::launch::async, [&] { server_->Stop(std::chrono::seconds(100)); });
  grpc::Status late;
  do {  // held until the stop has begun; then refused
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    ModelInferResponse response;
    late = stub_->ModelInfer(&context, RawRequest(), &response);
  } while (late.error_code() == StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(late.error_message(), HasSubstr("the server is stopping"));
  service_.Release();
  EXPECT_TRUE(first.get().ok());
  stopped.get();
}

TEST_F(GrpcStopTest, StoppingWaitsForWhatEndsWithinTheGrace) {
  service_.Hold();
  auto status = std::async(std::launch::async, [&] { return Infer(RawRequest()); });
  service_.AwaitHeld(1);
  auto stopped = std::async(std::launch::async, [&] { server_->Stop(std::chrono::seconds(100)); });
  service_.Release();
  const auto ended = status.get();
  EXPECT_TRUE(ended.ok()) << ended.error_message();
  stopped.get();
}

}  // namespace
}  // namespace tactus
