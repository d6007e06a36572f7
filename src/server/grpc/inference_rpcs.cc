#include "server/grpc/inference_rpcs.h"

#include <utility>

#include <fmt/format.h>

#include "grpc_service.pb.h"
#include "server/grpc/infer_method.h"
#include "server/grpc/response_message.h"
#include "server/grpc/stream_method.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/model_config_message.h"
#include "server/kserve/model_control.h"
#include "server/kserve/trace_settings.h"
#include "server/kserve/validation.h"

namespace tactus {
namespace {

constexpr const char* kSystemMemory = "system_shared_memory";
constexpr const char* kCudaMemory = "cuda_shared_memory";

// Nor does Triton know repositories by their names.
Status CheckRepository(const std::string& name) {
  if (name.empty()) return {};
  return Fail(ErrorCode::kUnimplemented,
              "models are known by their names alone; leave repository_name empty");
}

Expected<LoadOverride> OverrideIn(const inference::RepositoryModelLoadRequest& request) {
  LoadOverride given;
  for (const auto& [key, value] : request.parameters()) {
    if (key.starts_with(kFilePrefix)) {
      if (!value.has_bytes_param()) {
        return InvalidArgument(fmt::format("load parameter '{}' is no bytes_param", key));
      }
      given.files.emplace(key.substr(kFilePrefix.size()), value.bytes_param());
    } else if (key != "config") {
      return InvalidArgument(fmt::format(
          "load parameter '{}' is not supported; known: config, {}PATH", key, kFilePrefix));
    } else if (!value.has_string_param()) {
      return InvalidArgument("load parameter 'config' is no string");
    } else {
      given.config = value.string_param();
    }
  }
  return given;
}

Expected<LogValues> ValuesOf(const inference::LogSettingsRequest& request) {
  using Value = inference::LogSettingsRequest::SettingValue;
  LogValues values;
  for (const auto& [name, value] : request.settings()) {
    switch (value.parameter_choice_case()) {
      case Value::kBoolParam:
        values.emplace(name, value.bool_param());
        break;
      case Value::kUint32Param:
        values.emplace(name, value.uint32_param());
        break;
      case Value::kStringParam:
        values.emplace(name, value.string_param());
        break;
      default:
        return InvalidArgument(fmt::format("log setting '{}' has no value", name));
    }
  }
  return values;
}

// The answers, by the methods' names.
struct Answers {
  const InferenceRpcs::Parts& parts;

  Expected<std::shared_ptr<const ModelSpec>> Find(const std::string& name,
                                                  const std::string& version) const {
    const auto number = ParseVersion(version);
    if (!number) return std::unexpected(number.error());
    return parts.service.Find(name, *number);
  }

  Status Of(const inference::ServerLiveRequest&, inference::ServerLiveResponse& response) const {
    response.set_live(parts.service.Live());
    return {};
  }

  Status Of(const inference::ServerReadyRequest&, inference::ServerReadyResponse& response) const {
    response.set_ready(parts.service.Ready());
    return {};
  }

  Status Of(const inference::ModelReadyRequest& request,
            inference::ModelReadyResponse& response) const {
    const auto version = ParseVersion(request.version());
    const Status ready = version ? parts.service.ModelReady(request.name(), *version)
                                 : std::unexpected(version.error());
    // An unknown model is not ready; only a request that makes no sense is an error.
    if (!ready && ready.error().code == ErrorCode::kInvalidArgument) return ready;
    response.set_ready(ready.has_value());
    return {};
  }

  Status Of(const inference::ServerMetadataRequest&,
            inference::ServerMetadataResponse& response) const {
    response.set_name(std::string(ServerName(parts.strict_triton)));
    response.set_version(std::string(kServerVersion));
    for (std::string_view extension : ServerExtensions({.logging = parts.log_settings != nullptr,
                                      .trace = parts.trace_settings != nullptr})) {
      response.add_extensions(std::string(extension));
    }
    return {};
  }

  Status Of(const inference::ModelMetadataRequest& request,
            inference::ModelMetadataResponse& response) const {
    const auto model = Find(request.name(), request.version());
    if (!model) return std::unexpected(model.error());
    response = MetadataOf(**model, parts.service.Index());
    return {};
  }

  Status Of(const inference::ModelConfigRequest& request,
            inference::ModelConfigResponse& response) const {
    const auto model = Find(request.name(), request.version());
    if (!model) return std::unexpected(model.error());
    auto config = ConfigOf(**model);
    if (!config) return std::unexpected(config.error());
    *response.mutable_config() = std::move(*config);
    return {};
  }

  Status Of(const inference::ModelStatisticsRequest& request,
            inference::ModelStatisticsResponse& response) const {
    const auto version = ParseVersion(request.version());
    if (!version) return std::unexpected(version.error());
    const auto statistics = parts.service.Statistics(request.name(), *version);
    if (!statistics) return std::unexpected(statistics.error());
    response = StatisticsOf(*statistics);
    return {};
  }

  Status Of(const inference::RepositoryIndexRequest& request,
            inference::RepositoryIndexResponse& response) const {
    if (Status status = CheckRepository(request.repository_name()); !status) return status;
    response = IndexOf(parts.service.Index(), request.ready());
    return {};
  }

  Status Of(const inference::RepositoryModelLoadRequest& request,
            inference::RepositoryModelLoadResponse&) const {
    const auto given = OverrideIn(request);
    if (!given) return std::unexpected(given.error());
    return LoadOf(parts.service, parts.folders.get(), request.model_name(), *given);
  }

  Status Of(const inference::RepositoryModelUnloadRequest& request,
            inference::RepositoryModelUnloadResponse&) const {
    const auto found = request.parameters().find("unload_dependents");
    const bool with_steps = found != request.parameters().end() && found->second.bool_param();
    return UnloadOf(parts.service, parts.folders.get(), request.model_name(), with_steps,
                    parts.strict_triton);
  }

  // Clients ask for regions of shared memory, and unregister all, before they begin. No region can
  // be registered here.
  Status Of(const inference::SystemSharedMemoryStatusRequest& request,
            inference::SystemSharedMemoryStatusResponse&) const {
    if (request.name().empty()) return {};
    return NoRegion(kSystemMemory, request.name());
  }
  Status Of(const inference::CudaSharedMemoryStatusRequest& request,
            inference::CudaSharedMemoryStatusResponse&) const {
    if (request.name().empty()) return {};
    return NoRegion(kCudaMemory, request.name());
  }
  Status Of(const inference::SystemSharedMemoryUnregisterRequest&,
            inference::SystemSharedMemoryUnregisterResponse&) const {
    return {};
  }
  Status Of(const inference::CudaSharedMemoryUnregisterRequest&,
            inference::CudaSharedMemoryUnregisterResponse&) const {
    return {};
  }

  Status Of(const inference::TraceSettingRequest& request,
            inference::TraceSettingResponse& response) const {
    const std::string& name = request.model_name();
    if (!name.empty()) {
      if (const auto model = parts.service.Find(name, -1); !model) {
        return std::unexpected(model.error());
      }
    }
    TraceValues values;
    for (const auto& [setting, given] : request.settings()) {
      values[setting].assign(given.value().begin(), given.value().end());
    }
    if (Status set = parts.trace_settings->Set(name, values); !set) return set;
    for (const auto& [setting, texts] : parts.trace_settings->Get(name)) {
      auto& said = (*response.mutable_settings())[setting];
      said.mutable_value()->Assign(texts.begin(), texts.end());
    }
    return {};
  }

  Status Of(const inference::LogSettingsRequest& request,
            inference::LogSettingsResponse& response) const {
    const auto values = ValuesOf(request);
    if (!values) return std::unexpected(values.error());
    if (Status set = parts.log_settings->Set(*values); !set) return set;
    for (const auto& [name, value] : parts.log_settings->Get()) {
      auto& setting = (*response.mutable_settings())[name];
      if (const bool* const flag = std::get_if<bool>(&value)) setting.set_bool_param(*flag);
      if (const auto* const number = std::get_if<std::uint32_t>(&value)) {
        setting.set_uint32_param(*number);
      }
      if (const auto* const text = std::get_if<std::string>(&value)) {
        setting.set_string_param(*text);
      }
    }
    return {};
  }
};

template <class Request, class Response>
RpcMethod Quick(const InferenceRpcs::Parts& parts, std::size_t most_bytes = kSmallMessage) {
  return Unary<Request, Response>(parts.gate, most_bytes, parts.strict_triton,
                                  [&parts](const Request& request, Response& response) {
                                    return Answers{parts}.Of(request, response);
                                  });
}

// What may take seconds: on the thread of such calls. What the request holds is copied only when
// its turn has come.
template <class Request, class Response>
RpcMethod Slow(const InferenceRpcs::Parts& parts) {
  return UnaryBytes(parts.gate, parts.gate.max_message, [&parts](UnaryRequest given) {
    auto request = std::make_shared<Request>();
    Status fine = ParseMessage(given.message, *request);
    given.message = {};
    if (fine) fine = CheckRepository(request->repository_name());
    if (!fine) return Answer(*given.call, fine, Response(), parts.strict_triton);
    const auto now = parts.gate.now;
    now->calls.fetch_add(1);
    parts.slow.Post([&parts, given = std::move(given), request, now](bool refused) {
      Response response;
      const Status status = refused
                                ? Status(Fail(ErrorCode::kUnavailable, "the server is stopping"))
                                : Answers{parts}.Of(*request, response);
      Answer(*given.call, status, response, parts.strict_triton);
      given.call->Post([now] { now->calls.fetch_sub(1); });  // behind the answer
    });
  });
}

RpcMethod Unserved(const InferenceRpcs::Parts& parts, const char* extension) {
  return UnaryBytes(parts.gate, kSmallMessage, [&parts, extension](const UnaryRequest& request) {
    request.call->End(EndOf(Fail(ErrorCode::kUnimplemented,
                                 fmt::format("the {} extension is not supported", extension)),
                            parts.strict_triton));
  });
}

template <class Method>
RpcMethod Infers(const InferenceRpcs::Parts& parts, bool waits) {
  return {.most_bytes = parts.gate.max_message,
          .waits = waits,
          .begin = [&parts](std::shared_ptr<ServerCall> call) -> std::shared_ptr<CallMethod> {
            return std::make_shared<Method>(parts.service, parts.gate, parts.strict_triton,
                                            std::move(call));
          }};
}

}  // namespace

void InferenceRpcs::AddTo(RpcMethods& methods) const {
  using namespace inference;
  const auto add = [&](const char* name, RpcMethod method) {
    methods.emplace(fmt::format("/inference.GRPCInferenceService/{}", name), std::move(method));
  };
  const Parts& p = parts_;
  add("ModelInfer", Infers<InferMethod>(p, false));
  add("ModelStreamInfer", Infers<StreamMethod>(p, true));
  add("ServerLive", Quick<ServerLiveRequest, ServerLiveResponse>(p, kTinyMessage));
  add("ServerReady", Quick<ServerReadyRequest, ServerReadyResponse>(p, kTinyMessage));
  add("ServerMetadata", Quick<ServerMetadataRequest, ServerMetadataResponse>(p));
  add("ModelReady", Quick<ModelReadyRequest, ModelReadyResponse>(p));
  add("ModelMetadata", Quick<ModelMetadataRequest, ModelMetadataResponse>(p));
  add("ModelConfig", Quick<ModelConfigRequest, ModelConfigResponse>(p));
  add("ModelStatistics", Quick<ModelStatisticsRequest, ModelStatisticsResponse>(p));
  add("RepositoryIndex", Quick<RepositoryIndexRequest, RepositoryIndexResponse>(p));
  add("RepositoryModelLoad", Slow<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(p));
  add("RepositoryModelUnload",
      Slow<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(p));
  add("SystemSharedMemoryStatus",
      Quick<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(p));
  add("SystemSharedMemoryRegister", Unserved(p, kSystemMemory));
  add("SystemSharedMemoryUnregister",
      Quick<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(p));
  add("CudaSharedMemoryStatus",
      Quick<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(p));
  add("CudaSharedMemoryRegister", Unserved(p, kCudaMemory));
  add("CudaSharedMemoryUnregister",
      Quick<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(p));
  add("TraceSetting", p.trace_settings == nullptr
                          ? Unserved(p, "trace")
                          : Quick<TraceSettingRequest, TraceSettingResponse>(p));
  add("LogSettings", p.log_settings == nullptr ? Unserved(p, "logging")
                                               : Quick<LogSettingsRequest, LogSettingsResponse>(p));
}

}  // namespace tactus
