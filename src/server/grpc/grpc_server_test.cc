// The gRPC front end against a scripted service, through a real channel on loopback.
#include "server/grpc/grpc_server.h"

#include <cstring>
#include <future>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include "grpc_service.grpc.pb.h"
#include "server/grpc/server_fixture_for_test.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/trace_settings.h"

namespace tactus {
namespace {

using grpc::StatusCode;
using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using testing::HasSubstr;

class GrpcServerTest : public GrpcServerFixture {};

TEST_F(GrpcServerTest, AnswersWithTheTensorAndWithHowItWasServed) {
  ModelInferResponse response;
  const auto status = Infer(RawRequest(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.model_name(), "echo");
  EXPECT_EQ(response.model_version(), "3");
  EXPECT_EQ(response.id(), "call 7");
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "y");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response.outputs(0).shape(), testing::ElementsAre(1, 4));
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.raw_output_contents(0), Raw({1, 2, 3, 4}));
  EXPECT_EQ(response.parameters().at("tactus_exit").string_param(), "final");
  EXPECT_EQ(response.parameters().at("tactus_batch_size").int64_param(), 2);
  EXPECT_EQ(response.parameters().at("tactus_queue_us").int64_param(), 11);
  EXPECT_EQ(response.parameters().at("tactus_execution_us").int64_param(), 22);
  EXPECT_TRUE(response.parameters().at("tactus_emulated").bool_param());
}

// Without this a call whose frame was cut off was one for the model ''.
TEST_F(GrpcServerTest, ACallWithoutAWholeMessageIsInternal) {
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  Bound(context);
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto next = [&] {
    std::pair<void*, bool> event;
    return queue.Next(&event.first, &event.second) && event.second;
  };
  const char* const method = "/inference.GRPCInferenceService/ModelInfer";
  const auto call = generic.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  call->WritesDone(nullptr);
  ASSERT_TRUE(next());
  call->Finish(&status, nullptr);
  ASSERT_TRUE(next());
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("whole message"));
}

TEST_F(GrpcServerTest, TypedContentsMeanTheSameAsRawOnes) {
  ModelInferRequest request = Shell();
  for (float v : {1.F, 2.F, 3.F, 4.F}) {
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(v);
  }
  ModelInferResponse response;
  const auto status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), Raw({1, 2, 3, 4}));
}

// 48 MB in, 48 MB out: beyond gRPC's default limit, and in slices of its own on the way back.
TEST_F(GrpcServerTest, CarriesLargeTensorsUnchanged) {
  auto spec = std::make_shared<ModelSpec>();
  spec->name = "large";
  spec->inputs = {{"x", DataType::kUint8, {-1}}};
  spec->outputs = {{"y", DataType::kUint8, {-1}}};
  spec->exits = {{"final", "", 0}};
  service_.Add(spec);
  std::string bytes(48 << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  ModelInferRequest request;
  request.set_model_name("large");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("UINT8");
  input->add_shape(static_cast<std::int64_t>(bytes.size()));
  request.add_raw_input_contents(bytes);
  ModelInferResponse response;
  const auto status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.raw_output_contents(0) == bytes);
}

struct BadInput {
  const char* name;
  void (*spoil)(ModelInferRequest&);
  StatusCode code;
  const char* text;
};
void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.name; }

class GrpcBadInputTest : public GrpcServerTest, public testing::WithParamInterface<BadInput> {};

TEST_P(GrpcBadInputTest, IsRefusedWithItsReason) {
  ModelInferRequest request = RawRequest();
  GetParam().spoil(request);
  const auto status = Infer(request);
  EXPECT_EQ(status.error_code(), GetParam().code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(GetParam().text));
  // The server serves on.
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

const BadInput kBadInputs[] = {
    {"unknown_model", [](ModelInferRequest& r) { r.set_model_name("nobody"); },
     StatusCode::NOT_FOUND, "nobody"},
    {"unknown_version", [](ModelInferRequest& r) { r.set_model_version("9"); },
     StatusCode::NOT_FOUND, "echo"},
    {"version_is_no_number", [](ModelInferRequest& r) { r.set_model_version("latest"); },
     StatusCode::INVALID_ARGUMENT, "latest"},
    {"wrong_input_name", [](ModelInferRequest& r) { r.mutable_inputs(0)->set_name("z"); },
     StatusCode::INVALID_ARGUMENT, "'z'"},
    {"no_input", [](ModelInferRequest& r) { r.clear_inputs(), r.clear_raw_input_contents(); },
     StatusCode::INVALID_ARGUMENT, "input"},
    {"wrong_type", [](ModelInferRequest& r) { r.mutable_inputs(0)->set_datatype("INT32"); },
     StatusCode::INVALID_ARGUMENT, "INT32"},
    {"unknown_type", [](ModelInferRequest& r) { r.mutable_inputs(0)->set_datatype("FLOAT"); },
     StatusCode::INVALID_ARGUMENT, "FLOAT"},
    {"wrong_shape", [](ModelInferRequest& r) { r.mutable_inputs(0)->set_shape(1, 5); },
     StatusCode::INVALID_ARGUMENT, "unexpected shape"},
    {"wrong_rank", [](ModelInferRequest& r) { r.mutable_inputs(0)->add_shape(1); },
     StatusCode::INVALID_ARGUMENT, "unexpected shape"},
    {"negative_dimension", [](ModelInferRequest& r) { r.mutable_inputs(0)->set_shape(0, -1); },
     StatusCode::INVALID_ARGUMENT, "negative"},
    {"shape_overflow",
     [](ModelInferRequest& r) {
       r.mutable_inputs(0)->set_shape(0, std::numeric_limits<std::int64_t>::max());
     },
     StatusCode::INVALID_ARGUMENT, "causes total element count to exceed"},
    {"too_many_rows",
     [](ModelInferRequest& r) {
       r.mutable_inputs(0)->set_shape(0, 9);
       r.set_raw_input_contents(0, std::string(9 * 16, 'x'));
     },
     StatusCode::INVALID_ARGUMENT, "batch-size must be <= 8"},
    {"too_few_bytes", [](ModelInferRequest& r) { r.set_raw_input_contents(0, "abc"); },
     StatusCode::INVALID_ARGUMENT, "Expected 16, got 3"},
    {"raw_for_some_inputs", [](ModelInferRequest& r) { r.add_raw_input_contents("abc"); },
     StatusCode::INVALID_ARGUMENT, "2 entries for 1 inputs"},
    {"raw_and_typed",
     [](ModelInferRequest& r) { r.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); },
     StatusCode::INVALID_ARGUMENT,
     "contents field must not be specified when using raw_input_contents for 'x' for model 'echo'"},
    {"raw_and_typed_and_too_few",
     [](ModelInferRequest& r) {
       r.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
       r.add_inputs()->set_name("z");
     },
     StatusCode::INVALID_ARGUMENT, "contents field must not be specified"},
    {"raw_for_the_first_alone", [](ModelInferRequest& r) { r.add_inputs()->set_name("z"); },
     StatusCode::INVALID_ARGUMENT, "1 entries for 2 inputs"},
    {"typed_in_the_wrong_field",
     [](ModelInferRequest& r) {
       r.clear_raw_input_contents();
       for (int i = 0; i < 4; ++i) r.mutable_inputs(0)->mutable_contents()->add_int_contents(i);
     },
     StatusCode::INVALID_ARGUMENT, "fp32_contents"},
    {"unknown_output", [](ModelInferRequest& r) { r.add_outputs()->set_name("q"); },
     StatusCode::INVALID_ARGUMENT, "'q'"},
    {"timeout_is_text",
     [](ModelInferRequest& r) { (*r.mutable_parameters())["timeout"].set_string_param("1"); },
     StatusCode::INVALID_ARGUMENT, "timeout"},
    {"negative_timeout",
     [](ModelInferRequest& r) { (*r.mutable_parameters())["timeout"].set_int64_param(-1); },
     StatusCode::INVALID_ARGUMENT, "timeout"},
    {"parameter_without_value", [](ModelInferRequest& r) { (*r.mutable_parameters())["priority"]; },
     StatusCode::INVALID_ARGUMENT, "priority"},
    {"reserved_parameter",
     [](ModelInferRequest& r) { (*r.mutable_parameters())["triton_magic"].set_bool_param(true); },
     StatusCode::INVALID_ARGUMENT, "reserved"},
    {"shared_memory",
     [](ModelInferRequest& r) {
       (*r.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
     },
     StatusCode::UNIMPLEMENTED, "shared memory"},
};
INSTANTIATE_TEST_SUITE_P(All, GrpcBadInputTest, testing::ValuesIn(kBadInputs),
                         [](const auto& test) { return std::string(test.param.name); });

// Bytes that are no message, sent as a client with another .proto would.
grpc::Status SendBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& bytes) {
  grpc::GenericStub generic(channel);
  grpc::ClientContext context;
  Bound(context);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1), response;
  auto call = generic.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::Status status;
  int tag = 0;
  call->Finish(&response, &status, &tag);
  void* got = nullptr;
  bool ok = false;
  queue.Next(&got, &ok);
  return status;
}

TEST_F(GrpcServerTest, GarbageIsAnErrorOfTheCallAndOfNothingElse) {
  const std::string infer = "/inference.GRPCInferenceService/ModelInfer";
  const std::string good = RawRequest().SerializeAsString();
  std::vector<std::string> garbage = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                      std::string(10'000, '\x0a'),
                                      std::string("\x2a\xff\xff\xff\xff\x0f", 6)};
  for (std::size_t cut = 1; cut < good.size(); cut += 3) garbage.push_back(good.substr(0, cut));
  for (const std::string& bytes : garbage) {
    const auto status = SendBytes(channel_, infer, bytes);
    // A prefix may by chance be a message of its own; it then fails the checks that follow.
    EXPECT_THAT(status.error_code(),
                testing::AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND))
        << testing::PrintToString(bytes);
  }
  EXPECT_FALSE(SendBytes(channel_, "/inference.GRPCInferenceService/ModelReady", "\xff").ok());
  EXPECT_EQ(SendBytes(channel_, "/inference.GRPCInferenceService/Nothing", "").error_code(),
            StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(Infer(RawRequest()).ok());
}

// Where stderr is a pipe that nobody reads, a client could else stop the server by such calls.
TEST_F(GrpcServerTest, TextThatIsNotUtf8IsSaidToTheClientAndNobodyElse) {
  std::string bytes = RawRequest().SerializeAsString();
  bytes.replace(bytes.find("call 7"), 6, "call \xff");
  testing::internal::CaptureStderr();
  const auto status = SendBytes(channel_, "/inference.GRPCInferenceService/ModelInfer", bytes);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, PriorityAndOutputsReachTheService) {
  ModelInferRequest request = RawRequest();
  (*request.mutable_parameters())["priority"].set_uint64_param(3);
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  request.add_outputs()->set_name("y");
  ASSERT_TRUE(Infer(request).ok());
  EXPECT_EQ(service_.last().priority, 3u);
  EXPECT_THAT(service_.last().outputs, testing::ElementsAre(0));
}

TEST_F(GrpcServerTest, ACancelledCallLeavesTheService) {
  service_.Hold();
  grpc::ClientContext context;
  auto status = std::async(std::launch::async, [&] {
    ModelInferResponse response;
    return stub_->ModelInfer(&context, RawRequest(), &response);
  });
  service_.AwaitHeld(1);
  context.TryCancel();
  EXPECT_EQ(status.get().error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(service_.AwaitCancelled(), 1u);
}

TEST_F(GrpcServerTest, WhatTheServiceRefusesKeepsItsCodeAndText) {
  service_.Refuse({ErrorCode::kResourceExhausted, "the queue of 'echo' is full"});
  grpc::ClientContext context;
  ModelInferResponse response;
  const auto status = stub_->ModelInfer(&context, RawRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "the queue of 'echo' is full");
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
}

TEST_F(GrpcServerTest, StrictTritonSpeaksAsTritonDoes) {
  server_.reset();
  Start(/*strict_triton=*/true);
  service_.Refuse({ErrorCode::kDeadlineExceeded, "too late"});
  const auto status = Infer(RawRequest());
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("Request timeout expired"));
  inference::ServerMetadataResponse server;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &server).ok());
  EXPECT_EQ(server.name(), "triton");
}

template <class Request>
Request Named(const char* name) {
  Request request;
  request.set_name(name);
  return request;
}

// Clients made for Triton ask for regions, and unregister all, before they begin.
TEST_F(GrpcServerTest, SharedMemoryHasNoRegionsAndTakesNone) {
  using namespace inference;
  grpc::ClientContext c1, c2, c3, c4, c5, c6, c7;
  SystemSharedMemoryStatusResponse system;
  EXPECT_TRUE(stub_->SystemSharedMemoryStatus(&c1, {}, &system).ok());
  EXPECT_EQ(system.regions_size(), 0);
  CudaSharedMemoryStatusResponse cuda;
  EXPECT_TRUE(stub_->CudaSharedMemoryStatus(&c2, {}, &cuda).ok());
  EXPECT_EQ(cuda.regions_size(), 0);
  const auto region =
      stub_->SystemSharedMemoryStatus(&c3, Named<SystemSharedMemoryStatusRequest>("r"), &system);
  EXPECT_EQ(region.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(region.error_message(), "Unable to find system shared memory region: 'r'");
  const auto of_device =
      stub_->CudaSharedMemoryStatus(&c4, Named<CudaSharedMemoryStatusRequest>("r"), &cuda);
  EXPECT_EQ(of_device.error_message(), "Unable to find cuda shared memory region: 'r'");
  SystemSharedMemoryUnregisterResponse gone;
  EXPECT_TRUE(stub_->SystemSharedMemoryUnregister(&c5, {}, &gone).ok());
  CudaSharedMemoryUnregisterResponse cuda_gone;
  EXPECT_TRUE(stub_
                  ->CudaSharedMemoryUnregister(&c6, Named<CudaSharedMemoryUnregisterRequest>("r"),
                                               &cuda_gone)
                  .ok());
  SystemSharedMemoryRegisterResponse taken;
  EXPECT_EQ(stub_->SystemSharedMemoryRegister(&c7, {}, &taken).error_code(),
            StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcServerTest, HealthAndMetadata) {
  grpc::ClientContext c1, c2, c3, c4, c5;
  inference::ServerLiveResponse live;
  ASSERT_TRUE(stub_->ServerLive(&c1, {}, &live).ok());
  EXPECT_TRUE(live.live());
  service_.ready = false;
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(stub_->ServerReady(&c2, {}, &ready).ok());
  EXPECT_FALSE(ready.ready());

  inference::ServerMetadataResponse server;
  ASSERT_TRUE(stub_->ServerMetadata(&c3, {}, &server).ok());
  EXPECT_EQ(server.name(), "tactus");
  EXPECT_THAT(server.extensions(), testing::Contains("statistics"));
  EXPECT_THAT(server.extensions(), testing::Not(testing::Contains(HasSubstr("shared_memory"))));
  EXPECT_THAT(server.extensions(), testing::Contains("classification"));

  inference::ModelMetadataRequest request;
  request.set_name("echo");
  inference::ModelMetadataResponse model;
  ASSERT_TRUE(stub_->ModelMetadata(&c4, request, &model).ok());
  EXPECT_EQ(model.platform(), "identity");
  EXPECT_THAT(model.versions(), testing::ElementsAre("3"));
  EXPECT_THAT(model.inputs(0).shape(), testing::ElementsAre(-1, 4));

  inference::ModelReadyRequest unknown;
  unknown.set_name("nobody");
  inference::ModelReadyResponse model_ready;
  ASSERT_TRUE(stub_->ModelReady(&c5, unknown, &model_ready).ok());
  EXPECT_FALSE(model_ready.ready());
  // Of a site: calls of a model that no worker serves wait for one.
  for (const bool unserved : {false, true}) {
    service_.unserved = unserved;
    unknown.set_name("echo");
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->ModelReady(&context, unknown, &model_ready).ok());
    EXPECT_EQ(model_ready.ready(), !unserved);
  }
}

TEST_F(GrpcServerTest, StatisticsCarryEveryCounter) {
  grpc::ClientContext context;
  inference::ModelStatisticsRequest request;
  inference::ModelStatisticsResponse response;
  ASSERT_TRUE(stub_->ModelStatistics(&context, request, &response).ok());
  ASSERT_EQ(response.model_stats_size(), 1);
  const auto& model = response.model_stats(0);
  EXPECT_EQ(model.version(), "3");
  EXPECT_EQ(model.last_inference(), 1234u);
  EXPECT_EQ(model.inference_stats().success().count(), 7u);
  EXPECT_EQ(model.inference_stats().success().ns(), 7000u);
  EXPECT_EQ(model.inference_stats().queue().ns(), 300u);
  EXPECT_EQ(model.batch_stats(0).batch_size(), 2u);
  EXPECT_EQ(model.batch_stats(0).compute_infer().ns(), 400u);
  EXPECT_TRUE(model.emulated());
}

TEST_F(GrpcServerTest, TheRepositoryIsListedLoadedAndUnloaded) {
  grpc::ClientContext c1, c2, c3, c4, c5;
  inference::RepositoryIndexRequest index_request;
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(stub_->RepositoryIndex(&c1, index_request, &index).ok());
  ASSERT_EQ(index.models_size(), 2);
  EXPECT_EQ(index.models(1).state(), "UNAVAILABLE");
  EXPECT_EQ(index.models(1).reason(), "no such file");
  index_request.set_ready(true);
  ASSERT_TRUE(stub_->RepositoryIndex(&c2, index_request, &index).ok());
  EXPECT_EQ(index.models_size(), 1);

  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  (*load.mutable_parameters())["config"].set_string_param("{}");
  inference::RepositoryModelLoadResponse loaded;
  EXPECT_TRUE(stub_->RepositoryModelLoad(&c3, load, &loaded).ok());
  load.set_model_name("broken");
  EXPECT_EQ(stub_->RepositoryModelLoad(&c4, load, &loaded).error_code(), StatusCode::NOT_FOUND);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("echo");
  inference::RepositoryModelUnloadResponse unloaded;
  EXPECT_TRUE(stub_->RepositoryModelUnload(&c5, unload, &unloaded).ok());
  EXPECT_THAT(service_.loads(), testing::ElementsAre("echo|{}", "broken|{}", "-echo"));
}

TEST_F(GrpcServerTest, UnservedExtensionsSaySo) {
  grpc::ClientContext context;
  inference::TraceSettingResponse response;
  const auto status = stub_->TraceSetting(&context, {}, &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("trace"));
}

TEST_F(GrpcServerTest, LogSettingsAreReadAndChanged) {
  server_->Stop(std::chrono::milliseconds(0));
  LogChoice applied;
  GrpcOptions options{.port = 0};
  options.log_settings = std::make_shared<LogSettings>(
      LogChoice{}, [&](const LogChoice& choice) { applied = choice; });
  Start(std::move(options));
  const auto ask = [&](const inference::LogSettingsRequest& request,
                       inference::LogSettingsResponse* response) {
    grpc::ClientContext context;
    Bound(context);
    return stub_->LogSettings(&context, request, response).error_code();
  };
  inference::LogSettingsRequest request;
  inference::LogSettingsResponse response;
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(3);
  (*request.mutable_settings())["log_info"].set_bool_param(false);
  (*request.mutable_settings())["log_format"].set_string_param("default");
  ASSERT_EQ(ask(request, &response), StatusCode::OK);
  EXPECT_EQ(applied,
            (LogChoice{.info = false, .verbose_level = 3, .form = LogChoice::Form::kDefault}));
  EXPECT_EQ(response.settings().size(), 6u);
  EXPECT_EQ(response.settings().at("log_verbose_level").uint32_param(), 3u);
  EXPECT_TRUE(response.settings().at("log_error").bool_param());
  EXPECT_EQ(response.settings().at("log_format").string_param(), "default");

  (*request.mutable_settings())["log_info"].set_bool_param(true);
  (*request.mutable_settings())["log_warning"];
  EXPECT_EQ(ask(request, &response), StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(applied.info);
}

TEST_F(GrpcServerTest, TraceSettingsAreReadAndChanged) {
  server_->Stop(std::chrono::milliseconds(0));
  GrpcOptions options{.port = 0};
  options.trace_settings = std::make_shared<TraceSettings>("t.json");
  Start(std::move(options));
  inference::TraceSettingRequest request;
  inference::TraceSettingResponse response;
  const auto ask = [&] {
    grpc::ClientContext context;
    Bound(context);
    response.Clear();
    return stub_->TraceSetting(&context, request, &response).error_code();
  };
  const auto said = [&](const std::string& name) {
    const auto& values = response.settings().at(name).value();
    return std::vector<std::string>(values.begin(), values.end());
  };
  (*request.mutable_settings())["trace_level"].add_value("TIMESTAMPS");
  (*request.mutable_settings())["trace_rate"].add_value("7");
  request.set_model_name("echo");
  ASSERT_EQ(ask(), StatusCode::OK);
  EXPECT_EQ(response.settings().size(), 6u);
  EXPECT_EQ(said("trace_level"), std::vector<std::string>{"TIMESTAMPS"});
  EXPECT_EQ(said("trace_rate"), std::vector<std::string>{"7"});

  // Another level, but also a rate that cannot be: neither is taken.
  (*request.mutable_settings())["trace_level"].set_value(0, "OFF");
  (*request.mutable_settings())["trace_rate"].set_value(0, "0");
  EXPECT_EQ(ask(), StatusCode::INVALID_ARGUMENT);

  // No value clears; a request without settings reads.
  request.mutable_settings()->clear();
  (*request.mutable_settings())["trace_rate"];
  ASSERT_EQ(ask(), StatusCode::OK);
  EXPECT_EQ(said("trace_level"), std::vector<std::string>{"TIMESTAMPS"});
  EXPECT_EQ(said("trace_rate"), std::vector<std::string>{"1000"});
  request.Clear();
  ASSERT_EQ(ask(), StatusCode::OK);
  EXPECT_EQ(said("trace_level"), std::vector<std::string>{"OFF"});
  request.set_model_name("none");
  EXPECT_EQ(ask(), StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, APortInUseIsAnErrorThatNamesIt) {
  GrpcServer second({.port = static_cast<std::uint16_t>(port_)}, service_);
  const auto port = second.Start();
  ASSERT_FALSE(port.has_value());
  EXPECT_EQ(port.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(port.error().message, HasSubstr("127.0.0.1:" + std::to_string(port_)));
}

}  // namespace
}  // namespace tactus
