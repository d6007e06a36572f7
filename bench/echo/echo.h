// The least a KServe v2 server can do with this machine's libraries: answer each request with its
// own tensor, from the thread that read it. What Tactus costs is measured against these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tactus::echo {

// The models that both know: name and FP32 elements of the one input "x" [-1, elements].
struct EchoModel {
  const char* name;
  std::int64_t elements;
};
inline constexpr EchoModel kModels[] = {{"small", 784}, {"large", 150528}};
const EchoModel* FindModel(const std::string& name);

class Server {
 public:
  virtual ~Server() = default;
  virtual int port() const = 0;
};

// Both listen on a free port of 127.0.0.1; null when they cannot.
std::unique_ptr<Server> StartGrpcEcho();
std::unique_ptr<Server> StartHttpEcho();

}  // namespace tactus::echo
