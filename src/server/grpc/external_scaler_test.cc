// KEDA's questions, asked by a gRPC client through a real channel on loopback.
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include "external_scaler.grpc.pb.h"
#include "server/autoscale/load_sampler.h"
#include "server/grpc/grpc_server.h"
#include "server/grpc/scripted_service_for_test.h"

namespace tactus {
namespace {

using externalscaler::ExternalScaler;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;
using grpc::StatusCode;
using testing::HasSubstr;

class GrpcScalerTest : public testing::Test {
 protected:
  void SetUp() override {
    Pass(0, 0);
    server_.emplace(GrpcOptions{.port = 0}, service_, &sampler_);
    const auto port = server_->Start();
    ASSERT_TRUE(port) << port.error().message;
    stub_ = ExternalScaler::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(*port),
                                                        grpc::InsecureChannelCredentials()));
    ref_.set_name("tactus");
    ref_.set_namespace_("models");
    (*ref_.mutable_scalermetadata())["scalerAddress"] = "tactus.models:8001";
  }
  // A second in which so many calls ended, all lanes busy; the sampler looks at its end.
  void Pass(int good, int bad) {
    totals_.totals.at += Seconds(1);
    totals_.totals.good += good;
    totals_.totals.bad += bad;
    totals_.totals.busy += Seconds(totals_.lanes);
    totals_.totals.available += Seconds(totals_.lanes);
    sampler_.Sample();
  }
  bool Active() {
    grpc::ClientContext context;
    IsActiveResponse response;
    const grpc::Status status = stub_->IsActive(&context, ref_, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.result();
  }
  grpc::Status Ask(const std::string& metric, externalscaler::GetMetricsResponse* response) {
    grpc::ClientContext context;
    externalscaler::GetMetricsRequest request;
    *request.mutable_scaledobjectref() = ref_;
    request.set_metricname(metric);
    return stub_->GetMetrics(&context, request, response);
  }
  double Value(const std::string& metric) {
    externalscaler::GetMetricsResponse response;
    const grpc::Status status = Ask(metric, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.metricvalues_size(), 1);
    EXPECT_EQ(response.metricvalues(0).metricname(), metric);
    return response.metricvalues(0).metricvaluefloat();
  }

  LoadTotals totals_{.totals = {.at = kStart}, .lanes = 4};
  LoadSampler sampler_{{}, [this] { return totals_; }};
  ScriptedService service_;
  std::optional<GrpcServer> server_;
  std::unique_ptr<ExternalScaler::Stub> stub_;
  ScaledObjectRef ref_;
};

TEST_F(GrpcScalerTest, TheTargetIsTheServersLanesAndTheMetricItsAdvice) {
  grpc::ClientContext context;
  externalscaler::GetMetricSpecResponse spec;
  ASSERT_TRUE(stub_->GetMetricSpec(&context, ref_, &spec).ok());
  ASSERT_EQ(spec.metricspecs_size(), 1);
  EXPECT_EQ(spec.metricspecs(0).targetsize(), 4);
  EXPECT_EQ(spec.metricspecs(0).targetsizefloat(), 4);
  const std::string metric = spec.metricspecs(0).metricname();
  EXPECT_EQ(metric, "tactus_autoscale_advice_lanes");
  EXPECT_EQ(Value(metric), 4);
  Pass(80, 20);
  EXPECT_EQ(Value(metric), 5);  // 4 / (1 - 0.2)
  EXPECT_EQ(Value("tactus_autoscale_bad_ratio"), 0.2);
  EXPECT_EQ(Value("tactus_autoscale_idle_ratio"), 0);
  externalscaler::GetMetricsResponse whole;
  ASSERT_TRUE(Ask(metric, &whole).ok());
  EXPECT_EQ(whole.metricvalues(0).metricvalue(), 5);
}

TEST_F(GrpcScalerTest, AnUnknownMetricIsRefusedWithThoseThatExist) {
  for (const char* name : {"", "s0-tactus_autoscale_advice_lanes", "queue_length"}) {
    externalscaler::GetMetricsResponse response;
    const grpc::Status status = Ask(name, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("unknown metric '" + std::string(name) + "'"));
    EXPECT_THAT(status.error_message(),
                HasSubstr("tactus_autoscale_advice_lanes, tactus_autoscale_bad_ratio"));
  }
}

TEST_F(GrpcScalerTest, IsActiveWhileThereIsLoad) {
  EXPECT_FALSE(Active());
  Pass(1, 0);
  EXPECT_TRUE(Active());
}

TEST_F(GrpcScalerTest, AStreamTellsEachChangeOnce) {
  grpc::ClientContext context;
  const auto reader = stub_->StreamIsActive(&context, ref_);
  IsActiveResponse state;
  ASSERT_TRUE(reader->Read(&state));
  EXPECT_FALSE(state.result());
  Pass(0, 0);  // no change, no message
  Pass(5, 0);
  ASSERT_TRUE(reader->Read(&state));
  EXPECT_TRUE(state.result());
  Pass(0, 0);  // still within the window
  totals_.totals.at += Seconds(20);
  Pass(0, 0);
  ASSERT_TRUE(reader->Read(&state));
  EXPECT_FALSE(state.result());
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
}

// KEDA keeps its stream for good. A stop that waited for it would use up its grace, and a stream
// that survived it would be called by a sampler that is gone.
TEST_F(GrpcScalerTest, AGracefulStopEndsTheStreamsAtOnce) {
  grpc::ClientContext context;
  const auto reader = stub_->StreamIsActive(&context, ref_);
  IsActiveResponse state;
  ASSERT_TRUE(reader->Read(&state));
  server_->Stop(std::chrono::hours(1));
  EXPECT_FALSE(reader->Read(&state));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("stopping"));
  Pass(5, 0);  // nobody follows any more
}

TEST_F(GrpcScalerTest, StreamsThatTheirClientLeavesAreForgotten) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto reader = stub_->StreamIsActive(&context, ref_);
    IsActiveResponse state;
    ASSERT_TRUE(reader->Read(&state));
    std::thread sampling([this] { Pass(5, 0); });  // a change comes as the client leaves
    context.TryCancel();
    sampling.join();
    while (reader->Read(&state)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
    totals_.totals.at += Seconds(20);
    Pass(0, 0);
  }
  server_->Stop(std::chrono::hours(1));  // waits for streams that are left: there are none
}

// A server that was told not to look at its load has no advice to give. Whoever set KEDA up must
// learn why from the answer, which is all that the operator logs.
TEST_F(GrpcScalerTest, WithoutASamplerSaysHowToGetOne) {
  GrpcServer silent({.port = 0}, service_);
  const auto port = silent.Start();
  ASSERT_TRUE(port);
  const auto stub = ExternalScaler::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(*port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto expect_remedy = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), HasSubstr("--autoscale-interval-seconds 0; with 1"));
  };
  IsActiveResponse response;
  expect_remedy(stub->IsActive(&context, ref_, &response));
  grpc::ClientContext streamed;
  const auto reader = stub->StreamIsActive(&streamed, ref_);
  EXPECT_FALSE(reader->Read(&response));
  expect_remedy(reader->Finish());
  grpc::ClientContext specified;
  externalscaler::GetMetricSpecResponse spec;
  expect_remedy(stub->GetMetricSpec(&specified, ref_, &spec));
  grpc::ClientContext measured;
  externalscaler::GetMetricsRequest request;
  externalscaler::GetMetricsResponse metrics;
  request.set_metricname("tactus_autoscale_advice_lanes");
  expect_remedy(stub->GetMetrics(&measured, request, &metrics));
}

}  // namespace
}  // namespace tactus
