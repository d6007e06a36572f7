// The callback API, as Tactus uses it.
#include <utility>

#include <grpcpp/grpcpp.h>

#include "echo/echo.h"
#include "grpc_service.grpc.pb.h"

namespace tactus::echo {
namespace {

class Service final : public inference::GRPCInferenceService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override {
    auto* reactor = context->DefaultReactor();
    const EchoModel* model = FindModel(request->name());
    if (model == nullptr) {
      reactor->Finish({grpc::StatusCode::NOT_FOUND, "no such model"});
      return reactor;
    }
    response->set_name(model->name);
    for (auto* tensor : {response->add_inputs(), response->add_outputs()}) {
      tensor->set_name("x");
      tensor->set_datatype("FP32");
      tensor->add_shape(-1);
      tensor->add_shape(model->elements);
    }
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    auto* reactor = context->DefaultReactor();
    if (request->inputs_size() != 1 || request->raw_input_contents_size() != 1) {
      reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "one raw tensor, please"});
      return reactor;
    }
    response->set_model_name(request->model_name());
    auto& output = *response->add_outputs();
    output.set_name("x");
    output.set_datatype("FP32");
    *output.mutable_shape() = request->inputs(0).shape();
    response->add_raw_output_contents(request->raw_input_contents(0));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class GrpcServer final : public Server {
 public:
  GrpcServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~GrpcServer() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }
  int port() const override { return server_ ? port_ : 0; }

 private:
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<Server> StartGrpcEcho() {
  auto server = std::make_unique<GrpcServer>();
  if (server->port() == 0) return nullptr;
  return server;
}

}  // namespace tactus::echo
