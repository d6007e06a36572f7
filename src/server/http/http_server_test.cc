// The server over loopback: what a client sends, byte for byte, and what it gets.
#include "server/http/http_server.h"

#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/http/server_fixture_for_test.h"
#include "server/kserve/compression.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/objectives.h"
#include "server/kserve/trace_settings.h"
#include "server/net/loop_lag.h"

namespace tactus {
namespace {

constexpr std::string_view kNumbers =
    R"({"id":"7","inputs":[{"name":"a","shape":[1,4],"datatype":"FP32","data":[1,2.5,-3,4]},)"
    R"({"name":"b","shape":[1,4],"datatype":"INT32","data":[[1,2,3,4]]}]})";
constexpr std::string_view kNumbersAnswer =
    R"({"model_name":"numbers","model_version":"1","id":"7","parameters":{"tactus_exit":"1",)"
    R"("tactus_batch_size":1,"tactus_queue_us":5,"tactus_execution_us":7},"outputs":[)"
    R"({"name":"a","datatype":"FP32","shape":[1,4],"data":[1,2.5,-3,4]},)"
    R"({"name":"b","datatype":"INT32","shape":[1,4],"data":[1,2,3,4]}]})";

std::string Get(std::string_view path) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path);
}
std::string Post(std::string_view path, std::string_view body, std::string_view fields = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", path,
                     body.size(), fields, body);
}
std::string Floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

class HttpServerTest : public ServerFixture {};

TEST_F(HttpServerTest, HealthHasABodyForClientsThatParseIt) {
  EXPECT_EQ(Call(Get("/v2/health/live")).body, R"({"live":true})");
  EXPECT_EQ(Call(Get("/v2/health/ready")).body, R"({"ready":true})");
  const auto ready = Call(Get("/v2/models/numbers/versions/1/ready"));
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, R"({"name":"numbers","ready":true})");
  EXPECT_EQ(Call(Get("/v2/models/none/ready")).status, 404);
  EXPECT_EQ(Call(Get("/v2/models/numbers/versions/one/ready")).status, 400);
}

// A front end of a site knows models that no worker serves: their calls may wait for one.
TEST_F(HttpServerTest, AModelThatMayBeCalledIsNotReadyWhileNobodyServesIt) {
  service_.Unserve("numbers");
  const auto ready = Call(Get("/v2/models/numbers/ready"));
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"name":"numbers","ready":false})");
  EXPECT_EQ(Call(Get("/v2/models/numbers")).status, 200);
  EXPECT_EQ(Call(Get("/v2/models/words/ready")).status, 200);
}

TEST_F(HttpServerTest, MetadataConfigStatisticsAndIndex) {
  const auto server = Call(Get("/v2"));
  EXPECT_TRUE(Contains(server.body, R"("name":"tactus")"));
  EXPECT_TRUE(Contains(server.body, R"("statistics")"));
  EXPECT_EQ(Call(Get("/v2/models/words")).body,
            R"({"name":"words","versions":["1"],"platform":"identity","inputs":[{"name":"text",)"
            R"("datatype":"BYTES","shape":[-1]}],"outputs":[{"name":"text","datatype":"BYTES",)"
            R"("shape":[-1]}]})");
  const auto config = Call(Get("/v2/models/numbers/config"));
  EXPECT_TRUE(Contains(config.body, R"("max_batch_size":8)"));
  EXPECT_TRUE(Contains(config.body, R"("dims":[4])"));
  EXPECT_TRUE(Contains(Call(Get("/v2/models/numbers/stats")).body, R"("inference_count":7)"));
  EXPECT_TRUE(Contains(Call(Get("/v2/models/stats")).body, R"("model_stats")"));
  EXPECT_TRUE(Contains(Call(Post("/v2/repository/index", "")).body, R"("its graph is damaged")"));
  EXPECT_FALSE(
      Contains(Call(Post("/v2/repository/index", R"({"ready":true})")).body, "UNAVAILABLE"));
}

TEST_F(HttpServerTest, LoadAndUnloadReachTheService) {
  EXPECT_EQ(Call(Post("/v2/repository/models/m/load", R"({"parameters":{"config":"{}"}})")).status,
            200);
  EXPECT_EQ(service_.last_control(), "load m {}");
  EXPECT_EQ(Call(Post("/v2/repository/models/m/unload", "")).status, 200);
  EXPECT_EQ(service_.last_control(), "unload m");
  EXPECT_EQ(Call(Post("/v2/repository/models/m/load", "{")).status, 400);
  EXPECT_EQ(Call(Post("/v2/repository/models/m/load", R"({"parameters":{"file:1/m":""}})")).status,
            501);
}

TEST_F(HttpServerTest, InfersFromJson) {
  const auto response = Call(Post("/v2/models/numbers/infer", kNumbers));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.fields.at("Content-Type"), "application/json");
  EXPECT_EQ(response.body, kNumbersAnswer);
  EXPECT_EQ(response.fields.at("Server-Timing"), "queue;dur=0.005, exec;dur=0.007");
}

TEST_F(HttpServerTest, InfersFromBinaryTensors) {
  const std::string json =
      R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"x","shape":[1,2],)"
      R"("datatype":"FP32","parameters":{"binary_data_size":8}}]})";
  const auto fields = fmt::format("Inference-Header-Content-Length: {}\r\n", json.size());
  const auto response = Call(Post("/v2/models/series/infer", json + Floats({1.5F, -2.0F}), fields));
  ASSERT_EQ(response.status, 200) << response.body;
  const std::size_t head = std::stoul(response.fields.at("Inference-Header-Content-Length"));
  EXPECT_TRUE(Contains(response.body.substr(0, head), R"("binary_data_size":8)"));
  EXPECT_EQ(response.body.substr(head), Floats({1.5F, -2.0F}));
}

TEST_F(HttpServerTest, InfersFromTheBareBody) {
  const auto response = Call(
      Post("/v2/models/series/infer", Floats({1, 2, 3}), "Inference-Header-Content-Length: 0\r\n"));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(Contains(response.body, R"("shape":[1,3])"));
  EXPECT_TRUE(response.body.ends_with(Floats({1, 2, 3})));
}

TEST_F(HttpServerTest, ALargeTensorArrivesAndLeavesWhole) {
  std::string tensor(3'000'000, '\0');
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<char>(i * 7 % 64);
  LoopbackClient client(port());
  for (int i = 0; i < 3; ++i) {
    const auto response = client.Call(
        Post("/v2/models/series/infer", tensor, "Inference-Header-Content-Length: 0\r\n"));
    ASSERT_EQ(response.status, 200);
    EXPECT_TRUE(response.body.ends_with(tensor));
  }
}

TEST_F(HttpServerTest, CompressedBodiesBothWays) {
  const std::span<const std::byte> json = std::as_bytes(std::span(kNumbers));
  for (const auto& [coding, name] :
       {std::pair{Coding::kGzip, "gzip"}, std::pair{Coding::kDeflate, "deflate"}}) {
    const std::string body = Deflate(coding, {{json}});
    const auto response =
        Call(Post("/v2/models/numbers/infer", body, fmt::format("Content-Encoding: {}\r\n", name)));
    EXPECT_EQ(response.body, kNumbersAnswer) << name;
  }
  const auto large = Call(Post("/v2/models/series/infer", std::string(8000, '\0'),
                               "Inference-Header-Content-Length: 0\r\nAccept-Encoding: gzip\r\n"));
  EXPECT_EQ(large.fields.at("Content-Encoding"), "gzip");
  EXPECT_LT(large.body.size(), 1000U);
  const auto inflated = Inflate(Coding::kGzip, std::as_bytes(std::span(large.body)), 100'000);
  ASSERT_TRUE(inflated.has_value());
  EXPECT_EQ(inflated->size, 8000 + std::stoul(large.fields.at("Inference-Header-Content-Length")));
}

TEST_F(HttpServerTest, ASmallBodyThatInflatesPastTheLimitIsRefused) {
  options_.max_body = 100'000;
  const std::string zeros(1'000'000, '\0');
  const std::string bomb = Deflate(Coding::kGzip, {{std::as_bytes(std::span(zeros))}});
  ASSERT_LT(bomb.size(), 10'000U);
  const auto response = Call(Post("/v2/models/numbers/infer", bomb, "Content-Encoding: gzip\r\n"));
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(Contains(response.body, "100000 bytes"));
}

TEST_F(HttpServerTest, TheEarliestLimitOfTimeCounts) {
  const auto limit = [&](std::string_view parameters, std::string_view fields) {
    const std::string json =
        fmt::format(R"({{{}"inputs":[{{"name":"x","shape":[1,1],"datatype":"FP32","data":[1]}}]}})",
                    parameters);
    EXPECT_EQ(Call(Post("/v2/models/series/infer", json, fields)).status, 200);
    return service_.last_limit();
  };
  EXPECT_EQ(limit("", ""), std::nullopt);
  EXPECT_EQ(limit("", "x-request-timeout-ms: 20\r\n"), Millis(20));
  EXPECT_EQ(limit(R"("parameters":{"timeout":5000},)", "x-request-timeout-ms: 20\r\n"), Millis(5));
  EXPECT_EQ(limit(R"("parameters":{"timeout":50000,"priority":2},)",
                  "X-Request-Timeout-Ms: 20\r\nx-envoy-expected-rq-timeout-ms: 10\r\n"),
            Millis(10));
  EXPECT_EQ(service_.last_priority(), 2U);
  EXPECT_EQ(limit(R"("parameters":{"timeout":0},)", "x-request-timeout-ms: 0\r\n"), std::nullopt);
  EXPECT_EQ(limit("", "Connect-Timeout-Ms: 70\r\nx-llm-d-slo-ttft-ms: 30\r\n"), Millis(30));
  EXPECT_EQ(limit("", "x-slo-ttft-ms: 40.5\r\ngrpc-timeout: 50m\r\n"), Micros(40'500));
  EXPECT_EQ(limit("", "grpc-timeout: 2S\r\nX-Request-Timeout-Ms: 99999999999999999999\r\n"),
            Seconds(2));
  // Where a proxy added its own to the client's.
  EXPECT_EQ(limit("", "x-request-timeout-ms: 20\r\nx-request-timeout-ms: 8\r\n"), Millis(8));
  EXPECT_EQ(limit("", "x-request-timeout-ms: -3\r\n"), Duration{});  // the service refuses it
  EXPECT_EQ(
      Call(Post("/v2/models/numbers/infer", kNumbers, "x-request-timeout-ms: soon\r\n")).status,
      400);
}

TEST_F(HttpServerTest, AnObjectiveIsTheOperatorsPriority) {
  const std::vector<std::string> entries{"premium=1", "batch=9"};
  options_.objectives = std::make_shared<const Objectives>(*Objectives::Read(entries));
  const auto priority = [&](std::string_view parameters, std::string_view fields) {
    const std::string json =
        fmt::format(R"({{{}"inputs":[{{"name":"x","shape":[1,1],"datatype":"FP32","data":[1]}}]}})",
                    parameters);
    EXPECT_EQ(Call(Post("/v2/models/series/infer", json, fields)).status, 200);
    return service_.last_priority();
  };
  EXPECT_EQ(priority("", "X-LLM-D-Inference-Objective: batch\r\n"), 9U);
  EXPECT_EQ(priority("", "x-llm-d-inference-objective: premium\r\n"), 1U);
  EXPECT_EQ(priority("", "x-llm-d-inference-objective: 7\r\n"), 0U) << "not passed through";
  EXPECT_EQ(priority(R"("parameters":{"priority":3},)", "x-llm-d-inference-objective: batch\r\n"),
            3U)
      << "what the request states holds";
}

// Nobody would see that the loop is late.
TEST_F(HttpServerTest, TellsHowLateItsLoopIs) {
  options_.lag = std::make_shared<LoopLag>();
  EXPECT_EQ(Call(Get("/v2/health/live")).status, 200);
  // A timer is always late by something.
  while (options_.lag->Longest() == std::chrono::nanoseconds(0)) std::this_thread::yield();
}

TEST_F(HttpServerTest, FailuresOfTheServiceOnTheWire) {
  service_.FailWith({ErrorCode::kResourceExhausted, "the queue of 'numbers' is full"});
  auto response = Call(Post("/v2/models/numbers/infer", kNumbers));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.fields.at("Retry-After"), "1");
  EXPECT_EQ(response.body, R"({"error":"the queue of 'numbers' is full"})");
  EXPECT_EQ(response.fields.at("Server-Timing"), R"(refused;desc="shed")");
  service_.FailWith({ErrorCode::kDeadlineExceeded, "too late"});
  EXPECT_EQ(Call(Post("/v2/models/numbers/infer", kNumbers)).status, 504);
}

TEST_F(HttpServerTest, StrictTritonAnswersInItsWords) {
  options_.strict_triton = true;
  EXPECT_TRUE(Contains(Call(Get("/v2")).body, R"("name":"triton")"));
  service_.FailWith({ErrorCode::kResourceExhausted, "the queue of 'numbers' is full"});
  auto response = Call(Post("/v2/models/numbers/infer", kNumbers));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, R"({"error":"Exceeds maximum queue size"})");
  service_.FailWith({ErrorCode::kDeadlineExceeded, "too late"});
  response = Call(Post("/v2/models/numbers/infer", kNumbers));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, R"({"error":"Request timeout expired"})");
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  LoopbackClient client(port());
  client.Send("HEAD /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto response = client.Receive(true);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.fields.at("Content-Length"), "13");
  // The connection is in step: the next answer starts where the first ended.
  EXPECT_EQ(client.Call(Get("/v2/health/live")).body, R"({"live":true})");
}

TEST_F(HttpServerTest, WrongVerbsAndPaths) {
  const auto get = Call(Get("/v2/models/numbers/infer"));
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.fields.at("Allow"), "POST");
  EXPECT_EQ(Call(Post("/v2", "")).fields.at("Allow"), "GET, HEAD");
  EXPECT_EQ(Call("PUT /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").status, 405);
  EXPECT_EQ(Call(Get("/")).status, 404);
  EXPECT_EQ(Call(Get("/v2/models/numbers/nothing")).status, 404);
  const std::pair<const char*, const char*> kUnserved[] = {
      {"/v2/models/numbers/trace/setting", "trace"},
      {"/v2/logging?a=1", "logging"},
      {"/v2/models/numbers/generate", "generate"}};
  for (const auto& [path, extension] : kUnserved) {
    const auto unserved = Call(Get(path));
    EXPECT_EQ(unserved.status, 501) << path;
    EXPECT_EQ(unserved.body,
              fmt::format(R"({{"error":"the {} extension is not supported"}})", extension));
  }
  const auto unknown = Call(Post("/v2/models/none/infer", kNumbers));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, R"({"error":"Request for unknown model: 'none' is not found"})");
  EXPECT_EQ(Call(Post("/v2/models/numbers/versions/9/infer", kNumbers)).status, 404);
  EXPECT_EQ(Call(Post("/v2/models/numbers/versions/one/infer", kNumbers)).status, 400);
}

// Clients made for Triton ask for regions, and unregister all, before they begin.
TEST_F(HttpServerTest, SharedMemoryHasNoRegionsAndTakesNone) {
  for (const std::string kind : {"system", "cuda"}) {
    const std::string base = "/v2/" + kind + "sharedmemory";
    const auto status = Call(Get(base + "/status"));
    EXPECT_EQ(status.status, 200);
    EXPECT_EQ(status.body, "[]");
    const auto region = Call(Get(base + "/region/r/status"));
    EXPECT_EQ(region.status, 404);
    EXPECT_EQ(region.body,
              fmt::format(R"({{"error":"Unable to find {} shared memory region: 'r'"}})", kind));
    EXPECT_EQ(Call(Post(base + "/unregister", "")).status, 200);
    EXPECT_EQ(Call(Post(base + "/region/r/unregister", "")).status, 200);
    EXPECT_EQ(Call(Get(base + "/unregister")).fields.at("Allow"), "POST");
    const auto unserved = Call(Post(base + "/region/r/register", "{}"));
    EXPECT_EQ(unserved.status, 501);
    EXPECT_EQ(
        unserved.body,
        fmt::format(R"({{"error":"the {}_shared_memory extension is not supported"}})", kind));
    EXPECT_EQ(Call(Get(base)).status, 404);
    EXPECT_EQ(Call(Get(base + "/region/r")).status, 404);
  }
}

TEST_F(HttpServerTest, LogSettingsAreReadAndChangedAllOrNone) {
  std::vector<LogChoice> applied;
  options_.log_settings = std::make_shared<LogSettings>(
      LogChoice{.info = false}, [&](const LogChoice& choice) { applied.push_back(choice); });
  const std::string before =
      R"({"log_error":true,"log_file":"","log_format":"ISO8601","log_info":false,)"
      R"("log_verbose_level":0,"log_warning":true})";
  EXPECT_EQ(Call(Get("/v2/logging")).body, before);
  EXPECT_EQ(Call(Post("/v2/logging", "")).body, before);
  EXPECT_TRUE(Contains(Call(Get("/v2")).body, R"("binary_tensor_data","logging"])"));

  const std::pair<const char*, int> kRefused[] = {{R"({"log_warning":false,"log_info":1})", 400},
                                                  {R"({"log_warning":false,"log_x":true})", 400},
                                                  {R"({"log_verbose_level":-1})", 400},
                                                  {R"({"log_verbose_level":true})", 400},
                                                  {R"({"log_verbose_level":4294967296})", 400},
                                                  {R"({"log_format":"iso"})", 400},
                                                  {R"({"log_info":null})", 400},
                                                  {R"({"log_file":"x"})", 501},
                                                  {"[]", 400}};
  for (const auto& [body, status] : kRefused) {
    EXPECT_EQ(Call(Post("/v2/logging", body)).status, status) << body;
  }
  EXPECT_TRUE(applied.empty());

  const auto changed = Call(
      Post("/v2/logging", R"({"log_verbose_level":2,"log_warning":false,"log_format":"default"})"));
  EXPECT_EQ(changed.body,
            R"({"log_error":true,"log_file":"","log_format":"default","log_info":false,)"
            R"("log_verbose_level":2,"log_warning":false})");
  EXPECT_EQ(applied, (std::vector{LogChoice{.info = false,
                                            .warning = false,
                                            .verbose_level = 2,
                                            .form = LogChoice::Form::kDefault}}));
  EXPECT_EQ(Call("PUT /v2/logging HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").status, 405);
}

// As /v2/trace/setting says it, with the rate and the levels given.
std::string Traced(const char* rate, const char* levels) {
  return fmt::format(R"({{"log_frequency":"0","trace_count":"-1","trace_file":"t.json",)"
                     R"("trace_level":[{}],"trace_mode":"triton","trace_rate":"{}"}})",
                     levels, rate);
}

TEST_F(HttpServerTest, TraceSettingsOfTheServerAndOfAModelAreReadAndChanged) {
  options_.trace_settings = std::make_shared<TraceSettings>("t.json");
  const std::string global = "/v2/trace/setting";
  const std::string model = "/v2/models/numbers/trace/setting";
  const std::string version = "/v2/models/numbers/versions/1/trace/setting";
  EXPECT_EQ(Call(Get(global)).body, Traced("1000", R"("OFF")"));
  EXPECT_EQ(Call(Post(model, "")).body, Traced("1000", R"("OFF")"));
  EXPECT_TRUE(Contains(Call(Get("/v2")).body, R"("binary_tensor_data","trace"])"));

  EXPECT_EQ(Call(Post(global, R"({"trace_rate":"5","trace_level":["TIMESTAMPS"]})")).body,
            Traced("5", R"("TIMESTAMPS")"));
  EXPECT_EQ(Call(Post(version, R"({"trace_rate":7})")).body, Traced("7", R"("TIMESTAMPS")"));
  EXPECT_EQ(Call(Get(model)).body, Traced("7", R"("TIMESTAMPS")"));
  EXPECT_EQ(Call(Get("/v2/models/words/trace/setting")).body, Traced("5", R"("TIMESTAMPS")"));
  EXPECT_EQ(Call(Post(model, R"({"trace_rate":null})")).body, Traced("5", R"("TIMESTAMPS")"));
  EXPECT_EQ(Call(Post(global, R"({"trace_level":[],"trace_rate":null})")).body,
            Traced("1000", R"("OFF")"));

  const std::pair<const char*, int> kRefused[] = {
      {R"({"log_frequency":"1","trace_rate":"0"})", 400},
      {R"({"log_frequency":"1","trace_x":"1"})", 400},
      {R"({"trace_rate":1.5})", 400},
      {R"({"trace_rate":true})", 400},
      {R"({"trace_level":{}})", 400},
      {R"({"trace_level":[null]})", 400},
      {R"({"trace_level":"TENSORS"})", 501},
      {R"({"trace_file":"x"})", 501},
      {"[]", 400}};
  for (const auto& [body, status] : kRefused) {
    EXPECT_EQ(Call(Post(global, body)).status, status) << body;
    EXPECT_EQ(Call(Get(global)).body, Traced("1000", R"("OFF")")) << body;
  }
  EXPECT_EQ(Call(Get("/v2/models/none/trace/setting")).body,
            R"({"error":"Request for unknown model: 'none' is not found"})");
  EXPECT_EQ(Call(Post("/v2/models/none/trace/setting", R"({"trace_rate":"1"})")).status, 404);
  EXPECT_EQ(Call("PUT /v2/trace/setting HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").status,
            405);
}

TEST(HttpServerMetrics, ServesTheTextItIsGiven) {
  HttpServer server(HttpOptions{.port = 0}, [] { return std::string("up 1\n"); });
  const auto port = server.Start();
  ASSERT_TRUE(port.has_value());
  const auto response = LoopbackClient(*port).Call(Get("/metrics"));
  EXPECT_EQ(response.body, "up 1\n");
  EXPECT_EQ(response.fields.at("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(LoopbackClient(*port).Call(Get("/v2")).status, 404);
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  HttpServer second(HttpOptions{.port = port()}, service_);
  const auto result = second.Start();
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(Contains(result.error().message, fmt::format("127.0.0.1:{}", port())))
      << result.error().message;
}

}  // namespace
}  // namespace tactus
