#include "stream/remote_sink.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "base/host_port.h"
#include "base/server_trust.h"
#include "base/underway.h"
#include "grpc_service.grpc.pb.h"

namespace tactus {
namespace {

constexpr auto kConnectWithin = std::chrono::seconds(5);
// The server says itself that a deadline has passed; this is for one that says nothing.
constexpr auto kGrace = std::chrono::milliseconds(500);

FrameEnd EndOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return FrameEnd::kRefused;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return FrameEnd::kTooLate;
    case grpc::StatusCode::CANCELLED:
      return FrameEnd::kStopped;
    default:
      return FrameEnd::kFailed;
  }
}

// UNAVAILABLE is a server's word for no room, but also gRPC's own for one that nobody reached.
bool SaidByServer(const grpc::ClientContext& context) {
  return context.GetServerTrailingMetadata().contains("grpc-retry-pushback-ms");
}

// Bytes of an answer; a larger one fails.
constexpr int kMostAnswer = 64 << 20;

class RemoteSink final : public FrameSink {
 public:
  // `token`: empty for none.
  RemoteSink(const RemoteServer& server, std::string model, std::string token,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : url_(server.url),
        model_(std::move(model)),
        token_(std::move(token)),
        has_tls_(!server.ca.empty()) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMostAnswer);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    channel_ = grpc::CreateCustomChannel(url_, credentials, arguments);
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }
  ~RemoteSink() override;

  Expected<Duration> Promise() override;
  void Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) override;
  void GiveUp() override;

 private:
  struct Flight {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    inference::ModelInferResponse response;
    OnFrameAnswer done;
  };

  // What every call carries.
  void Sign(grpc::ClientContext& context) const {
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  }
  std::string LostText() const {
    return has_tls_ ? "no server whose certificate the given ones have signed answered within 5 s; "
                      "is it up, and are these the right certificates (--ca)?"
                    : "no server answered within 5 s; is it up, is this its gRPC port, and does it "
                      "speak without TLS? With TLS give its certificates (--ca)";
  }
  std::string TextOf(const grpc::Status& status) const;
  Expected<JpegInput> ReadInput();
  Duration ReadSlo();
  void OnDone(Flight* flight, const grpc::Status& status);

  const std::string url_;
  const std::string model_;
  const std::string token_;
  const bool has_tls_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;

  std::mutex mutex_;
  std::optional<JpegInput> input_;  // since Promise
  Underway<Flight> flights_;        // until OnDone
};

void RemoteSink::GiveUp() {
  for (const auto& flight : flights_.all()) flight->context.TryCancel();
}

RemoteSink::~RemoteSink() {
  GiveUp();
  flights_.Wait();
}

// What the server says, and for which model; of one that it does not have, what helps.
std::string RemoteSink::TextOf(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    return fmt::format(
        "grpc://{}: the server has loaded no model '{}' ({}); load it there, or name another", url_,
        model_, status.error_message());
  }
  return fmt::format("grpc://{}: model '{}': {}", url_, model_, status.error_message());
}

Expected<JpegInput> RemoteSink::ReadInput() {
  grpc::ClientContext context;
  Sign(context);
  context.set_deadline(std::chrono::system_clock::now() + kConnectWithin);
  context.set_wait_for_ready(true);
  inference::ModelMetadataRequest request;
  request.set_name(model_);
  inference::ModelMetadataResponse metadata;
  const grpc::Status status = stub_->ModelMetadata(&context, request, &metadata);
  if (!status.ok()) {
    const bool lost = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (lost) return Fail(ErrorCode::kUnavailable, fmt::format("grpc://{}: {}", url_, LostText()));
    return Fail(ErrorCode::kUnavailable, TextOf(status));
  }
  std::vector<TensorSpec> inputs;
  for (const auto& input : metadata.inputs()) {
    const auto type = ParseDataType(input.datatype());
    if (!type) continue;
    inputs.push_back({input.name(), *type, Shape(input.shape().begin(), input.shape().end())});
  }
  const bool batched = inputs.size() == 1 && inputs.front().dims.size() == 2;
  return JpegInputOf(model_, inputs, batched);
}

// An extension: a server without it states no SLO.
Duration RemoteSink::ReadSlo() {
  grpc::ClientContext context;
  Sign(context);
  context.set_deadline(std::chrono::system_clock::now() + kConnectWithin);
  inference::ModelConfigRequest request;
  request.set_name(model_);
  inference::ModelConfigResponse response;
  if (!stub_->ModelConfig(&context, request, &response).ok()) return {};
  const auto& parameters = response.config().parameters();
  const auto slo = parameters.find("slo_ms");
  if (slo == parameters.end()) return {};
  const std::string& text = slo->second.string_value();
  double ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  return error == std::errc() && ms > 0 && ms < 1e9 ? FromMillis(ms) : Duration{};
}

Expected<Duration> RemoteSink::Promise() {
  auto input = ReadInput();
  if (!input) return std::unexpected(input.error());
  {
    const std::lock_guard lock(mutex_);
    input_ = *std::move(input);
  }
  return ReadSlo();
}

void RemoteSink::Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) {
  auto flight = std::make_shared<Flight>();
  flight->done = std::move(done);
  std::unique_lock lock(mutex_);
  if (!input_) {
    lock.unlock();
    FrameAnswer answer;
    answer.error = "the stream's server has not been asked what its model takes";
    return flight->done(std::move(answer));
  }
  inference::ModelInferRequest& request = flight->request;
  request.set_model_name(model_);
  auto& parameters = *request.mutable_parameters();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left);
  parameters["timeout"].set_int64_param(std::max<std::int64_t>(micros.count(), 1));
  auto& input = *request.add_inputs();
  input.set_name(input_->name);
  input.set_datatype(std::string(Name(input_->type)));
  for (const std::int64_t size : input_->ShapeOf(jpeg->size())) input.add_shape(size);
  *request.add_raw_input_contents() = input_->Prefix(jpeg->size()) + *jpeg;
  Sign(flight->context);
  flight->context.set_deadline(std::chrono::system_clock::now() + micros + kGrace);
  Flight* const raw = flight.get();
  lock.unlock();
  flights_.Add(std::move(flight));
  stub_->async()->ModelInfer(&raw->context, &raw->request, &raw->response,
                             [this, raw](const grpc::Status& status) { OnDone(raw, status); });
}

FrameAnswer ReadAnswer(const inference::ModelInferResponse& response) {
  FrameAnswer answer;
  answer.end = FrameEnd::kServed;
  const auto emulated = response.parameters().find("tactus_emulated");
  answer.emulated = emulated != response.parameters().end() && emulated->second.bool_param();
  for (int i = 0; i < response.outputs_size(); ++i) {
    const auto& output = response.outputs(i);
    const auto type = ParseDataType(output.datatype());
    if (!type || i >= response.raw_output_contents_size()) continue;
    const std::string& bytes = response.raw_output_contents(i);
    Shape shape(output.shape().begin(), output.shape().end());
    // Another server's word: what does not add up is left out.
    const auto elements = ElementCount(shape);
    if (!elements || static_cast<std::uint64_t>(*elements) > bytes.size()) continue;
    const std::size_t size = ElementSize(*type);
    if (size > 0 && static_cast<std::size_t>(*elements) * size != bytes.size()) continue;
    answer.outputs.push_back({output.name(), *type, std::move(shape), bytes});
  }
  return answer;
}

void RemoteSink::OnDone(Flight* flight, const grpc::Status& status) {
  FrameAnswer answer;
  if (status.ok()) {
    answer = ReadAnswer(flight->response);
  } else {
    const bool refused =
        status.error_code() == grpc::StatusCode::UNAVAILABLE && SaidByServer(flight->context);
    answer.end = refused ? FrameEnd::kRefused : EndOf(status.error_code());
    answer.error = TextOf(status);
  }
  flight->done(std::move(answer));
  flights_.End(flight);
}

}  // namespace

Expected<std::shared_ptr<FrameSink>> MakeRemoteSink(const RemoteServer& server, std::string model) {
  const std::string& url = server.url;
  const auto place = ParseHostPort(url);
  if (!place) {
    return InvalidArgument(
        fmt::format("'{}' is no address of a server; give HOST:PORT of its gRPC (--url), such as "
                    "127.0.0.1:8001",
                    url));
  }
  Expected<std::string> token;
  if (!server.token_file.empty()) {
    token = ReadToken(server.token_file, *place, !server.ca.empty());
  }
  if (!token) return std::unexpected(std::move(token.error()));
  auto credentials = grpc::InsecureChannelCredentials();
  if (!server.ca.empty()) {
    auto roots = ReadAuthorities(server.ca);
    if (!roots) return std::unexpected(std::move(roots.error()));
    credentials = grpc::SslCredentials({*std::move(roots), {}, {}});
  }
  return std::make_shared<RemoteSink>(server, std::move(model), *std::move(token), credentials);
}

}  // namespace tactus
