#include "server/grpc/method_scope.h"

#include <algorithm>

namespace tactus {

Scope ScopeOfMethod(std::string_view path) {
  if (path.starts_with("/grpc.health.v1.Health/")) return Scope::kOpen;
  const std::string_view method = path.substr(std::min(path.rfind('/') + 1, path.size()));
  if (method == "ServerLive" || method == "ServerReady") return Scope::kOpen;
  if (method == "ModelInfer" || method == "ModelStreamInfer") return Scope::kInfer;
  if (method.starts_with("RepositoryModel") || method.ends_with("Setting") ||
      method.ends_with("Settings") || method.find("SharedMemory") != method.npos) {
    return Scope::kAdmin;
  }
  return Scope::kRead;
}

}  // namespace tactus
