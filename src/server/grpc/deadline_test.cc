// What limits a call's time over gRPC, and what the client hears of where its time went.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpc/support/time.h>
#include <gtest/gtest.h>

#include "server/grpc/server_fixture_for_test.h"
#include "server/kserve/objectives.h"

namespace tactus {
namespace {

using grpc::StatusCode;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using testing::HasSubstr;

class GrpcDeadlineTest : public GrpcServerFixture {};

TEST_F(GrpcDeadlineTest, TheEarlierOfGrpcTimeoutAndTimeoutParameterIsTheDeadline) {
  ModelInferRequest request = RawRequest();
  const auto limit_of = [&](std::chrono::seconds grpc_timeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + grpc_timeout);
    ModelInferResponse response;
    EXPECT_TRUE(stub_->ModelInfer(&context, request, &response).ok());
    const auto seen = service_.last();
    EXPECT_TRUE(seen.limit.has_value());
    return *seen.limit;
  };
  // The header rounds long timeouts up by as much as a second, and the way here takes from it.
  EXPECT_LE(limit_of(std::chrono::seconds(100)), std::chrono::seconds(101));
  EXPECT_GT(limit_of(std::chrono::hours(10)), std::chrono::hours(1));
  (*request.mutable_parameters())["timeout"].set_int64_param(2'000'000);
  EXPECT_EQ(limit_of(std::chrono::seconds(100)), std::chrono::seconds(2));
  (*request.mutable_parameters())["timeout"].set_int64_param(500'000'000);
  EXPECT_LE(limit_of(std::chrono::seconds(100)), std::chrono::seconds(101));
}

// Without this a deadline in 300 years had passed.
TEST_F(GrpcDeadlineTest, ATimeoutBeyondTheClockIsNone) {
  grpc::ClientContext context;
  const gpr_timespec years_1000 = gpr_time_from_hours(1000L * 366 * 24, GPR_TIMESPAN);
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), years_1000));
  ModelInferResponse response;
  const grpc::Status status = stub_->ModelInfer(&context, RawRequest(), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(service_.last().limit.has_value());
}

// Without it a router's objective would say nothing here.
TEST_F(GrpcDeadlineTest, AnObjectiveInTheMetadataIsTheOperatorsPriority) {
  const std::vector<std::string> entries{"premium=1", "batch=9"};
  server_.reset();
  Start(GrpcOptions{.port = 0,
                    .objectives = std::make_shared<const Objectives>(*Objectives::Read(entries))});
  const auto priority_of = [&](const std::string& objective, const ModelInferRequest& request) {
    grpc::ClientContext context;
    Bound(context);
    context.AddMetadata(std::string(kObjectiveHeader), objective);
    ModelInferResponse response;
    EXPECT_TRUE(stub_->ModelInfer(&context, request, &response).ok());
    return service_.last().priority;
  };
  EXPECT_EQ(priority_of("batch", RawRequest()), 9u);
  EXPECT_EQ(priority_of("premium", RawRequest()), 1u);
  EXPECT_EQ(priority_of("7", RawRequest()), 0u) << "a number is not passed through";
  ModelInferRequest own = RawRequest();
  (*own.mutable_parameters())["priority"].set_int64_param(3);
  EXPECT_EQ(priority_of("batch", own), 3u) << "what the request states holds";
}

TEST_F(GrpcDeadlineTest, MetadataOfClientsAndProxiesLimitsTheTimeToo) {
  const auto limit_of = [&](const std::string& name, const std::string& value) {
    grpc::ClientContext context;
    Bound(context);
    context.AddMetadata(name, value);
    context.AddMetadata("x-request-timeout-ms", "5000");
    ModelInferResponse response;
    EXPECT_TRUE(stub_->ModelInfer(&context, RawRequest(), &response).ok());
    return service_.last().limit;
  };
  EXPECT_EQ(limit_of("x-envoy-expected-rq-timeout-ms", "250"), Millis(250));
  EXPECT_EQ(limit_of("x-llm-d-slo-ttft-ms", "12.5"), Micros(12'500));
  EXPECT_EQ(limit_of("x-slo-ttft-ms", "70"), Millis(70));
  EXPECT_EQ(limit_of("connect-timeout-ms", "9000"), Millis(5000));
  grpc::ClientContext context;
  Bound(context);
  context.AddMetadata("x-slo-ttft-ms", "soon");
  ModelInferResponse response;
  const auto status = stub_->ModelInfer(&context, RawRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("x-slo-ttft-ms"));
}

TEST_F(GrpcDeadlineTest, TrailingMetadataSaysWhereTheTimeWent) {
  const auto timing_of = [](const grpc::ClientContext& context) -> std::string {
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto found = trailing.find("server-timing");
    return found == trailing.end() ? "" : std::string(found->second.data(), found->second.size());
  };
  ModelInferResponse response;
  grpc::ClientContext served;
  Bound(served);
  ASSERT_TRUE(stub_->ModelInfer(&served, RawRequest(), &response).ok());
  EXPECT_EQ(timing_of(served), R"(queue;dur=0.011, exec;dur=0.022;desc="emulated")");
  service_.Refuse({ErrorCode::kResourceExhausted, "full"});
  grpc::ClientContext refused;
  Bound(refused);
  EXPECT_FALSE(stub_->ModelInfer(&refused, RawRequest(), &response).ok());
  EXPECT_EQ(timing_of(refused), R"(refused;desc="shed")");
}

TEST_F(GrpcDeadlineTest, WithoutATimeoutTheClientSetsNoDeadline) {
  grpc::ClientContext context;
  ModelInferResponse response;
  ASSERT_TRUE(stub_->ModelInfer(&context, RawRequest(), &response).ok());
  EXPECT_FALSE(service_.last().limit.has_value());
}

TEST_F(GrpcDeadlineTest, ACallWhoseDeadlinePassesLeavesTheService) {
  service_.Hold();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  ModelInferResponse response;
  const auto status = stub_->ModelInfer(&context, RawRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  // Unless the call was so late that it never arrived.
  if (service_.last().limit) {
    EXPECT_EQ(service_.AwaitCancelled(), 1u);
  }
}

TEST_F(GrpcDeadlineTest, StrictTritonLeavesTheClientsOwnDeadlineToGrpc) {
  Start(/*strict_triton=*/true);
  // No SLO: nothing limits the call more than the client's own two minutes.
  auto spec = std::make_shared<ModelSpec>(**service_.Find("echo", -1));
  spec->slo = Duration{};
  service_.Add(std::move(spec));
  service_.Refuse({ErrorCode::kDeadlineExceeded, "too late"});
  auto status = Infer(RawRequest());
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "Deadline Exceeded");
  ModelInferRequest hasty = RawRequest();
  (*hasty.mutable_parameters())["timeout"].set_int64_param(2'000'000);
  status = Infer(hasty);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "Request timeout expired");
}

}  // namespace
}  // namespace tactus
