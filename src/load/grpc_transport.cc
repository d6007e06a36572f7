// KServe v2 over gRPC, callback API. The constant part of a model's ModelInferRequest is serialised
// once; a request is those bytes followed by the sample's tensors as raw_input_contents, handed
// over as slices that nobody copies.
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "base/underway.h"
#include "grpc_service.grpc.pb.h"
#include "load/transport.h"

namespace tactus {
namespace {

constexpr const char* kInfer = "/inference.GRPCInferenceService/ModelInfer";
constexpr int kRawInputContents = 7;  // field of ModelInferRequest
constexpr int kLengthDelimited = 2;   // protobuf's wire type
constexpr auto kConnectWithin = std::chrono::seconds(5);

// UNAVAILABLE is a server's word for a full queue or a request that it gave up, but also gRPC's own
// for a server that nobody reached. A server says which: it asks us to come again, or uses Triton's
// text.
bool SaidByServer(const grpc::Status& status, const grpc::ClientContext& context) {
  const auto& trailing = context.GetServerTrailingMetadata();
  return trailing.contains("grpc-retry-pushback-ms") ||
         status.error_message() == "Exceeds maximum queue size";
}

Answered KindOf(const grpc::Status& status, const grpc::ClientContext& context) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return Answered::kServed;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Answered::kShed;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Answered::kExpired;
    case grpc::StatusCode::CANCELLED:
      return Answered::kCancelled;
    case grpc::StatusCode::UNAVAILABLE:
      return SaidByServer(status, context) ? Answered::kShed : Answered::kError;
    default:
      return Answered::kError;
  }
}

// Key and length of a raw_input_contents of `bytes` bytes.
std::string RawContentsKey(std::size_t bytes) {
  std::array<std::uint8_t, 16> buffer{};
  using google::protobuf::io::CodedOutputStream;
  std::uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      kRawInputContents << 3 | kLengthDelimited, buffer.data());
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  return {reinterpret_cast<const char*>(buffer.data()),
          static_cast<std::size_t>(end - buffer.data())};
}

struct PreparedCall {
  const PreparedInputs* inputs = nullptr;
  grpc::Slice head;               // up to and including the first tensor's key
  std::vector<grpc::Slice> keys;  // of the second tensor, the third, ...
};

grpc::ByteBuffer MakeRequest(const PreparedCall& prepared, std::uint32_t sample) {
  const auto& tensors = prepared.inputs->tensors;
  std::vector<grpc::Slice> slices;
  slices.reserve(tensors.size() * 2);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    slices.push_back(i == 0 ? prepared.head : prepared.keys[i - 1]);
    const auto data = tensors[i].Sample(sample);
    slices.emplace_back(data.data(), data.size(), grpc::Slice::STATIC_SLICE);
  }
  return {slices.data(), slices.size()};
}

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(TransportOptions options, TargetServer server);
  ~GrpcTransport() override { Stop(); }

  std::string_view name() const override { return "grpc"; }
  Expected<DescribedModel> Describe(const std::string& model) override;
  Status Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) override;
  void Send(const Call& call) override;
  void Stop() override;

 private:
  struct Flight {
    std::uint64_t token = 0;
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
  };

  void OnDone(Flight* flight, const grpc::Status& status);
  Status Connect();
  // What every call carries.
  void Sign(grpc::ClientContext& context) const {
    if (!server_.token.empty()) context.AddMetadata("authorization", "Bearer " + server_.token);
  }
  std::string WhyDenied(const grpc::Status& status) const;

  TransportOptions options_;
  const TargetServer server_;
  const std::string target_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<PreparedCall> prepared_;
  AnswerSink* sink_ = nullptr;
  std::atomic<std::uint32_t> next_stub_{0};

  Underway<Flight> flights_;  // until OnDone
  std::atomic<bool> stopping_{false};
};

GrpcTransport::GrpcTransport(TransportOptions options, TargetServer server)
    : options_(std::move(options)), server_(std::move(server)), target_(server_.endpoint.text()) {
  if (options_.connections <= 0) options_.connections = kGrpcConnections;
  for (int i = 0; i < options_.connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    // Channels to one address would share a connection otherwise.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channels_.push_back(grpc::CreateCustomChannel(
        target_,
        server_.roots.empty() ? grpc::InsecureChannelCredentials()
                              : grpc::SslCredentials({server_.roots, {}, {}}),
        arguments));
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channels_.back()));
  }
}

Status GrpcTransport::Connect() {
  for (const auto& channel : channels_) {
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWithin)) {
      return Fail(
          ErrorCode::kUnavailable,
          server_.roots.empty()
              ? fmt::format("grpc://{}: no server answered within {} s; is it up, and is this its "
                            "gRPC port (--url HOST:PORT), without TLS (with TLS give its "
                            "certificates: --ca FILE)?",
                            target_, kConnectWithin.count())
              : fmt::format("grpcs://{}: no server that one of the certificates in {} has signed "
                            "answered within {} s; is it up, does it speak TLS, and are these the "
                            "right certificates for this name?",
                            target_, options_.ca, kConnectWithin.count()));
    }
  }
  return {};
}

std::string GrpcTransport::WhyDenied(const grpc::Status& status) const {
  const bool knows_not = status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  const bool denied = knows_not || status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  return denied ? AccessRemedy(options_, knows_not) : "";
}

template <class Tensors>
Expected<std::vector<TensorSpec>> ReadTensors(const Tensors& list) {
  std::vector<TensorSpec> tensors;
  for (const auto& item : list) {
    const auto type = ParseDataType(item.datatype());
    if (!type) {
      return InvalidArgument(
          fmt::format("tensor '{}' has the datatype '{}'", item.name(), item.datatype()));
    }
    tensors.push_back({item.name(), *type, Shape(item.shape().begin(), item.shape().end())});
  }
  return tensors;
}

Expected<DescribedModel> GrpcTransport::Describe(const std::string& model) {
  if (auto connected = Connect(); !connected) return std::unexpected(connected.error());
  const auto stub = inference::GRPCInferenceService::NewStub(channels_.front());
  const auto soon = [] { return std::chrono::system_clock::now() + kConnectWithin; };
  grpc::ClientContext metadata_context;
  Sign(metadata_context);
  metadata_context.set_deadline(soon());
  inference::ModelMetadataRequest request;
  request.set_name(model);
  inference::ModelMetadataResponse metadata;
  const auto status = stub->ModelMetadata(&metadata_context, request, &metadata);
  if (!status.ok()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("grpc://{}: metadata of '{}': {}{}", target_, model,
                            status.error_message(), WhyDenied(status)));
  }
  DescribedModel served;
  served.model.name = model;
  auto inputs = ReadTensors(metadata.inputs());
  if (!inputs) return std::unexpected(inputs.error());
  auto outputs = ReadTensors(metadata.outputs());
  if (!outputs) return std::unexpected(outputs.error());
  served.inputs = std::move(*inputs);
  served.outputs = std::move(*outputs);
  served.emulated = metadata.platform() == "emulated";
  // An extension: a server without it states no SLO and no exits.
  grpc::ClientContext config_context;
  Sign(config_context);
  config_context.set_deadline(soon());
  inference::ModelConfigRequest config_request;
  config_request.set_name(model);
  inference::ModelConfigResponse config;
  if (stub->ModelConfig(&config_context, config_request, &config).ok()) {
    served.model.max_batch = config.config().max_batch_size();
    for (const auto& [key, value] : config.config().parameters()) {
      ApplyParameter(served.model, key, value.string_value());
    }
  }
  return served;
}

Status GrpcTransport::Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) {
  sink_ = &sink;
  for (const PreparedInputs& model : inputs) {
    inference::ModelInferRequest request;
    request.set_model_name(model.model);
    auto& parameters = *request.mutable_parameters();
    if (options_.priority > 0) parameters["priority"].set_int64_param(options_.priority);
    if (options_.timeout.count() > 0) {
      parameters["timeout"].set_int64_param(options_.timeout.count());
    }
    PreparedCall prepared{&model, {}, {}};
    for (const PreparedTensor& tensor : model.tensors) {
      auto& input = *request.add_inputs();
      input.set_name(tensor.name);
      input.set_datatype(std::string(Name(tensor.type)));
      input.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    }
    std::string head = request.SerializeAsString();
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
      const std::string key = RawContentsKey(model.tensors[i].sample_bytes);
      if (i == 0) {
        head += key;
      } else {
        prepared.keys.emplace_back(key);
      }
    }
    prepared.head = grpc::Slice(head);
    prepared_.push_back(std::move(prepared));
  }
  return Connect();
}

void GrpcTransport::Send(const Call& call) {
  auto flight = std::make_shared<Flight>();
  flight->token = call.token;
  Sign(flight->context);
  flight->request = MakeRequest(prepared_[call.model], call.sample);
  if (options_.timeout.count() > 0) {
    flight->context.set_deadline(std::chrono::system_clock::now() + options_.timeout);
  }
  Flight* const raw = flight.get();
  flights_.Add(std::move(flight));
  if (stopping_) raw->context.TryCancel();  // after Stop has looked, or else it is among its own
  const std::uint32_t i = next_stub_.fetch_add(1, std::memory_order_relaxed);
  stubs_[i % stubs_.size()]->UnaryCall(
      &raw->context, kInfer, grpc::StubOptions(), &raw->request, &raw->response,
      [this, raw](const grpc::Status& status) { OnDone(raw, status); });
}

// `message` parsed from `buffer`, which is used up.
bool Parse(grpc::ByteBuffer& buffer, inference::ModelInferResponse& message) {
  grpc::ProtoBufferReader reader(&buffer);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

void ReadResponse(const inference::ModelInferResponse& response, Answer& answer) {
  const auto& parameters = response.parameters();
  if (const auto exit = parameters.find("tactus_exit"); exit != parameters.end()) {
    answer.exit = exit->second.string_param();
  }
  if (const auto batch = parameters.find("tactus_batch_size"); batch != parameters.end()) {
    answer.batch = static_cast<int>(batch->second.int64_param());
  }
  if (response.raw_output_contents_size() > 0) {
    const std::string& raw = response.raw_output_contents(0);
    answer.first_output = std::as_bytes(std::span(raw));
  }
}

void GrpcTransport::OnDone(Flight* flight, const grpc::Status& status) {
  Answer answer;
  answer.received = std::chrono::steady_clock::now();
  answer.token = flight->token;
  answer.kind = KindOf(status, flight->context);
  inference::ModelInferResponse response;
  std::string error;
  if (!status.ok()) {
    error = fmt::format("gRPC status {}: {}", static_cast<int>(status.error_code()),
                        status.error_message());
    answer.error = error;
  } else if (Parse(flight->response, response)) {
    ReadResponse(response, answer);
  } else {
    answer.kind = Answered::kError;
    answer.error = "the response is no ModelInferResponse";
  }
  sink_->OnAnswer(answer);
  flights_.End(flight);
}

void GrpcTransport::Stop() {
  stopping_ = true;
  for (const auto& flight : flights_.all()) flight->context.TryCancel();
  flights_.Wait();
}

}  // namespace

Expected<std::unique_ptr<Transport>> MakeGrpcTransport(const TransportOptions& options) {
  auto server = TargetOf(options);
  if (!server) return std::unexpected(std::move(server.error()));
  return std::make_unique<GrpcTransport>(options, *std::move(server));
}

}  // namespace tactus
