// A gRPC server with a scripted service behind it, and a client's end of a channel to it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include "grpc_service.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "server/grpc/scripted_service_for_test.h"

namespace tactus {

// Longer than any test may take; a call that hangs then fails rather than blocks the suite.
inline void Bound(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
}

class GrpcServerFixture : public testing::Test {
 protected:
  void Start(bool strict_triton = false) {
    Start(GrpcOptions{.port = 0, .strict_triton = strict_triton});
  }
  void Start(GrpcOptions options) {
    server_.emplace(std::move(options), service_);
    const auto port = server_->Start();
    ASSERT_TRUE(port.has_value()) << port.error().message;
    port_ = *port;
    grpc::ChannelArguments args;
    args.SetMaxReceiveMessageSize(-1);
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                         grpc::InsecureChannelCredentials(), args);
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }
  void SetUp() override { Start(); }

  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response) {
    grpc::ClientContext context;
    Bound(context);
    return stub_->ModelInfer(&context, request, response);
  }
  grpc::Status Infer(const inference::ModelInferRequest& request) {
    inference::ModelInferResponse response;
    return Infer(request, &response);
  }

  ScriptedService service_;  // outlives the server
  std::optional<GrpcServer> server_;
  int port_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

inline std::string Raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// One row of four numbers for "echo", without its elements.
inline inference::ModelInferRequest Shell() {
  inference::ModelInferRequest request;
  request.set_model_name("echo");
  request.set_id("call 7");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(1);
  input->add_shape(4);
  return request;
}
inline inference::ModelInferRequest RawRequest() {
  inference::ModelInferRequest request = Shell();
  request.add_raw_input_contents(Raw({1, 2, 3, 4}));
  return request;
}

}  // namespace tactus
