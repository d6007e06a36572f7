// Both transports against small servers that speak the protocol by the letter and nothing of
// Tactus: what is sent must be a well-formed request, and every kind of answer must be understood.
#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "grpc_service.grpc.pb.h"
#include "load/transport.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Json = nlohmann::json;
using ::testing::HasSubstr;

// Serves "m", whose answer is its first input; other names are answered by their error.
class HttpStub {
 public:
  HttpStub() : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    thread_ = std::thread([this] { Accept(); });
  }
  ~HttpStub() {
    // A blocking accept ends when somebody knocks; a blocking read when its socket is shut down.
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      beast::error_code ignored;
      for (auto& socket : sockets_) socket->shutdown(tcp::socket::shutdown_both, ignored);
    }
    tcp::socket knock(io_);
    beast::error_code ignored;
    knock.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
    for (auto& thread : workers_) thread.join();
  }
  std::string url() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  // Closes each connection after this many answers, without saying so in the answer.
  void CloseAfter(int answers) { close_after_ = answers; }

 private:
  void Accept() {
    for (;;) {
      auto socket = std::make_shared<tcp::socket>(io_);
      acceptor_.accept(*socket);
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      sockets_.push_back(socket);
      workers_.emplace_back([this, socket] { Serve(*socket); });
    }
  }
  void Serve(tcp::socket& socket) {
    beast::error_code error;
    beast::flat_buffer buffer;
    for (int answers = 0; close_after_ == 0 || answers < close_after_; ++answers) {
      http::request<http::string_body> request;
      http::read(socket, buffer, request, error);
      if (error) return;
      auto response = Answer(request);
      response.keep_alive(request.keep_alive());
      response.prepare_payload();
      http::write(socket, response, error);
      if (error || !request.keep_alive()) break;
    }
    const std::lock_guard lock(mutex_);
    socket.shutdown(tcp::socket::shutdown_both, error);
  }
  static http::response<http::string_body> Answer(const http::request<http::string_body>& request);

  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::atomic<int> close_after_{0};
  std::mutex mutex_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> workers_;
  std::thread thread_;
};

http::response<http::string_body> HttpStub::Answer(
    const http::request<http::string_body>& request) {
  http::response<http::string_body> response(http::status::ok, 11);
  const std::string target(request.target());
  if (target == "/v2/models/m") {
    response.body() = R"({"name":"m","platform":"emulated",)"
                      R"("inputs":[{"name":"x","datatype":"FP32","shape":[-1,2]}],)"
                      R"("outputs":[{"name":"y","datatype":"FP32","shape":[-1,2]}]})";
  } else if (target == "/v2/models/m/config") {
    response.body() = R"({"max_batch_size":8,"parameters":{"slo_ms":{"string_value":"25"},)"
                      R"("exit_names":{"string_value":"1, 2"}}})";
  } else if (target == "/v2/models/m/infer") {
    const auto length = std::stoul(std::string(request["Inference-Header-Content-Length"]));
    const Json json = Json::parse(request.body().substr(0, length));
    const std::string data = request.body().substr(length);
    const Json& input = json.at("inputs").at(0);
    if (input.at("name") != "x" || input.at("datatype") != "FP32" ||
        input.at("shape") != Json({1, 2}) || data.size() != 8 ||
        input.at("parameters").at("binary_data_size") != 8 ||
        json.at("parameters").at("binary_data_output") != true ||
        json.at("parameters").at("priority") != 2 ||
        json.at("parameters").at("timeout") != 40'000'000) {
      response.result(http::status::bad_request);
      response.body() = "not what was agreed: " + json.dump();
      return response;
    }
    const std::string head =
        R"({"model_name":"m","outputs":[{"name":"y","shape":[1,2],"datatype":"FP32",)"
        R"("parameters":{"binary_data_size":8}}],)"
        R"("parameters":{"tactus_exit":"2","tactus_batch_size":3}})";
    response.set("Inference-Header-Content-Length", std::to_string(head.size()));
    response.body() = head + data;
  } else {
    const std::map<std::string, unsigned> statuses{{"/v2/models/shed/infer", 503},
                                                   {"/v2/models/dropped/infer", 503},
                                                   {"/v2/models/expired/infer", 504},
                                                   {"/v2/models/gone/infer", 499}};
    const auto found = statuses.find(target);
    response.result(found == statuses.end() ? 404 : found->second);
    response.body() = R"({"error":"no such model"})";
    if (target == "/v2/models/told/infer") {
      response.body() = std::string("time left: ") + std::string(request["X-Request-Timeout-Ms"]);
    }
  }
  return response;
}

class GrpcStub final : public inference::GRPCInferenceService::CallbackService {
 public:
  GrpcStub() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~GrpcStub() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string url() const { return "127.0.0.1:" + std::to_string(port_); }
  void CloseAfter(int) {}

  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override {
    auto* reactor = context->DefaultReactor();
    if (request->name() != "m") {
      reactor->Finish({grpc::StatusCode::NOT_FOUND, "no such model"});
      return reactor;
    }
    response->set_platform("emulated");
    for (auto* tensor : {response->add_inputs(), response->add_outputs()}) {
      tensor->set_name("x");
      tensor->set_datatype("FP32");
      tensor->add_shape(-1);
      tensor->add_shape(2);
    }
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const inference::ModelConfigRequest*,
                                        inference::ModelConfigResponse* response) override {
    auto& config = *response->mutable_config();
    config.set_max_batch_size(8);
    (*config.mutable_parameters())["slo_ms"].set_string_value("25");
    (*config.mutable_parameters())["exit_names"].set_string_value("1, 2");
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    auto* reactor = context->DefaultReactor();
    if (request->model_name() == "dropped") {
      context->AddTrailingMetadata("grpc-retry-pushback-ms", "1000");
    }
    reactor->Finish(Infer(*request, *response));
    return reactor;
  }

 private:
  static grpc::Status Infer(const inference::ModelInferRequest& request,
                            inference::ModelInferResponse& response) {
    const std::map<std::string, grpc::StatusCode> codes{
        {"shed", grpc::StatusCode::RESOURCE_EXHAUSTED},
        {"expired", grpc::StatusCode::DEADLINE_EXCEEDED},
        {"gone", grpc::StatusCode::CANCELLED},
        {"dropped", grpc::StatusCode::UNAVAILABLE},
        {"absent", grpc::StatusCode::NOT_FOUND}};
    const auto code = codes.find(request.model_name());
    if (code != codes.end()) return {code->second, "no such model"};
    const auto& parameters = request.parameters();
    if (request.inputs_size() != 1 || request.inputs(0).name() != "x" ||
        request.inputs(0).datatype() != "FP32" || request.raw_input_contents_size() != 1 ||
        request.raw_input_contents(0).size() != 8 || request.inputs(0).shape_size() != 2 ||
        parameters.at("priority").int64_param() != 2 ||
        parameters.at("timeout").int64_param() != 40'000'000) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              "not what was agreed: " + request.ShortDebugString()};
    }
    response.set_model_name(request.model_name());
    response.add_raw_output_contents(request.raw_input_contents(0));
    (*response.mutable_parameters())["tactus_exit"].set_string_param("2");
    (*response.mutable_parameters())["tactus_batch_size"].set_int64_param(3);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Keeps copies: an answer's views end with the call.
class Inbox final : public AnswerSink {
 public:
  struct Kept {
    Answered kind;
    std::string exit;
    int batch;
    std::vector<float> output;
    std::string error;
    int times;
  };
  void OnAnswer(const Answer& answer) noexcept override {
    const std::lock_guard lock(mutex_);
    Kept& kept = kept_[answer.token];
    kept.kind = answer.kind;
    kept.exit = answer.exit;
    kept.batch = answer.batch;
    kept.output.resize(answer.first_output.size() / sizeof(float));
    // An empty vector's data may be null, which memcpy must not be given.
    if (!kept.output.empty()) {
      std::memcpy(kept.output.data(), answer.first_output.data(), answer.first_output.size());
    }
    kept.error = answer.error;
    ++kept.times;
    arrived_.notify_all();
  }
  std::map<std::uint64_t, Kept> Await(std::size_t answers) {
    std::unique_lock lock(mutex_);
    // Ends a test that would hang; it is no bound on how long an answer may take.
    arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return kept_.size() >= answers; });
    return kept_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::uint64_t, Kept> kept_;
};

// Samples {0, 1}, {1, 2}, {2, 3} ...
PreparedInputs Pairs(const std::string& model, std::uint32_t samples) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < samples; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(i + 1));
  }
  const auto bytes = std::as_bytes(std::span(values));
  PreparedInputs inputs;
  inputs.model = model;
  inputs.samples = samples;
  inputs.tensors.push_back({"x",
                            DataType::kFp32,
                            {1, 2},
                            8,
                            std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end())});
  return inputs;
}

template <class Stub>
struct Protocol {
  static constexpr const char* kName = std::is_same_v<Stub, HttpStub> ? "http" : "grpc";
};

template <class Stub>
class WireTest : public ::testing::Test {
 protected:
  std::unique_ptr<Transport> Connect(int connections = 0) {
    auto transport = MakeTransport(Protocol<Stub>::kName, {.url = stub_.url(),
                                                           .connections = connections,
                                                           .timeout = std::chrono::seconds(40),
                                                           .priority = 2});
    EXPECT_TRUE(transport);
    return std::move(*transport);
  }
  Stub stub_;
  Inbox inbox_;
};
using Stubs = ::testing::Types<HttpStub, GrpcStub>;
TYPED_TEST_SUITE(WireTest, Stubs);

TYPED_TEST(WireTest, DescribesAModelFromMetadataAndConfiguration) {
  const auto transport = this->Connect();
  const auto served = transport->Describe("m");
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->model.slo, Millis(25));
  EXPECT_EQ(served->model.max_batch, 8);
  ASSERT_EQ(served->model.exits.size(), 2U);
  ASSERT_EQ(served->inputs.size(), 1U);
  EXPECT_EQ(served->inputs[0].name, "x");
  EXPECT_THAT(served->inputs[0].dims, ::testing::ElementsAre(-1, 2));
  EXPECT_TRUE(served->emulated);
  const auto absent = transport->Describe("absent");
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("absent"));
}

TYPED_TEST(WireTest, EveryCallGetsItsOwnAnswer) {
  constexpr std::uint64_t kCalls = 200;
  // More calls than connections: over HTTP the rest waits its turn.
  const auto transport = this->Connect(3);
  const PreparedInputs inputs = Pairs("m", 50);
  ASSERT_TRUE(transport->Prepare({&inputs, 1}, this->inbox_));
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    transport->Send({i, 0, static_cast<std::uint32_t>(i % 50)});
  }
  const auto kept = this->inbox_.Await(kCalls);
  transport->Stop();
  ASSERT_EQ(kept.size(), kCalls);
  for (const auto& [token, answer] : kept) {
    SCOPED_TRACE(token);
    ASSERT_EQ(answer.kind, Answered::kServed) << answer.error;
    EXPECT_EQ(answer.times, 1);
    EXPECT_EQ(answer.exit, "2");
    EXPECT_EQ(answer.batch, 3);
    const auto sample = static_cast<float>(token % 50);
    EXPECT_THAT(answer.output, ::testing::ElementsAre(sample, sample + 1));
  }
}

TYPED_TEST(WireTest, UnderstandsEachWayToBeRefused) {
  const auto transport = this->Connect();
  const std::array<PreparedInputs, 5> inputs{Pairs("shed", 1), Pairs("expired", 1),
                                             Pairs("gone", 1), Pairs("absent", 1),
                                             Pairs("dropped", 1)};
  ASSERT_TRUE(transport->Prepare(inputs, this->inbox_));
  for (std::uint32_t i = 0; i < 5; ++i) transport->Send({i, i, 0});
  const auto kept = this->inbox_.Await(5);
  transport->Stop();
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept.at(0).kind, Answered::kShed);
  EXPECT_EQ(kept.at(1).kind, Answered::kExpired);
  EXPECT_EQ(kept.at(2).kind, Answered::kCancelled);
  EXPECT_EQ(kept.at(3).kind, Answered::kError);
  EXPECT_THAT(kept.at(3).error, HasSubstr("no such model"));
  EXPECT_EQ(kept.at(4).kind, Answered::kShed);
}

TYPED_TEST(WireTest, SaysWhenNobodyListens) {
  std::string url;
  {
    asio::io_context io;
    const tcp::acceptor taken(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    url = "127.0.0.1:" + std::to_string(taken.local_endpoint().port());
  }
  auto transport = MakeTransport("http", {.url = url});
  ASSERT_TRUE(transport);
  const auto served = (*transport)->Describe("m");
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(served.error().message, HasSubstr(url));
}

// A server may close a connection that is idle at the very moment a request leaves on it.
TEST(HttpTransport, ARequestThatMeetsAClosedIdleConnectionIsSentAgain) {
  HttpStub stub;
  stub.CloseAfter(1);
  Inbox inbox;
  auto transport = MakeHttpTransport(
      {.url = stub.url(), .connections = 1, .timeout = std::chrono::seconds(40), .priority = 2});
  ASSERT_TRUE(transport);
  const PreparedInputs inputs = Pairs("m", 1);
  ASSERT_TRUE((*transport)->Prepare({&inputs, 1}, inbox));
  for (std::uint64_t i = 0; i < 5; ++i) {
    (*transport)->Send({i, 0, 0});
    inbox.Await(i + 1);
  }
  (*transport)->Stop();
  for (const auto& [token, answer] : inbox.Await(5)) {
    EXPECT_EQ(answer.kind, Answered::kServed) << token << ": " << answer.error;
    EXPECT_EQ(answer.times, 1);
  }
}

// The server must not take a call that waited in the client for one with all of its time.
TEST(HttpTransport, ACallThatLeavesLateSaysWhatTimeItHasAndOneWithNoneIsNotSent) {
  using std::chrono::steady_clock;
  HttpStub stub;
  Inbox inbox;
  auto transport = MakeHttpTransport({.url = stub.url(), .connections = 1});
  ASSERT_TRUE(transport);
  const PreparedInputs inputs = Pairs("told", 1);
  ASSERT_TRUE((*transport)->Prepare({&inputs, 1}, inbox));
  const SteadyTime now = steady_clock::now();
  const auto hour = std::chrono::hours(1);
  (*transport)->Send({.token = 0, .meant = now - hour, .due = now + hour});
  (*transport)->Send({.token = 1, .meant = now - hour, .due = now});
  (*transport)->Send({.token = 2, .meant = now + hour, .due = now + 2 * hour});
  (*transport)->Send({.token = 3});
  const auto kept = inbox.Await(4);
  (*transport)->Stop();
  EXPECT_THAT(kept.at(0).error, HasSubstr("time left: 3")) << "and less than an hour";
  EXPECT_EQ(kept.at(1).kind, Answered::kExpired);
  EXPECT_EQ((*transport)->unsent(), 1);
  EXPECT_THAT(kept.at(2).error, ::testing::EndsWith("time left: "));
  EXPECT_THAT(kept.at(3).error, ::testing::EndsWith("time left: "));
}

}  // namespace
}  // namespace tactus
