// The methods of inference.GRPCInferenceService. Infer calls go on in their reactors; everything
// else is answered here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "grpc_service.grpc.pb.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/slow_calls.h"
#include "service/inference_service.h"

namespace tactus {

class LogSettings;
class ModelFolders;
class TraceSettings;

// The generated service offers one mix-in for each method, by how it is handled: all as callbacks,
// and ModelInfer and ModelStreamInfer as bytes (see wire.h).
namespace rpc_layers {
using G = inference::GRPCInferenceService;
using Basic = G::WithCallbackMethod_ServerLive<
    G::WithCallbackMethod_ServerReady<G::WithCallbackMethod_ServerMetadata<
        G::WithCallbackMethod_ModelReady<G::WithCallbackMethod_ModelMetadata<G::Service>>>>>;
using Models = G::WithCallbackMethod_ModelConfig<G::WithCallbackMethod_ModelStatistics<
    G::WithCallbackMethod_RepositoryIndex<G::WithCallbackMethod_RepositoryModelLoad<
        G::WithCallbackMethod_RepositoryModelUnload<Basic>>>>>;
using SystemMemory =
    G::WithCallbackMethod_SystemSharedMemoryStatus<G::WithCallbackMethod_SystemSharedMemoryRegister<
        G::WithCallbackMethod_SystemSharedMemoryUnregister<Models>>>;
using CudaMemory =
    G::WithCallbackMethod_CudaSharedMemoryStatus<G::WithCallbackMethod_CudaSharedMemoryRegister<
        G::WithCallbackMethod_CudaSharedMemoryUnregister<SystemMemory>>>;
using Settings = G::WithCallbackMethod_TraceSetting<G::WithCallbackMethod_LogSettings<CudaMemory>>;
using All =
    G::WithRawCallbackMethod_ModelInfer<G::WithRawCallbackMethod_ModelStreamInfer<Settings>>;
}  // namespace rpc_layers

class InferenceRpcs final : public rpc_layers::All {
 public:
  // `log_settings`, `trace_settings` and `folders` may be null.
  InferenceRpcs(InferenceService& service, SlowCalls& slow, CallGate gate, bool strict_triton,
                std::shared_ptr<class LogSettings> log_settings,
                std::shared_ptr<TraceSettings> trace_settings,
                std::shared_ptr<ModelFolders> folders)
      : service_(service),
        slow_(slow),
        gate_(std::move(gate)),
        strict_triton_(strict_triton),
        log_settings_(std::move(log_settings)),
        trace_settings_(std::move(trace_settings)),
        folders_(std::move(folders)) {}

  CallsNow& now() { return *gate_.now; }

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* context) override;

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const inference::ModelConfigRequest* request,
                                        inference::ModelConfigResponse* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* context,
                                            const inference::ModelStatisticsRequest* request,
                                            inference::ModelStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* context,
                                            const inference::RepositoryIndexRequest* request,
                                            inference::RepositoryIndexResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryModelLoad(
      grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
      inference::RepositoryModelLoadResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryModelUnload(
      grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
      inference::RepositoryModelUnloadResponse* response) override;

  grpc::ServerUnaryReactor* SystemSharedMemoryStatus(
      grpc::CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest*,
      inference::SystemSharedMemoryStatusResponse*) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryRegister(
      grpc::CallbackServerContext* context, const inference::SystemSharedMemoryRegisterRequest*,
      inference::SystemSharedMemoryRegisterResponse*) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryUnregister(
      grpc::CallbackServerContext* context, const inference::SystemSharedMemoryUnregisterRequest*,
      inference::SystemSharedMemoryUnregisterResponse*) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryStatus(
      grpc::CallbackServerContext* context, const inference::CudaSharedMemoryStatusRequest*,
      inference::CudaSharedMemoryStatusResponse*) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryRegister(
      grpc::CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest*,
      inference::CudaSharedMemoryRegisterResponse*) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryUnregister(
      grpc::CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest*,
      inference::CudaSharedMemoryUnregisterResponse*) override;
  grpc::ServerUnaryReactor* TraceSetting(grpc::CallbackServerContext* context,
                                         const inference::TraceSettingRequest* request,
                                         inference::TraceSettingResponse* response) override;
  grpc::ServerUnaryReactor* LogSettings(grpc::CallbackServerContext* context,
                                        const inference::LogSettingsRequest* request,
                                        inference::LogSettingsResponse* response) override;

 private:
  Expected<std::shared_ptr<const ModelSpec>> Find(const std::string& name,
                                                  const std::string& version) const;
  grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context, const Status& status);
  // Ends the call with what `slow` returns, run where it may block.
  grpc::ServerUnaryReactor* EndLater(grpc::CallbackServerContext* context,
                                     std::function<Status()> slow);
  grpc::ServerUnaryReactor* Unserved(grpc::CallbackServerContext* context, const char* extension);

  InferenceService& service_;
  SlowCalls& slow_;
  const CallGate gate_;
  const bool strict_triton_;
  const std::shared_ptr<class LogSettings> log_settings_;
  const std::shared_ptr<TraceSettings> trace_settings_;
  const std::shared_ptr<ModelFolders> folders_;
};

}  // namespace tactus
