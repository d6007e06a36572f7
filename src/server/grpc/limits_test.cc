// One client takes too much over gRPC: it is told so, and the others go on.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "server/access/client_limits.h"
#include "server/grpc/server_fixture_for_test.h"

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
  EXPECT_EQ(limits_->all_bytes()->used(), 0u);
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
  EXPECT_EQ(limits_->all_bytes()->used(), 0u);
}

TEST_F(GrpcLimitsTest, AMessageBeyondTheLimitIsRefused) {
  Serve({.max_body = 1000});
  inference::ModelInferRequest large = RawRequest();
  large.set_id(std::string(1000, 'x'));
  EXPECT_EQ(Infer(large).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

TEST_F(GrpcLimitsTest, MetadataBeyondTheLimitIsRefused) {
  Serve({.max_metadata = 2000});
  grpc::ClientContext context;
  Bound(context);
  context.AddMetadata("x", std::string(4000, 'x'));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, RawRequest(), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

}  // namespace
}  // namespace tactus
