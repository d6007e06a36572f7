#include "server/grpc/inference_rpcs.h"

#include <utility>

#include <fmt/format.h>

#include "server/grpc/infer_reactor.h"
#include "server/grpc/response_message.h"
#include "server/grpc/stream_reactor.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/model_config_message.h"
#include "server/kserve/model_control.h"
#include "server/kserve/trace_settings.h"
#include "server/kserve/validation.h"

namespace tactus {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

namespace {

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
      return Fail(ErrorCode::kUnimplemented,
                  fmt::format("load parameter '{}' is not supported; known: config, {}PATH", key,
                              kFilePrefix));
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

}  // namespace

ServerUnaryReactor* InferenceRpcs::End(CallbackServerContext* context, const Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status ? grpc::Status::OK
                         : ToGrpcStatus(status.error(), strict_triton_, context));
  return reactor;
}

ServerUnaryReactor* InferenceRpcs::EndLater(CallbackServerContext* context,
                                            std::function<Status()> slow) {
  ServerUnaryReactor* reactor = context->DefaultReactor();  // may be taken once
  gate_.now->calls.fetch_add(1);
  slow_.Add([this, reactor, slow = std::move(slow)](bool refused) {
    const Status status =
        refused ? Status(Fail(ErrorCode::kUnavailable, "the server is stopping")) : slow();
    reactor->Finish(status ? grpc::Status::OK : ToGrpcStatus(status.error(), strict_triton_));
    gate_.now->calls.fetch_sub(1);
  });
  return reactor;
}

ServerUnaryReactor* InferenceRpcs::Unserved(CallbackServerContext* context, const char* extension) {
  return End(context, Fail(ErrorCode::kUnimplemented,
                           fmt::format("the {} extension is not supported", extension)));
}

Expected<std::shared_ptr<const ModelSpec>> InferenceRpcs::Find(const std::string& name,
                                                               const std::string& version) const {
  const auto number = ParseVersion(version);
  if (!number) return std::unexpected(number.error());
  return service_.Find(name, *number);
}

ServerUnaryReactor* InferenceRpcs::ModelInfer(CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  // gRPC owns the buffer until the call ends and reads it no more: it may be emptied early.
  return new InferReactor(service_, gate_, strict_triton_, *context,
                          *const_cast<grpc::ByteBuffer*>(request), *response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceRpcs::ModelStreamInfer(
    CallbackServerContext* context) {
  return new StreamReactor(service_, gate_, strict_triton_, *context);
}

ServerUnaryReactor* InferenceRpcs::ServerLive(CallbackServerContext* context,
                                              const inference::ServerLiveRequest*,
                                              inference::ServerLiveResponse* response) {
  response->set_live(service_.Live());
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ServerReady(CallbackServerContext* context,
                                               const inference::ServerReadyRequest*,
                                               inference::ServerReadyResponse* response) {
  response->set_ready(service_.Ready());
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ModelReady(CallbackServerContext* context,
                                              const inference::ModelReadyRequest* request,
                                              inference::ModelReadyResponse* response) {
  const auto version = ParseVersion(request->version());
  const Status ready =
      version ? service_.ModelReady(request->name(), *version) : std::unexpected(version.error());
  // An unknown model is not ready; only a request that makes no sense is an error.
  if (!ready && ready.error().code == ErrorCode::kInvalidArgument) {
    return End(context, std::unexpected(ready.error()));
  }
  response->set_ready(ready.has_value());
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ServerMetadata(CallbackServerContext* context,
                                                  const inference::ServerMetadataRequest*,
                                                  inference::ServerMetadataResponse* response) {
  response->set_name(std::string(ServerName(strict_triton_)));
  response->set_version(std::string(kServerVersion));
  for (std::string_view extension : ServerExtensions(
           {.logging = log_settings_ != nullptr, .trace = trace_settings_ != nullptr})) {
    response->add_extensions(std::string(extension));
  }
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ModelMetadata(CallbackServerContext* context,
                                                 const inference::ModelMetadataRequest* request,
                                                 inference::ModelMetadataResponse* response) {
  const auto model = Find(request->name(), request->version());
  if (!model) return End(context, std::unexpected(model.error()));
  *response = MetadataOf(**model, service_.Index());
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ModelConfig(CallbackServerContext* context,
                                               const inference::ModelConfigRequest* request,
                                               inference::ModelConfigResponse* response) {
  const auto model = Find(request->name(), request->version());
  if (!model) return End(context, std::unexpected(model.error()));
  auto config = ConfigOf(**model);
  if (!config) return End(context, std::unexpected(config.error()));
  *response->mutable_config() = std::move(*config);
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::ModelStatistics(CallbackServerContext* context,
                                                   const inference::ModelStatisticsRequest* request,
                                                   inference::ModelStatisticsResponse* response) {
  const auto version = ParseVersion(request->version());
  if (!version) return End(context, std::unexpected(version.error()));
  const auto statistics = service_.Statistics(request->name(), *version);
  if (!statistics) return End(context, std::unexpected(statistics.error()));
  *response = StatisticsOf(*statistics);
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::RepositoryIndex(CallbackServerContext* context,
                                                   const inference::RepositoryIndexRequest* request,
                                                   inference::RepositoryIndexResponse* response) {
  if (Status status = CheckRepository(request->repository_name()); !status) {
    return End(context, status);
  }
  *response = IndexOf(service_.Index(), request->ready());
  return End(context, {});
}

ServerUnaryReactor* InferenceRpcs::RepositoryModelLoad(
    CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse*) {
  if (Status status = CheckRepository(request->repository_name()); !status) {
    return End(context, status);
  }
  // The request lives until its call ends: what it holds is copied only when its turn has come.
  return EndLater(context, [this, request]() -> Status {
    const auto given = OverrideIn(*request);
    if (!given) return std::unexpected(given.error());
    return LoadOf(service_, folders_.get(), request->model_name(), *given);
  });
}

ServerUnaryReactor* InferenceRpcs::RepositoryModelUnload(
    CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse*) {
  if (Status status = CheckRepository(request->repository_name()); !status) {
    return End(context, status);
  }
  const auto found = request->parameters().find("unload_dependents");
  const bool with_steps = found != request->parameters().end() && found->second.bool_param();
  return EndLater(context, [this, name = request->model_name(), with_steps] {
    return UnloadOf(service_, folders_.get(), name, with_steps, strict_triton_);
  });
}

ServerUnaryReactor* InferenceRpcs::SystemSharedMemoryStatus(
    CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest*,
    inference::SystemSharedMemoryStatusResponse*) {
  return Unserved(context, "system_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::SystemSharedMemoryRegister(
    CallbackServerContext* context, const inference::SystemSharedMemoryRegisterRequest*,
    inference::SystemSharedMemoryRegisterResponse*) {
  return Unserved(context, "system_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::SystemSharedMemoryUnregister(
    CallbackServerContext* context, const inference::SystemSharedMemoryUnregisterRequest*,
    inference::SystemSharedMemoryUnregisterResponse*) {
  return Unserved(context, "system_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::CudaSharedMemoryStatus(
    CallbackServerContext* context, const inference::CudaSharedMemoryStatusRequest*,
    inference::CudaSharedMemoryStatusResponse*) {
  return Unserved(context, "cuda_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::CudaSharedMemoryRegister(
    CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest*,
    inference::CudaSharedMemoryRegisterResponse*) {
  return Unserved(context, "cuda_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::CudaSharedMemoryUnregister(
    CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest*,
    inference::CudaSharedMemoryUnregisterResponse*) {
  return Unserved(context, "cuda_shared_memory");
}
ServerUnaryReactor* InferenceRpcs::TraceSetting(CallbackServerContext* context,
                                                const inference::TraceSettingRequest* request,
                                                inference::TraceSettingResponse* response) {
  if (trace_settings_ == nullptr) return Unserved(context, "trace");
  const std::string& name = request->model_name();
  if (!name.empty()) {
    if (const auto model = service_.Find(name, -1); !model) {
      return End(context, std::unexpected(model.error()));
    }
  }
  TraceValues values;
  for (const auto& [setting, given] : request->settings()) {
    values[setting].assign(given.value().begin(), given.value().end());
  }
  if (Status set = trace_settings_->Set(name, values); !set) return End(context, set);
  for (const auto& [setting, texts] : trace_settings_->Get(name)) {
    auto& said = (*response->mutable_settings())[setting];
    said.mutable_value()->Assign(texts.begin(), texts.end());
  }
  return End(context, {});
}
ServerUnaryReactor* InferenceRpcs::LogSettings(CallbackServerContext* context,
                                               const inference::LogSettingsRequest* request,
                                               inference::LogSettingsResponse* response) {
  if (log_settings_ == nullptr) return Unserved(context, "logging");
  const auto values = ValuesOf(*request);
  if (!values) return End(context, std::unexpected(values.error()));
  if (Status set = log_settings_->Set(*values); !set) return End(context, set);
  for (const auto& [name, value] : log_settings_->Get()) {
    auto& setting = (*response->mutable_settings())[name];
    if (const bool* const flag = std::get_if<bool>(&value)) setting.set_bool_param(*flag);
    if (const auto* const number = std::get_if<std::uint32_t>(&value)) {
      setting.set_uint32_param(*number);
    }
    if (const auto* const text = std::get_if<std::string>(&value)) setting.set_string_param(*text);
  }
  return End(context, {});
}

}  // namespace tactus
