// Calls to etcd's v3 API as JSON over HTTP/1.1, in the clear.
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus::knowledge {

struct EtcdEndpoint {
  std::string host;
  std::string port;
};

struct EtcdReply {
  int status = 0;  // of HTTP
  std::string body;
};

// One thread at a time.
class EtcdClient {
 public:
  // `timeout` is that of one member; a call may ask them all, beginning with the last that
  // answered.
  EtcdClient(std::vector<EtcdEndpoint> endpoints, Duration timeout);

  // kUnavailable: no member answered. Then nobody knows whether the call was carried out.
  Expected<EtcdReply> Post(std::string_view path, const std::string& body);

 private:
  Expected<EtcdReply> PostTo(const EtcdEndpoint& endpoint, std::string_view path,
                             const std::string& body) const;

  std::vector<EtcdEndpoint> endpoints_;
  Duration timeout_;
  std::size_t last_good_ = 0;
};

}  // namespace tactus::knowledge
