// The methods of inference.GRPCInferenceService. Infer calls go on in their own objects; everything
// else is answered here.
#pragma once

#include <memory>
#include <utility>

#include "platform/task_queue.h"
#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"
#include "service/inference_service.h"

namespace tactus {

class LogSettings;
class ModelFolders;
class TraceSettings;

class InferenceRpcs {
 public:
  // `log_settings`, `trace_settings` and `folders` may be null.
  struct Parts {
    InferenceService& service;
    TaskQueue& slow;
    const CallGate& gate;
    bool strict_triton = false;
    std::shared_ptr<LogSettings> log_settings;
    std::shared_ptr<TraceSettings> trace_settings;
    std::shared_ptr<ModelFolders> folders;
  };
  // The methods by their paths; they live as long as the parts, and as the object itself.
  explicit InferenceRpcs(Parts parts) : parts_(std::move(parts)) {}
  void AddTo(RpcMethods& methods) const;

 private:
  const Parts parts_;
};

}  // namespace tactus
