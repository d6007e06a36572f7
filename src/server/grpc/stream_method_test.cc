// ModelStreamInfer: many calls on one stream, answered as they finish.
#include "server/grpc/stream_method.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include "grpc_service.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "server/grpc/scripted_service_for_test.h"

namespace tactus {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;

class GrpcStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto port = server_.Start();
    ASSERT_TRUE(port.has_value()) << port.error().message;
    stub_ = GRPCInferenceService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(*port),
                                                              grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    stream_ = stub_->ModelStreamInfer(&context_);
  }
  void TearDown() override {
    stream_.reset();  // the server waits for its streams
    server_.Stop(std::chrono::milliseconds(0));
  }

  static ModelInferRequest Request(const std::string& id, const std::string& model = "echo") {
    ModelInferRequest request;
    request.set_model_name(model);
    request.set_id(id);
    auto* input = request.add_inputs();
    input->set_name("x");
    input->set_datatype("FP32");
    input->add_shape(1);
    input->add_shape(4);
    request.add_raw_input_contents(std::string(16, 'v'));
    return request;
  }

  ScriptedService service_;
  GrpcServer server_{{.port = 0}, service_};
  std::unique_ptr<GRPCInferenceService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>> stream_;
};

TEST_F(GrpcStreamTest, EveryCallIsAnsweredOnceAndErrorsLeaveTheStreamOpen) {
  constexpr int kCalls = 1000;  // more than may be under way at once
  std::thread writer([&] {
    for (int i = 0; i < kCalls; ++i) {
      stream_->Write(Request(std::to_string(i), i % 10 == 3 ? "nobody" : "echo"));
    }
    stream_->WritesDone();
  });
  std::vector<int> answers(kCalls);
  ModelStreamInferResponse response;
  while (stream_->Read(&response)) {
    const int i = std::stoi(response.infer_response().id());
    ++answers[i];
    EXPECT_EQ(response.error_message().empty(), i % 10 != 3) << response.error_message();
    if (response.error_message().empty()) {
      EXPECT_EQ(response.infer_response().raw_output_contents(0), std::string(16, 'v'));
    }
  }
  writer.join();
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_THAT(answers, testing::Each(1));
}

// Clients of decoupled models wait for it; Triton gives it whether they ask or not.
TEST_F(GrpcStreamTest, TheLastResponseOfACallIsMarked) {
  ASSERT_TRUE(stream_->Write(Request("a")));
  ModelStreamInferResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_TRUE(response.infer_response().parameters().at("triton_final_response").bool_param());
  ModelInferRequest request = Request("b");
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  ASSERT_TRUE(stream_->Write(request));
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_TRUE(response.infer_response().parameters().at("triton_final_response").bool_param());
}

TEST_F(GrpcStreamTest, CallsUnderWayAreAnsweredAfterTheClientHasNoMore) {
  service_.Hold();
  ASSERT_TRUE(stream_->Write(Request("a")));
  ASSERT_TRUE(stream_->Write(Request("b")));
  stream_->WritesDone();
  service_.AwaitHeld(2);
  service_.Release();
  service_.Release();
  ModelStreamInferResponse response;
  EXPECT_TRUE(stream_->Read(&response));
  EXPECT_TRUE(stream_->Read(&response));
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_TRUE(stream_->Finish().ok());
}

// tritonclient's stream_timeout is the stream's deadline, and its end is where clients look for it.
TEST_F(GrpcStreamTest, StrictTritonLeavesTheDeadlineOfTheStreamToGrpc) {
  GrpcServer strict({.port = 0, .strict_triton = true}, service_);
  const auto port = strict.Start();
  ASSERT_TRUE(port.has_value());
  auto spec = std::make_shared<ModelSpec>(**service_.Find("echo", -1));
  spec->slo = Duration{};  // nothing limits a call more than the stream's two minutes
  service_.Add(std::move(spec));
  service_.Refuse({ErrorCode::kDeadlineExceeded, "too late"});
  const auto stub = GRPCInferenceService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(*port), grpc::InsecureChannelCredentials()));
  {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    const auto stream = stub->ModelStreamInfer(&context);
    ModelInferRequest hasty = Request("hasty");
    (*hasty.mutable_parameters())["timeout"].set_int64_param(2'000'000);
    ASSERT_TRUE(stream->Write(Request("patient")));
    ASSERT_TRUE(stream->Write(hasty));
    stream->WritesDone();
    ModelStreamInferResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.infer_response().id(), "hasty");
    EXPECT_EQ(response.error_message(), "Request timeout expired");
    EXPECT_FALSE(stream->Read(&response));
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(status.error_message(), "Deadline Exceeded");
  }
  strict.Stop(std::chrono::milliseconds(0));
}

TEST_F(GrpcStreamTest, ACancelledStreamFreesItsCalls) {
  service_.Hold();
  ASSERT_TRUE(stream_->Write(Request("a")));
  ASSERT_TRUE(stream_->Write(Request("b")));
  service_.AwaitHeld(2);
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_GE(service_.AwaitCancelled(), 1u);
}

}  // namespace
}  // namespace tactus
